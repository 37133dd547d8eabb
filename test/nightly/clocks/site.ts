import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import https from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type EtcdCluster, startEtcd } from '../../support/etcd.ts'
import { eventually } from '../../support/eventually.ts'
import { ADMIN_TOKEN } from '../../support/replicas.ts'
import { Tidings } from '../../support/tidings.ts'
import { makeEvent } from '../../support/wire-event.ts'
import { WrongClock } from '../../support/wrong-clock.ts'

const READY_MS_MAX = 60_000
export const PREFIX = '/tidings'

/** One replica with its own clock, which can be started and killed again and again. */
export class ClockedReplica {
  readonly clock: WrongClock | undefined
  readonly #start: (clock: WrongClock | undefined) => Promise<Tidings>
  #server: Tidings | undefined
  /** Log lines of its processes that have ended. */
  readonly #log: Tidings['log'][number][] = []

  constructor(
    start: (clock: WrongClock | undefined) => Promise<Tidings>,
    clock: WrongClock | undefined,
  ) {
    this.#start = start
    this.clock = clock
  }

  get log(): readonly Tidings['log'][number][] {
    return [...this.#log, ...(this.#server?.log ?? [])]
  }

  get isRunning(): boolean {
    return this.#server !== undefined
  }

  get isSweeping(): boolean {
    const last = this.#server?.log.findLast(({ msg }) => /sweeps and compacts$/.test(msg))
    return last?.msg === 'This replica sweeps and compacts'
  }

  /** How often it became the leader. */
  get terms(): number {
    return this.log.filter(({ msg }) => msg === 'This replica sweeps and compacts').length
  }

  /** Warnings about clocks. */
  get warnings(): readonly string[] {
    return this.log.map(({ msg }) => msg).filter((msg) => /wall clock/.test(msg))
  }

  async start(): Promise<void> {
    this.#server = await this.#start(this.clock)
    const isReady = async () => (await this.ask('GET', '/readyz').catch(() => 0)) === 200
    await eventually('the replica is ready', isReady, READY_MS_MAX)
  }

  async kill(): Promise<void> {
    const server = this.#server
    this.#server = undefined
    if (server === undefined) return
    this.#log.push(...server.log)
    await server[Symbol.asyncDispose]()
    await WrongClock.cleanUp(server.process.pid)
  }

  /** False when the status was another one, or there was no response. */
  async create(name: string): Promise<boolean> {
    const body = JSON.stringify(makeEvent('clocks', name))
    const path = '/apis/events.k8s.io/v1/namespaces/clocks/events'
    return (await this.ask('POST', path, body).catch(() => 0)) === 201
  }

  async touch(name: string): Promise<boolean> {
    const path = `/apis/events.k8s.io/v1/namespaces/clocks/events/${name}`
    const patch = JSON.stringify({ metadata: { annotations: { touched: String(Math.random()) } } })
    return (await this.ask('PATCH', path, patch).catch(() => 0)) === 200
  }

  /** Its certificate is as wrong as its clock, so it is not verified. */
  async ask(method: string, path: string, body?: string): Promise<number> {
    const { port } = this.#server ?? { port: 0 }
    const contentType = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
    const request = https.request({
      host: '127.0.0.1',
      port,
      path,
      method,
      headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': contentType },
      rejectUnauthorized: false,
      agent: false,
      timeout: 10_000,
    })
    request.on('timeout', () => request.destroy(new Error('no response in time')))
    const answered = once(request, 'response')
    request.end(body)
    const [response] = await answered
    response.resume()
    return response.statusCode
  }
}

/** An etcd and its replicas. */
export class Site implements AsyncDisposable {
  readonly etcd: EtcdCluster
  readonly #folder: string
  readonly #flags: readonly string[]
  readonly #replicas: ClockedReplica[] = []

  static async start(flags: readonly string[]): Promise<Site> {
    const folder = await mkdtemp(join(tmpdir(), 'tidings-clocks-'))
    await writeFile(join(folder, 'tokens.csv'), `${ADMIN_TOKEN},admin,1,system:masters\n`, {
      mode: 0o600,
    })
    return new Site(await startEtcd(), folder, flags)
  }

  private constructor(etcd: EtcdCluster, folder: string, flags: readonly string[]) {
    this.etcd = etcd
    this.#folder = folder
    this.#flags = flags
  }

  /** A replica that is not started yet. */
  replica(clock?: WrongClock): ClockedReplica {
    const flags = [
      `--etcd-servers=${this.etcd.endpoints.join(',')}`,
      `--etcd-prefix=${PREFIX}`,
      `--token-auth-file=${join(this.#folder, 'tokens.csv')}`,
      ...this.#flags,
    ]
    const replica = new ClockedReplica((its) => Tidings.start(flags, its?.env), clock)
    this.#replicas.push(replica)
    return replica
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#replicas.map((replica) => replica.kill()))
    await this.etcd[Symbol.asyncDispose]()
    await rm(this.#folder, { recursive: true, force: true })
  }
}
