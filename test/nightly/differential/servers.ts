/** The two servers that are compared, each in front of its own etcd. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startEtcd } from '../../support/etcd.ts'
import { KubeApiserver } from '../../support/kube-apiserver.ts'
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

/** Needs the binary of a real API server. */
export async function startServers(): Promise<Servers> {
  const stack = new AsyncDisposableStack()
  try {
    const folder = await mkdtemp(join(tmpdir(), 'tidings-differential-'))
    stack.defer(() => rm(folder, { recursive: true, force: true }))
    const tokens = join(folder, 'tokens.csv')
    await writeFile(tokens, TOKENS, { mode: 0o600 })
    const [ours, theirs] = await Promise.all([startOurs(stack, tokens), startTheirs(stack)])
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

/** Everything that does not limit requests has its default, except for shards, which are alpha. */
async function startTheirs(stack: AsyncDisposableStack): Promise<Client> {
  const server = stack.use(
    await KubeApiserver.start({
      tokens: [{ token: TOKEN, user: 'tester', groups: ['system:masters'] }],
      flags: [
        '--feature-gates=ShardedListAndWatch=true',
        '--enable-priority-and-fairness=false',
        '--max-requests-inflight=0',
        '--max-mutating-requests-inflight=0',
      ],
    }),
  )
  return ready(stack.adopt(new Client(server.port, TOKEN), (client) => client.close()))
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
