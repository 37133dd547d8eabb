import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pause } from '../../../src/lib/abort.ts'
import { eventually } from '../../support/eventually.ts'
import { MetricSums } from '../../support/metric-sums.ts'
import { Random } from '../../support/random.ts'
import { Replicas } from '../../support/replicas.ts'
import { Judge } from './judge.ts'
import { DEFAULT_SECONDS, fileText, type PlannedPolicy } from './policies.ts'
import { Reign } from './reign.ts'
import { Witness } from './witness.ts'
import { Writer } from './writers.ts'

const PREFIX = '/tidings'
const REPLICAS = 3
const TAKE_OVER_MS_MAX = 20_000
const RELOAD_MS_MAX = 10_000
const RELOADED = 'Retention policy reloaded'
const CHECK_EVERY_MS = 500

/** Three replicas with a policy file, writers, and a judge of all that happens. */
export class Site implements AsyncDisposable {
  readonly judge: Judge
  kills = 0
  policies = 0
  readonly #reign = new Reign()
  readonly #folder: string
  readonly #replicas: Replicas
  readonly #witness: Witness
  readonly #writers: readonly Writer[]
  readonly #ending = new AbortController()
  readonly #running: Promise<unknown>

  static async start(
    policy: PlannedPolicy,
    options: { readonly seed: number; readonly writeEveryMs: number },
  ): Promise<Site> {
    const folder = await mkdtemp(join(tmpdir(), 'tidings-retention-'))
    await writeFile(join(folder, 'policy.yaml'), fileText(policy))
    const replicas = await Replicas.start(REPLICAS, [
      `--etcd-prefix=${PREFIX}`,
      `--event-ttl=${DEFAULT_SECONDS}s`,
      `--retention-policy-file=${join(folder, 'policy.yaml')}`,
    ])
    return new Site({ folder, replicas, policy, ...options })
  }

  private constructor(options: {
    readonly folder: string
    readonly replicas: Replicas
    readonly policy: PlannedPolicy
    readonly seed: number
    readonly writeEveryMs: number
  }) {
    const { replicas, writeEveryMs: everyMs } = options
    this.#folder = options.folder
    this.#replicas = replicas
    this.#reign.wrote(options.policy)
    this.#reign.known()
    const judge = new Judge(this.#reign)
    this.judge = judge
    this.#witness = new Witness(replicas.etcd.endpoints, { prefix: PREFIX, judge })
    const random = new Random(options.seed)
    this.#writers = Array.from(
      { length: REPLICAS },
      (_, replica) => new Writer({ replicas, replica, judge, random: random.fork(), everyMs }),
    )
    const { signal } = this.#ending
    this.#running = Promise.all([
      ...this.#writers.map((writer) => writer.run(signal)),
      this.#check(signal),
    ])
  }

  async #check(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.judge.checkDue()
      await pause(CHECK_EVERY_MS, signal)
    }
  }

  /** Resolves when every replica uses it. */
  async setPolicy(policy: PlannedPolicy): Promise<void> {
    const servers = Array.from({ length: REPLICAS }, (_, index) => this.#replicas.server(index))
    const reloads = () => servers.map(({ log }) => log.filter(({ msg }) => msg === RELOADED).length)
    const before = reloads()
    this.#reign.wrote(policy)
    const path = join(this.#folder, 'policy.yaml')
    await writeFile(`${path}.new`, fileText(policy))
    await rename(`${path}.new`, path)
    const isReloaded = () => reloads().every((count, index) => count > (before[index] ?? 0))
    await eventually('every replica has reloaded the policy', isReloaded, RELOAD_MS_MAX)
    this.#reign.known()
    this.policies++
  }

  /** Kills the sweeping replica; resolves when another one sweeps and it is back. */
  async killSweeper(): Promise<void> {
    await eventually('a replica sweeps', async () => (await this.#sweeper()) >= 0, TAKE_OVER_MS_MAX)
    const sweeper = await this.#sweeper()
    this.#replicas.server(sweeper).kill('SIGKILL')
    this.kills++
    await this.#replicas.startOne(sweeper)
    await eventually('a replica sweeps', async () => (await this.#sweeper()) >= 0, TAKE_OVER_MS_MAX)
  }

  async #sweeper(): Promise<number> {
    for (let index = 0; index < REPLICAS; index++) {
      const sums = await MetricSums.of([this.#replicas.server(index)])
      if (sums.sum('tidings_sweeper_role') === 1) return index
    }
    return -1
  }

  /** Writers pause for a while; then the budgets must hold. */
  async settle(ms: number): Promise<void> {
    for (const writer of this.#writers) writer.isPaused = true
    await pause(ms)
    this.judge.checkBudgets()
  }

  resume(): void {
    for (const writer of this.#writers) writer.isPaused = false
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort()
    await this.#running
    await this.#witness[Symbol.asyncDispose]()
    await this.#replicas[Symbol.asyncDispose]()
    await rm(this.#folder, { recursive: true, force: true })
  }
}
