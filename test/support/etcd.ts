import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import process from 'node:process'
import { type EtcdPorts, EtcdProcess } from '../../src/dev/etcd-process.ts'
import { CertificateAuthority, type KeyPair } from './certs.ts'
import { reserveEtcdPorts } from './ports.ts'

// biome-ignore lint/style/noProcessEnv: every suite runs with any etcd, and suites have flags of their own.
const given = process.env['ETCD']
const ownFolder = join(import.meta.dirname, '../../.cache/etcd/usr/bin')

/** The etcd that tests run: that of `ETCD`, else the project's own copy, else the machine's. */
export const etcdBinary: string = given === undefined ? toolBinary('etcd') : resolve(given)
export const etcdctlBinary: string = toolBinary('etcdctl')
export const etcdutlBinary: string = toolBinary('etcdutl')

/** A build of another etcd may lack the tools; those of the project's copy work with it as well. */
function toolBinary(name: string): string {
  const folders = given === undefined ? [ownFolder] : [dirname(resolve(given)), ownFolder]
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path)) ?? name
}

export interface EtcdOptions {
  /** Uses TLS; clients then need `tls` of the cluster. */
  readonly encrypted?: boolean | undefined
  readonly args?: readonly string[] | undefined
  /** Default: the etcd that tests run. */
  readonly binary?: string | undefined
}

/** The TLS options that a client needs. */
export interface ClientTls {
  readonly ca: Buffer
  readonly cert: Buffer
  readonly key: Buffer
}

/** How long all threads of a process may take to stop. */
const stopMsMax = 2_000

/**
 * Blocks until no thread of the process runs. The kernel delivers SIGSTOP to one thread, and the
 * others run until that one is scheduled: a request sent right after the signal may still get a
 * response.
 */
function untilStopped(pid: number): void {
  const giveUpAt = performance.now() + stopMsMax
  const isRunning = (thread: string) => {
    const stat = readFileSync(`/proc/${pid}/task/${thread}/stat`, 'latin1')
    return stat[stat.lastIndexOf(')') + 2] !== 'T'
  }
  while (readdirSync(`/proc/${pid}/task`).some(isRunning)) {
    if (performance.now() > giveUpAt) throw new Error(`process ${pid} does not stop`)
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1)
  }
}

/**
 * One real member that can be killed and paused. It keeps its data and ports through stops, kills
 * and starts.
 */
export class EtcdMember {
  readonly endpoint: string
  readonly ports: EtcdPorts
  readonly dataDir: string
  readonly #options: Parameters<typeof EtcdProcess.start>[0]
  #process: EtcdProcess | undefined

  constructor(options: Parameters<typeof EtcdProcess.start>[0] & { readonly ports: EtcdPorts }) {
    this.#options = options
    this.ports = options.ports
    this.dataDir = options.dataDir
    const scheme = options.tls === undefined ? 'http' : 'https'
    this.endpoint = `${scheme}://127.0.0.1:${options.ports.client}`
  }

  get isRunning(): boolean {
    return this.#process !== undefined
  }

  get pid(): number {
    return this.#running().pid
  }

  /**
   * `waitForQuorum: false` when the rest of the cluster may be down; `args` and `binary` replace
   * the first ones.
   */
  async start(options?: {
    readonly waitForQuorum?: boolean
    readonly args?: readonly string[]
    readonly binary?: string
  }): Promise<void> {
    if (this.#process !== undefined) throw new Error('the member is already running')
    this.#process = await EtcdProcess.start({ ...this.#options, ...options })
  }

  /** Stops the process with SIGSTOP: its sockets stay open and nothing responds. */
  pause(): void {
    const { pid } = this.#running()
    this.#running().signal('SIGSTOP')
    untilStopped(pid)
  }

  resume(): void {
    this.#running().signal('SIGCONT')
  }

  async kill(): Promise<void> {
    const running = this.#process
    this.#process = undefined
    await running?.kill()
  }

  async stop(): Promise<void> {
    const running = this.#process
    this.#process = undefined
    await running?.stop()
  }

  #running(): EtcdProcess {
    if (this.#process === undefined) throw new Error('the member is not running')
    return this.#process
  }
}

/** The members of one cluster, in their own folder, for `await using`. */
export class EtcdCluster implements AsyncDisposable {
  readonly members: readonly EtcdMember[]
  readonly endpoints: readonly string[]
  /** Undefined when the cluster is not encrypted. */
  readonly tls: ClientTls | undefined
  readonly #folder: string

  constructor(options: {
    readonly members: readonly EtcdMember[]
    readonly tls: ClientTls | undefined
    readonly folder: string
  }) {
    this.members = options.members
    this.endpoints = options.members.map((member) => member.endpoint)
    this.tls = options.tls
    this.#folder = options.folder
  }

  member(index: number): EtcdMember {
    const member = this.members[index]
    if (member === undefined) throw new Error(`there is no member ${index}`)
    return member
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.members.map((member) => member.kill()))
    await rm(this.#folder, { recursive: true, force: true })
  }
}

/** A single member. */
export function startEtcd(options?: EtcdOptions): Promise<EtcdCluster> {
  return startEtcdCluster(1, options)
}

export async function startEtcdCluster(size: number, options?: EtcdOptions): Promise<EtcdCluster> {
  const folder = await mkdtemp(join(tmpdir(), 'tidings-etcd-'))
  const authority = options?.encrypted === true ? await CertificateAuthority.create() : undefined
  const tlsFiles =
    authority === undefined
      ? undefined
      : await writeTls(folder, authority, await authority.issueServer())
  const ports = await Promise.all(Array.from({ length: size }, reserveEtcdPorts))
  const cluster = ports.map((own, index) => ({ name: `m${index}`, peerPort: own.peer }))
  const members = ports.map(
    (own, index) =>
      new EtcdMember({
        binary: options?.binary ?? etcdBinary,
        name: `m${index}`,
        dataDir: join(folder, `m${index}`),
        ports: own,
        cluster,
        tls: tlsFiles,
        // No fsync: writes survive a killed process; the loss of a machine is not tested.
        args: ['--unsafe-no-fsync', ...(options?.args ?? [])],
      }),
  )
  const tls =
    authority === undefined
      ? undefined
      : { ca: authority.cert, ...(await authority.issueClient('tidings')) }
  const started = new EtcdCluster({ members, tls, folder })
  try {
    await Promise.all(members.map((member) => member.start()))
  } catch (error) {
    await started[Symbol.asyncDispose]()
    throw error
  }
  return started
}

async function writeTls(
  folder: string,
  authority: CertificateAuthority,
  server: KeyPair,
): Promise<{ readonly ca: string; readonly cert: string; readonly key: string }> {
  const files = {
    ca: join(folder, 'ca.pem'),
    cert: join(folder, 'server.pem'),
    key: join(folder, 'server-key.pem'),
  }
  await Promise.all([
    writeFile(files.ca, authority.cert),
    writeFile(files.cert, server.cert),
    writeFile(files.key, server.key, { mode: 0o600 }),
  ])
  return files
}
