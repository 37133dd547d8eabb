/**
 * All promises, checked against the commits of etcd, which are the truth, and what production code
 * told clients.
 */
import { RetentionChecks } from '../retention/expiry-checks.ts'
import type { ClientWorld } from '../workload/contract.ts'
import { CalmChecks, recoveryMs } from './calm.ts'
import type { Change, Commit } from './commit.ts'
import { eventsFolder } from './commit-reader.ts'
import type { Failure } from './failures.ts'
import { ListChecks } from './lists.ts'
import { type Holder, type Operation, ReplicaView, tickMs } from './operations.ts'
import { ReadChecks } from './reads.ts'
import { RefusalChecks } from './refusals.ts'
import { Reporter } from './reporter.ts'
import { Truth } from './truth.ts'
import { WatchCheck, type WatchOptions } from './watches.ts'
import { WriteOperation } from './write-operation.ts'
import { WriteChecks } from './writes.ts'

const periodMs = 1_000
const retentionEveryMs = 5_000
/** Comparing all events costs as much as a thousand cheap operations. */
const probeEveryMs = 30_000
/** A replica that is not compared within this time after the world has recovered has a problem. */
const probeLateMs = 15_000

export class Checks {
  readonly reporter: Reporter
  readonly truth: Truth
  readonly reads: ReadChecks
  readonly lists: ListChecks
  readonly writes: WriteChecks
  readonly refusals: RefusalChecks
  readonly retention: RetentionChecks
  readonly calm: CalmChecks
  readonly #world: ClientWorld
  readonly #views: ReplicaView[] = []
  readonly #watches = new Set<WatchCheck>()
  readonly #holders = new Set<Holder>()
  #isStarted = false
  #ticking: number[] = []
  #periods = 0
  #endedAt: number | undefined
  /** The calm period in which the state of etcd was compared. */
  #comparedCalm: number | undefined

  /** The parts of the world are used from the first operation on, not before. */
  constructor(world: ClientWorld) {
    this.#world = world
    this.reporter = new Reporter(world)
    this.truth = new Truth({
      state: () => world.cluster.state(),
      compactedRevision: () => world.cluster.compactedRevision,
      now: () => world.now(),
      onProblem: (guarantee, what, evidence) => this.reporter.report(guarantee, what, evidence),
    })
    const { truth, reporter } = this
    this.retention = new RetentionChecks({ world, truth, reporter, recoveryMs })
    const options = { truth, reporter, journal: world.journal }
    this.reads = new ReadChecks(options)
    this.lists = new ListChecks(options, this.reads)
    this.writes = new WriteChecks(options, this.retention)
    this.refusals = new RefusalChecks(options, this.reads)
    // After the writes, which judge a delete by the sizes before it.
    truth.listen(this.retention.budgets)
    const { reads, lists } = this
    this.calm = new CalmChecks({ world, truth, reads, lists, reporter })
  }

  /** How long the world has to be calm before the final checks. */
  get calmNeededMs(): number {
    return this.retention.calmNeededMs
  }

  onCommit(commit: Commit): void {
    this.truth.onCommit(commit)
  }

  /** Elections, crashes, compactions. */
  onEvent(text: string): void {
    this.#world.trace('etcd', () => text)
  }

  onCompact(revision: number, at: number): void {
    this.retention.onCompact(revision, at)
    this.truth.onCompact(revision)
  }

  onRestore(restore: {
    readonly kept: number
    readonly revision: number
    readonly at: number
  }): void {
    this.retention.restoring()
    this.truth.onRestore(restore)
    this.#world.after(0, () => this.retention.restored(this.#leaderKey()))
  }

