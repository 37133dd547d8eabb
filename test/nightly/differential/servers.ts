/** The two servers that are compared, each in front of its own etcd. */
import { type ChildProcess, spawn } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { reservePorts } from '../../../src/dev/etcd-process.ts'
import { startEtcd } from '../../support/etcd.ts'
import { Tidings } from '../../support/tidings.ts'
import { Client } from './client.ts'

const TOKEN = 'differential'
const TOKENS = `${TOKEN},tester,1,system:masters\n`
const START_MS_MAX = 120_000
const POLL_MS = 250

export interface Servers extends AsyncDisposable {
  readonly ours: Client
  readonly theirs: Client
}

/** `kubeApiserver` is the path of a real API server's binary. */
export async function startServers(kubeApiserver: string): Promise<Servers> {
  const stack = new AsyncDisposableStack()
  try {
    const folder = await mkdtemp(join(tmpdir(), 'tidings-differential-'))
    stack.defer(() => rm(folder, { recursive: true, force: true }))
    const tokens = join(folder, 'tokens.csv')
    await writeFile(tokens, TOKENS, { mode: 0o600 })
    const [ours, theirs] = await Promise.all([
      startOurs(stack, tokens),
      startTheirs(stack, { kubeApiserver, folder, tokens }),
    ])
    return { ours, theirs, [Symbol.asyncDispose]: () => stack.disposeAsync() }
  } catch (error) {
    await stack.disposeAsync()
    throw error
  }
}

async function startOurs(stack: AsyncDisposableStack, tokens: string): Promise<Client> {
  const etcd = stack.use(await startEtcd())
  const server = stack.use(
    await Tidings.start([
      `--etcd-servers=${etcd.endpoints.join(',')}`,
      `--token-auth-file=${tokens}`,
      '--authorization-mode=RBAC',
      '--max-requests-inflight=0',
      '--max-mutating-requests-inflight=0',
      // One user sends all writes, and none of them may be rate limited.
      '--max-write-bytes-per-second=0',
    ]),
  )
  return ready(stack.adopt(new Client(server.port, TOKEN), (client) => client.close()))
}

/**
 * Namespaces are not checked for existence, as with us; everything else has its default. Service
 * accounts are not used, but it does not start without keys for them.
 */
async function startTheirs(
  stack: AsyncDisposableStack,
  files: { readonly kubeApiserver: string; readonly folder: string; readonly tokens: string },
): Promise<Client> {
  const { kubeApiserver, folder, tokens } = files
  const etcd = stack.use(await startEtcd())
  const { publicKey, privateKey } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  })
  const [keyFile, publicKeyFile] = [join(folder, 'accounts.key'), join(folder, 'accounts.pub')]
  await writeFile(keyFile, privateKey, { mode: 0o600 })
  await writeFile(publicKeyFile, publicKey)
  const { client: port } = await reservePorts()
  const child = spawn(
    kubeApiserver,
    [
      `--etcd-servers=${etcd.endpoints.join(',')}`,
      '--bind-address=127.0.0.1',
      `--secure-port=${port}`,
      `--cert-dir=${join(folder, 'certificates')}`,
      `--token-auth-file=${tokens}`,
      '--authorization-mode=RBAC',
      '--disable-admission-plugins=NamespaceLifecycle',
      '--service-account-issuer=https://differential.example',
      `--service-account-key-file=${publicKeyFile}`,
      `--service-account-signing-key-file=${keyFile}`,
      '--service-cluster-ip-range=10.0.0.0/24',
      '--endpoint-reconciler-type=none',
      '--enable-priority-and-fairness=false',
      '--max-requests-inflight=0',
      '--max-mutating-requests-inflight=0',
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  )
  child.stderr?.pipe(createWriteStream(join(tmpdir(), 'kube-apiserver.log')))
  stack.defer(() => stopped(child))
  return ready(stack.adopt(new Client(port, TOKEN), (client) => client.close()))
}

async function ready(client: Client): Promise<Client> {
  const endsAt = performance.now() + START_MS_MAX
  const path = '/readyz'
  for (;;) {
    const { status, body } = await client.ask({ method: 'GET', path, headers: {} })
    if (status === 200) return client
    if (performance.now() > endsAt) {
      throw new Error(`not ready after ${START_MS_MAX} ms: ${status} ${body.toString()}`)
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
}

async function stopped(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGKILL')
  await once(child, 'exit')
}
