import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import https from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type EtcdCluster, startEtcd } from './etcd.ts'
import type { LoadRequest } from './request-load.ts'
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

/** The built program with its own etcd, and a token for each user. All users may do everything. */
export class LimitedServer implements AsyncDisposable {
  readonly server: Tidings
  readonly #etcd: EtcdCluster
  readonly #folder: string

  static async start(
    users: readonly string[],
    flags: readonly string[] = [],
    etcdArgs: readonly string[] = [],
  ): Promise<LimitedServer> {
    const folder = await mkdtemp(join(tmpdir(), 'tidings-limits-'))
    const tokenFile = join(folder, 'tokens.csv')
    await writeFile(tokenFile, users.map((user) => `${user},${user},${user}\n`).join(''))
    const etcd = await startEtcd({ args: etcdArgs })
    const server = await Tidings.start([
      `--etcd-servers=${etcd.endpoints[0]}`,
      `--token-auth-file=${tokenFile}`,
      '--authorization-mode=AlwaysAllow',
      ...flags,
    ])
    await server.until('/readyz', ({ status }) => status === 200, 20_000)
    return new LimitedServer(server, etcd, folder)
  }

  private constructor(server: Tidings, etcd: EtcdCluster, folder: string) {
    this.server = server
    this.#etcd = etcd
    this.#folder = folder
  }

  /**
   * How long the main thread has waited for a CPU, in ms: time that other programs on this machine
   * took.
   */
  starvedMs(): number {
    const { pid } = this.server.process
    const [, waitedNs] = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ')
    return Number(waitedNs) / 1e6
  }

  /** Memory of the process, without the events and changes that it caches. */
  async memoryBytes(): Promise<number> {
    const { body } = await this.server.ask('/metrics')
    const metric = (name: string): number =>
      Number(new RegExp(`^${name}(?:\\{.*\\})? (\\S+)$`, 'm').exec(body)?.[1] ?? 0)
    const kept = metric('tidings_history_bytes') + metric('tidings_memory_event_bytes')
    return metric('process_resident_memory_bytes') - kept
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server[Symbol.asyncDispose]()
    await this.#etcd[Symbol.asyncDispose]()
    await rm(this.#folder, { recursive: true, force: true })
  }
}

/** Requests a health endpoint over and over on one connection. */
export class HealthProbe {
  readonly #server: Tidings
  readonly #agent: https.Agent
  readonly #latenciesMs: number[] = []
  readonly #done: Promise<void>
  #isOver = false
  failures = 0

  constructor(server: Tidings) {
    this.#server = server
    this.#agent = new https.Agent({ keepAlive: true, ca: server.ca })
    this.#done = this.#run()
  }

  async stop(): Promise<{ readonly p99Ms: number; readonly count: number; failures: number }> {
    this.#isOver = true
    await this.#done
    this.#agent.destroy()
    const sorted = this.#latenciesMs.toSorted((a, b) => a - b)
    const p99Ms = sorted[Math.floor(sorted.length * 0.99)] ?? 0
    return { p99Ms, count: sorted.length, failures: this.failures }
  }

  async #run(): Promise<void> {
    while (!this.#isOver) {
      const askedAt = performance.now()
      if ((await this.#ask()) !== 200) this.failures += 1
      this.#latenciesMs.push(performance.now() - askedAt)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
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
