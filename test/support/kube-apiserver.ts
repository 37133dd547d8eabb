import { type ChildProcess, spawn } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { createWriteStream, globSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import https from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { CertificateAuthority } from './certs.ts'
import { type EtcdCluster, startEtcd } from './etcd.ts'
import { reservePort } from './ports.ts'

/** The path of a kube-apiserver binary, version 1.37; '' when the variable is not set. */
// biome-ignore lint/style/noProcessEnv: where a program is that this project does not bring along.
export const kubeApiserverBinary: string = process.env['KUBE_APISERVER'] ?? ''

/** The same, or else the newest in `.cache/servers`, for tests that work with every version. */
export const anyKubeApiserver: string =
  kubeApiserverBinary ||
  (globSync(join(import.meta.dirname, '../../.cache/servers/kube-apiserver-*'))
    .sort()
    .at(-1) ??
    '')

/** A value for the option `skip` of a test: false when there is a binary. */
export const withoutKubeApiserver: string | false =
  kubeApiserverBinary === '' &&
  'did NOT run: set KUBE_APISERVER to the path of a kube-apiserver binary, version 1.37'

/** The token of a user in the group system:masters. */
export const KUBE_ADMIN_TOKEN = 'kube-admin'

const START_MS_MAX = 120_000
const POLL_MS = 250
const TIMEOUT_MS = 30_000

export interface KubeApiserverOptions {
  /** Its path, unless it is that of KUBE_APISERVER. */
  readonly binary?: string
  /** Users besides the administrator. */
  readonly tokens?: readonly {
    readonly token: string
    readonly user: string
    readonly groups?: readonly string[]
  }[]
  /** Further flags. */
  readonly flags?: readonly string[]
  /** Whether all admission plugins run: namespaces must exist, pods need a service account. */
  readonly hasAdmission?: boolean
  /** Further flags of its etcd. */
  readonly etcdArgs?: readonly string[]
}

export interface KubeRequest {
  /** That of the administrator by default. */
  readonly token?: string
  /** Sent as JSON. */
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

export interface KubeResponse {
  readonly status: number
  readonly body: string
}

/**
 * A real Kubernetes API server with RBAC in front of its own etcd, without controllers. Namespaces
 * are not checked for existence, unless asked for. It keeps its port and its data through kills and
 * starts, and never outlives this process.
 */
export class KubeApiserver implements AsyncDisposable {
  readonly port: number
  /** PEM of the authority of its certificate. */
  readonly ca: string
  readonly etcd: EtcdCluster
  /** Tests may add files; it is removed at the end. */
  readonly folder: string
  readonly #binary: string
  readonly #flags: readonly string[]
  readonly #agent: https.Agent
  #process: ChildProcess | undefined

  /** Resolves when it is ready. */
  static async start(options: KubeApiserverOptions = {}): Promise<KubeApiserver> {
    const folder = await mkdtemp(join(tmpdir(), 'tidings-kube-'))
    const etcd = await startEtcd({ args: options.etcdArgs })
    const authority = await CertificateAuthority.create('kube')
    const port = await reservePort()
    const files = await writeFiles(folder, authority, options)
    const flags = [
      `--etcd-servers=${etcd.endpoints.join(',')}`,
      '--bind-address=127.0.0.1',
      `--secure-port=${port}`,
      '--authorization-mode=RBAC',
      ...(options.hasAdmission === true
        ? []
        : ['--disable-admission-plugins=NamespaceLifecycle,ServiceAccount']),
      '--service-account-issuer=https://kubernetes.default.svc.cluster.local',
      '--service-cluster-ip-range=10.0.0.0/24',
      '--endpoint-reconciler-type=none',
      ...files,
      ...(options.flags ?? []),
    ]
    const { binary = kubeApiserverBinary } = options
    const ca = String(authority.cert)
    const server = new KubeApiserver({ folder, etcd, port, binary, flags, ca })
    try {
      await server.run()
      return server
    } catch (error) {
      await server[Symbol.asyncDispose]()
      throw error
    }
  }

  private constructor(parts: {
    readonly folder: string
    readonly etcd: EtcdCluster
    readonly port: number
    readonly binary: string
    readonly flags: readonly string[]
    readonly ca: string
  }) {
    this.folder = parts.folder
    this.#binary = parts.binary
    this.#flags = parts.flags
    this.etcd = parts.etcd
    this.port = parts.port
    this.ca = parts.ca
    this.#agent = new https.Agent({ ca: parts.ca, keepAlive: true, maxSockets: 32 })
  }

  /** Starts the process; resolves when it is ready. Called again after `kill`. */
  async run(): Promise<void> {
    const command = ['--pdeathsig', 'KILL', this.#binary, ...this.#flags]
    const child = spawn('setpriv', command, { stdio: ['ignore', 'ignore', 'pipe'] })
    child.stderr?.pipe(createWriteStream(join(this.folder, 'kube-apiserver.log'), { flags: 'a' }))
    this.#process = child
    const deadline = Date.now() + START_MS_MAX
    for (;;) {
      const ready = await this.ask('GET', '/readyz').catch((error) => String(error))
      if (typeof ready !== 'string' && ready.status === 200) return
      if (child.exitCode !== null || Date.now() > deadline) {
        throw new Error(`kube-apiserver is not ready: ${JSON.stringify(ready)}`)
      }
      await sleep(POLL_MS)
    }
  }

  get pid(): number | undefined {
    return this.#process?.pid
  }

  /** SIGSTOP leaves its connections open, and nothing responds. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#process?.kill(signal)
  }

  /** Resolves when the process has ended. */
  async kill(signal: 'SIGKILL' | 'SIGTERM' = 'SIGKILL'): Promise<void> {
    const child = this.#process
    this.#process = undefined
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    child.kill(signal)
    // A paused process would not handle SIGTERM.
    child.kill('SIGCONT')
    await once(child, 'exit')
  }

  /** A kubeconfig for the user of this token. */
  kubeconfig(token: string): string {
    return JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'kube',
      contexts: [{ name: 'kube', context: { cluster: 'kube', user: 'user' } }],
      clusters: [
        {
          name: 'kube',
          cluster: {
            server: `https://127.0.0.1:${this.port}`,
            'certificate-authority-data': Buffer.from(this.ca).toString('base64'),
          },
        },
      ],
      users: [{ name: 'user', user: { token } }],
    })
  }

  async ask(
    method: string,
    path: string,
    { token = KUBE_ADMIN_TOKEN, body, headers }: KubeRequest = {},
  ): Promise<KubeResponse> {
    const request = https.request({
      host: '127.0.0.1',
      port: this.port,
      method,
      path,
      agent: this.#agent,
      signal: AbortSignal.timeout(TIMEOUT_MS),
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
    })
    request.end(body === undefined ? undefined : JSON.stringify(body))
    const [response] = await once(request, 'response')
    let text = ''
    for await (const chunk of response) text += chunk
    return { status: response.statusCode, body: text }
  }

  /** Creates an object as the administrator; returns what was stored. */
  async create(path: string, body: object): Promise<Record<string, unknown>> {
    const created = await this.ask('POST', path, { body })
    if (created.status !== 201) throw new Error(`${path}: ${created.status} ${created.body}`)
    return JSON.parse(created.body)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#agent.destroy()
    await this.kill()
    await this.etcd[Symbol.asyncDispose]()
    await rm(this.folder, { recursive: true, force: true })
  }
}

/** The file with the key that signs tokens of service accounts. */
export const SIGNING_KEY_FILE = 'service-account-signing-key-file'

/** Returns the flags for the files. Without keys for service accounts it does not start. */
async function writeFiles(
  folder: string,
  authority: CertificateAuthority,
  { tokens = [] }: KubeApiserverOptions,
): Promise<readonly string[]> {
  const { cert, key } = await authority.issueServer()
  const accounts = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  })
  const lines = [
    `${KUBE_ADMIN_TOKEN},kube-admin,kube-admin,system:masters`,
    ...tokens.map(({ token, user, groups = [] }) => `${token},${user},${user},"${groups.join()}"`),
  ]
  const contents = {
    'tls-cert-file': cert,
    'tls-private-key-file': key,
    'service-account-key-file': accounts.publicKey,
    [SIGNING_KEY_FILE]: accounts.privateKey,
    'token-auth-file': `${lines.join('\n')}\n`,
  }
  const flags: string[] = [`--cert-dir=${join(folder, 'certificates')}`]
  for (const [flag, content] of Object.entries(contents)) {
    const path = join(folder, flag)
    await writeFile(path, content, { mode: 0o600 })
    flags.push(`--${flag}=${path}`)
  }
  return flags
}
