import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import https from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type EtcdCluster, startEtcd } from './etcd.ts'
import { percentile } from './load.ts'
import type { LoadRequest } from './request-load.ts'
import { starvedMs } from './stopwatch.ts'
import { Tidings } from './tidings.ts'

const EVENTS = '/apis/events.k8s.io/v1/namespaces/default/events'

/** Writes one of a few hundred events, each time with another label. */
export const WRITE: LoadRequest = {
  method: 'PUT',
  path: `${EVENTS}/load-NUMBER`,
  body: JSON.stringify({
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { name: 'load-NUMBER', namespace: 'default', labels: { turn: 'UNIQUE' } },
    eventTime: '2026-01-02T03:04:05.000000Z',
    reportingController: 'tidings.test/load',
    reportingInstance: 'load-1',
    action: 'Testing',
    reason: 'Tested',
    regarding: { kind: 'Pod', namespace: 'default', name: 'web-NUMBER' },
    note: 'A line of the length that such notes have, so that sizes are those of real events.',
    type: 'Normal',
  }),
}
export const LIST: LoadRequest = { method: 'GET', path: `${EVENTS}?limit=100` }
/** Reads every event, and returns none. */
export const SEARCH: LoadRequest = { method: 'GET', path: `${EVENTS}?labelSelector=none%3Dsuch` }
export const GET: LoadRequest = { method: 'GET', path: `${EVENTS}/load-NUMBER` }

const METRICS_MS_MAX = 2_000

/** The built program with its own etcd, and a token for each user. All users may do everything. */
export class LimitedServer implements AsyncDisposable {
  readonly server: Tidings
  readonly #etcd: EtcdCluster
  readonly #folder: string
  #keptBytes = 0

  static async start(
    users: readonly string[],
    flags: readonly string[] = [],
    etcdArgs: readonly string[] = [],
    env: Readonly<Record<string, string>> = {},
  ): Promise<LimitedServer> {
    const folder = await mkdtemp(join(tmpdir(), 'tidings-limits-'))
    const tokenFile = join(folder, 'tokens.csv')
    await writeFile(tokenFile, users.map((user) => `${user},${user},${user}\n`).join(''))
    const etcd = await startEtcd({ args: etcdArgs })
    const server = await Tidings.start(
      [
        `--etcd-servers=${etcd.endpoints[0]}`,
        `--token-auth-file=${tokenFile}`,
        '--authorization-mode=AlwaysAllow',
        ...flags,
      ],
      env,
    )
    await server.until('/readyz', ({ status }) => status === 200, 20_000)
    return new LimitedServer(server, etcd, folder)
  }

  private constructor(server: Tidings, etcd: EtcdCluster, folder: string) {
    this.server = server
    this.#etcd = etcd
    this.#folder = folder
  }

  get etcdEndpoints(): readonly string[] {
    return this.#etcd.endpoints
  }

  /** Time that other programs on this machine took from the server. */
  starvedMs(): number {
    return starvedMs(this.server.process.pid)
  }

  /**
   * Memory of the process, without the events and changes that it caches; as many of these as at the
   * last call if the server does not say.
   */
  async memoryBytes(): Promise<number> {
    this.#keptBytes = await this.#kept().catch(() => this.#keptBytes)
    const status = readFileSync(`/proc/${this.server.process.pid}/status`, 'utf8')
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024 - this.#keptBytes
  }

  async #kept(): Promise<number> {
    const { status, body } = await this.server.ask('/metrics', { timeoutMs: METRICS_MS_MAX })
    if (status !== 200) throw new Error(`/metrics: ${status}`)
    const metric = (name: string): number =>
      Number(new RegExp(`^${name}(?:\\{.*\\})? (\\S+)$`, 'm').exec(body)?.[1] ?? 0)
    return metric('tidings_history_bytes') + metric('tidings_memory_event_bytes')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server[Symbol.asyncDispose]()
    await this.#etcd[Symbol.asyncDispose]()
    await rm(this.#folder, { recursive: true, force: true })
  }
}

/** What a `HealthProbe` found. */
export interface Health {
  readonly p99Ms: number
  /**
   * The same without the time in which the server, or this process, waited for a CPU: what it would
   * be if each had a core.
   */
  readonly ownP99Ms: number
  readonly count: number
  readonly failures: number
}

/** Requests a health endpoint over and over on one connection. */
export class HealthProbe {
  readonly #server: Tidings
  readonly #agent: https.Agent
  readonly #latenciesMs: number[] = []
  readonly #ownMs: number[] = []
  readonly #done: Promise<void>
  #isOver = false
  failures = 0

  constructor(server: Tidings) {
    this.#server = server
    this.#agent = new https.Agent({ keepAlive: true, ca: server.ca })
    this.#done = this.#run()
  }

  async stop(): Promise<Health> {
    this.#isOver = true
    await this.#done
    this.#agent.destroy()
    return {
      p99Ms: percentile(this.#latenciesMs, 0.99),
      ownP99Ms: percentile(this.#ownMs, 0.99),
      count: this.#latenciesMs.length,
      failures: this.failures,
    }
  }

  async #run(): Promise<void> {
    while (!this.#isOver) {
      const askedAt = performance.now()
      const before = this.#starved()
      if ((await this.#ask()) !== 200) this.failures += 1
      const latencyMs = performance.now() - askedAt
      const lost = this.#starved().map((ms, at) => ms - (before[at] ?? 0))
      this.#latenciesMs.push(latencyMs)
      // The larger of the two: both may have waited at the same time.
      this.#ownMs.push(latencyMs - Math.max(...lost))
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }

  #starved(): readonly number[] {
    return [this.#server.process.pid, process.pid].map(starvedMs)
  }

  #ask(): Promise<number> {
    const { port } = this.#server
    return new Promise((resolve) => {
      https
        .get({ host: '127.0.0.1', port, path: '/readyz', agent: this.#agent }, (answer) => {
          answer.resume().on('end', () => resolve(answer.statusCode ?? 0))
        })
        .on('error', () => resolve(0))
    })
  }
}