  #leaderKey(): (Change & { readonly modRevision: number }) | undefined {
    for (const [key, change] of this.#world.cluster.state()) {
      if (key.endsWith('/control/sweeper')) return change
    }
    return undefined
  }

  /** Begins the periodic checks. Called by the workload, when the world is complete. */
  start(): void {
    if (this.#isStarted) return
    this.#isStarted = true
    for (const { index } of this.#world.replicas) {
      this.#views.push(new ReplicaView(this.#world, index))
      this.#ticking.push(-1)
    }
    this.#world.onReplicaEnd((replica) => this.#onReplicaEnd(replica))
    this.#world.after(periodMs, this.#period)
  }

  /** Must be called in the process of the replica. */
  view(replica: number): ReplicaView {
    const view = this.#views[replica]
    if (view === undefined) throw new RangeError(`no replica ${replica}`)
    view.incarnation = view.replica.incarnation
    return view
  }

  /** A call has ended: to be called once for each operation, after what it returned was checked. */
  settled(operation: Operation, failure: Failure | undefined): void {
    this.calm.settled(operation, failure)
  }

  beginWatch(
    view: ReplicaView,
    options: Omit<WatchOptions, 'truth' | 'reporter' | 'journal'>,
  ): WatchCheck {
    const { truth, reporter } = this
    const { journal } = this.#world
    const watch = new WatchCheck(view, { truth, reporter, journal, ...options })
    this.#watches.add(watch)
    view.openWatches++
    return watch
  }

  endWatch(watch: WatchCheck): void {
    if (!this.#watches.delete(watch)) return
    if (watch.incarnation === watch.view.incarnation) watch.view.openWatches--
  }

  /** Keeps old states for clients that may come back to them. */
  hold(holder: Holder): void {
    this.#holders.add(holder)
  }

  release(holder: Holder): void {
    this.#holders.delete(holder)
  }

  #onReplicaEnd(replica: number): void {
    const view = this.#views[replica]
    if (view === undefined) return
    for (const operation of view.ended(this.truth)) {
      if (operation instanceof WriteOperation) this.writes.failed(operation, undefined)
      else operation.close()
    }
    // The next process has the next number; until then nothing is sent to it.
    view.incarnation = -1
  }

  readonly #period = (): void => {
    this.#world.after(periodMs, this.#period)
    this.#periods++
    for (const view of this.#views) this.#keepTicking(view)
    const now = this.#world.now()
    this.#forget()
    for (const watch of this.#watches) this.calm.checkWatch(watch)
    if ((this.#periods * periodMs) % retentionEveryMs === 0) {
      this.retention.check(now, this.#world.calmSince)
      this.writes.forgetOld(now)
    }
    this.#probe(now)
  }

  /** Follows restarts, and starts the ticks of a new process. */
  #keepTicking(view: ReplicaView): void {
    const { replica } = view
    if (replica.parts === undefined) return
    const { incarnation } = replica
    view.incarnation = incarnation
    if (this.#ticking[view.index] === incarnation) return
    this.#ticking[view.index] = incarnation
    const tick = (): void => {
      const { parts } = replica
      if (parts === undefined || replica.incarnation !== incarnation) return
      replica.after(tickMs, tick)
      this.calm.tick(view, parts)
    }
    replica.after(tickMs, tick)
  }

  /** Forgets what neither an operation, nor a watch, a list or the memory of a replica needs. */
  #forget(): void {
    const { truth } = this
    const { epoch } = truth
    let floor = truth.newest
    let oldest = epoch
    const note = (holder: Holder): void => {
      if (holder.epoch < oldest) oldest = holder.epoch
      else if (holder.epoch === epoch && holder.floor < floor) floor = holder.floor
    }
    for (const view of this.#views) {
      for (const operation of view.open) note(operation)
      const memory = Math.max(view.memoryRevision, view.sinceRevision)
      note({ epoch: view.sinceEpoch, floor: memory })
    }
    for (const watch of this.#watches) note(watch)
    for (const chain of this.lists.chains) note(chain)
    for (const holder of this.#holders) note(holder)
    if (oldest < epoch) return
    truth.forgetPast()
    truth.forget(floor)
  }

  #probe(now: number): void {
    const since = this.calm.recoveredSince
    if (since === undefined) return
    const calm = this.#world.calmSince
    if (this.#comparedCalm !== calm) {
      this.#comparedCalm = calm
      this.compareState()
    }
    for (const view of this.#views) {
      const offsetMs = view.index * periodMs
      const sinceMs = now - since - offsetMs
      if (sinceMs < 0 || Math.floor(sinceMs / periodMs) % (probeEveryMs / periodMs) !== 0) continue
      this.#probeOne(view)
    }
    this.#checkConverged(now, since)
  }

  #probeOne(view: ReplicaView): void {
    const { replica } = view
    replica.after(0, () => {
      const { parts } = replica
      if (parts !== undefined) this.calm.probe(view, parts)
    })
  }

  #checkConverged(now: number, since: number): void {
    const lateMs = probeEveryMs + probeLateMs
    for (const view of this.#views) {
      if (now - Math.max(since, view.convergedAt) <= lateMs) continue
      this.reporter.report(
        'replicas converge',
        `replica ${view.index} has not returned all events for ${lateMs} ms in a calm world`,
      )
    }
  }

  /** The model of these checks against the simulated etcd itself. */
  compareState(): void {
    const { current } = this.truth
    let count = 0
    for (const [key, change] of this.#world.cluster.state()) {
      const at = key.indexOf(eventsFolder)
      const path = key.slice(at + eventsFolder.length)
      if (at < 0 || path === '') continue
      count++
      const head = current.head(path)
      if (head !== undefined && !head.isDelete && head.revision === change.modRevision) continue
      this.reporter.report('simulated etcd', `${path} is not in the state that was committed`)
    }
    let expected = 0
    for (const { head } of current.keys) if (!head.isDelete) expected++
    if (count === expected) return
    const what = `etcd has ${count} events, but ${expected} were committed and not deleted`
    this.reporter.report('simulated etcd', what)
  }

  /** The final checks begin: the world has been calm for `calmNeededMs`. */
  atEnd(): void {
    const now = this.#world.now()
    this.#endedAt = now
    this.compareState()
    this.retention.check(now, this.#world.calmSince)
    for (const watch of this.#watches) this.calm.checkWatch(watch)
    for (const view of this.#views) this.#probeOne(view)
  }

  /** The replicas have had time to answer the final reads. */
  hasEnded(): void {
    const since = this.#endedAt ?? this.#world.now()
    for (const view of this.#views) {
      if (view.convergedAt >= since) continue
      const what = `replica ${view.index} did not return all events at the end`
      this.reporter.report('replicas converge', what)
    }
  }
}
