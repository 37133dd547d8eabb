/**
 * The real world: replicas in this process, in front of real etcd members. What clients were told is
 * recorded, and checked when the run is over and the history of etcd can be read.
 */
import { defaultHistoryBounds } from '../../../src/cache/watch/history.ts'
import { pause } from '../../../src/lib/abort.ts'
import { revisionOf, type Version } from '../../../src/storage/resource-version.ts'
import type { Random } from '../../support/random.ts'
import { Checks } from '../../worlds/checker/checks.ts'
import type { Commit } from '../../worlds/checker/commit.ts'
import { RecordedJournal } from '../../worlds/checker/journal.ts'
import { PolicyReign } from '../../worlds/retention/policy-reign.ts'
import type { ClientWorld, WorldLimits } from '../../worlds/workload/contract.ts'
import { type EventWorkload, startWorkload } from '../../worlds/workload/workload.ts'
import { readHistory } from './etcd-history.ts'
import { Replica } from './replica.ts'
import { type MakeStorage, prefix } from './storages.ts'

const replicas = 3
const operationsPerSecond = 100
const mixOfOperations = { writeShare: 0.5, listShare: 0.07 }
const lastReadMs = 10_000
/** How long after the last fault the slowest watcher and replica may take to have everything. */
const catchUpMs = 60_000
const pollMs = 200

export interface Violation {
  readonly guarantee: string
  readonly what: string
  readonly evidence: readonly string[]
}

export interface RealWorldOptions {
  readonly endpoints: readonly string[]
  readonly make: MakeStorage
  readonly random: Random
  readonly watchers: number
  readonly fixedNames: number | undefined
}

export class RealWorld implements ClientWorld, AsyncDisposable {
  readonly replicas: readonly Replica[]
  readonly journal: RecordedJournal = new RecordedJournal()
  /** Nothing is compacted or restored. */
  readonly cluster: ClientWorld['cluster'] = { compactedRevision: 0, state: () => new Map() }
  readonly limits: WorldLimits = {
    eventTtlMs: 24 * 3_600_000,
    // Nothing is compacted; clients that list page by page pause by it.
    compactionIntervalMs: 20_000,
    driftMax: 0,
    historyChangesMax: defaultHistoryBounds.changesMax,
    stallMsMax: 5_000,
  }
  readonly policies: PolicyReign = new PolicyReign(
    [{ at: 0, policy: { rules: [], budgets: [], lifetime: 'never' } }],
    () => this.now(),
  )
  /** There are always faults: what must hold in a calm world is for the simulation to check. */
  readonly calmSince = undefined
  readonly violations: Violation[] = []
  /** Every operation with its outcome, for the evidence. */
  readonly lines: string[] = []
  readonly workload: EventWorkload
  readonly #options: RealWorldOptions
  readonly #checks: Checks
  readonly #onReplicaEnd: ((replica: number, incarnation: number) => void)[] = []
  readonly #startedAt = performance.now()
  #isOver = false

  static async start(options: RealWorldOptions): Promise<RealWorld> {
    const { endpoints, make } = options
    const onEnd = (replica: number, incarnation: number): void => {
      for (const run of world.#onReplicaEnd) run(replica, incarnation)
    }
    const started = Array.from(
      { length: replicas },
      (_, index) => new Replica({ index, endpoints, make, onEnd }),
    )
    await Promise.all(started.map((replica) => replica.start()))
    const world = new RealWorld(options, started)
    return world
  }

  private constructor(options: RealWorldOptions, started: readonly Replica[]) {
    this.#options = options
    this.replicas = started
    this.#checks = new Checks(this)
    const { watchers, fixedNames } = options
    this.workload = startWorkload(this, this.#checks, {
      operationsPerSecond,
      mix: { ...mixOfOperations, watchers },
      fixedNames,
    })
  }

  now(): number {
    return performance.now() - this.#startedAt
  }

  after(ms: number, work: () => void): void {
    setTimeout(() => {
      if (!this.#isOver) work()
    }, ms)
  }

  random(): Random {
    return this.#options.random.fork()
  }

  onReplicaEnd(run: (replica: number, incarnation: number) => void): void {
    this.#onReplicaEnd.push(run)
  }

  violation(guarantee: string, what: string, evidence: readonly string[] = []): void {
    this.violations.push({ guarantee, what, evidence })
  }

  trace(who: string, text: () => string): void {
    this.lines.push(`${this.now().toFixed(1)} ${who}: ${text()}`)
  }

  digest(): void {}

  /** Ends the traffic when so many operations have begun, and everybody has everything. */
  async finish(operations: number): Promise<{ readonly newestRevision: number }> {
    while (this.workload.operations < operations) await pause(pollMs)
    this.workload.stop()
    await this.#until(() => this.#openOperations === 0)
    const version = await this.#newestVersion()
    const isCaughtUp = await this.#until(() => this.workload.watchersBehind(version) === 0)
    if (!isCaughtUp) {
      const behind = this.workload.watchersBehind(version)
      this.violation(
        'watches deliver soon',
        `${behind} watchers have not reached version ${version} within ${catchUpMs} ms after the last fault`,
      )
    }
    this.#checks.atEnd()
    await pause(pollMs)
    await this.#until(() => this.#openOperations === 0)
    this.#checks.hasEnded()
    this.#isOver = true
    return { newestRevision: revisionOf(version) }
  }

  /** Checks everything that clients were told against the history of etcd. */
  async check(newestRevision: number): Promise<readonly Commit[]> {
    const { endpoints } = this.#options
    const commits = await readHistory(endpoints, {
      folder: `${prefix}/`,
      lastRevision: newestRevision,
    })
    const violationsBefore = this.violations.length
    this.journal.replay({
      commits,
      newestRevision,
      onCommit: (commit) => this.#checks.onCommit(commit),
      isPossible: (commit) => this.#checks.writes.hasBegun(commit),
      isOver: () => this.violations.length > violationsBefore,
    })
    return commits
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true
    await Promise.all(this.replicas.map((replica) => replica.close()))
  }

  get #openOperations(): number {
    return this.replicas.reduce((sum, { index }) => sum + this.#checks.view(index).open.size, 0)
  }

  async #until(isDone: () => boolean): Promise<boolean> {
    const giveUpAt = performance.now() + catchUpMs
    while (!isDone() && performance.now() < giveUpAt) await pause(pollMs)
    return isDone()
  }

  async #newestVersion(): Promise<Version> {
    const storage = this.replicas[0]?.parts?.storage
    if (storage === undefined) throw new Error('replica 0 does not run')
    return await storage.currentVersion({ signal: AbortSignal.timeout(lastReadMs) })
  }
}
