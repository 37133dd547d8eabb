/**
 * What must be true of a world without faults, and bounds that hold always: nothing is refused,
 * nothing takes long, nothing grows, and every replica has exactly the state of etcd.
 */

import { defaultMemoryBounds } from '../../../src/cache/memory/memory.ts'
import { defaultHistoryBounds } from '../../../src/cache/watch/history.ts'
import { aLane } from '../../../src/lib/run-queue.fixture.ts'
import type { Version } from '../../../src/storage/resource-version.ts'
import type { ClientWorld, ReplicaParts } from '../workload/contract.ts'
import { describeFailure, type Failure, failureOf, isUnavailability } from './failures.ts'
import type { ListChecks } from './lists.ts'
import { longestMs, type Operation, type ReplicaView, tickMs } from './operations.ts'
import type { ReadChecks } from './reads.ts'
import type { Reporter } from './reporter.ts'
import { revisionIn } from './stored-text.ts'
import type { Truth } from './truth.ts'
import type { WatchCheck } from './watches.ts'

/**
 * After the last fault, everything works again within this time. What may take longest, one after
 * the other: a restarted process is started within 3 s and connects within at most 10 s
 * (`connectTimeoutMostMs`); or a member counts as unavailable until a probe of at most 6 s
 * (`probeTimeoutMs`) succeeds, and as suspect for 10 s (`suspicionMs`); a silent watch stream is
 * left after at most 30 s (`silenceTimeoutMostMs`, if it had doubled that far), and the reflector
 * retries after at most 5 s (`retryMostMs`).
 */
export const recoveryMs = 45_000

/**
 * The longest that calls take in a calm world: below 3 s for reads, since a read that memory does
 * not serve within 3 s (`freshnessWaitMsMax`) is served by etcd, which would hide a lost wakeup.
 */
const calmMs: Readonly<Record<string, number>> = {
  get: 2_500,
  list: 4_000,
  create: 4_000,
  update: 8_000,
  delete: 8_000,
}

/** Changes reach watchers within milliseconds; a watcher that has to catch up takes a few steps. */
const watchLagMsMax = 10_000
const progressMsMax = 6_000

/** More than any event of the simulation, with its key and its field owners. */
const operationBytesMax = 4_096
/** src/retention/sweeper.ts: deletes of one batch. */
const sweepsAtOnce = 500

/** Watches of production code itself: the sweeper follows all events; two terms may overlap. */
const ownWatches = 2

/** How far behind memory may be in a calm world. */
const memoryLagMsMax = 5_000
const everything = 1_000_000

export interface CalmOptions {
  readonly world: ClientWorld
  readonly truth: Truth
  readonly reads: ReadChecks
  readonly lists: ListChecks
  readonly reporter: Reporter
}

export class CalmChecks {
  readonly #options: CalmOptions

  constructor(options: CalmOptions) {
    this.#options = options
  }

  /** The world has been without faults, and had time to recover, since this time. */
  get recoveredSince(): number | undefined {
    const { world } = this.#options
    const { calmSince } = world
    if (calmSince === undefined) return undefined
    const at = calmSince + recoveryMs
    return at <= world.now() ? at : undefined
  }

  /** A call of production code has ended. */
  settled(operation: Operation, failure: Failure | undefined): void {
    const { world, reporter } = this.#options
    if (failure?.kind === 'unexpected') {
      const what = `a call failed with an error that clients must never get: ${describeFailure(failure)}`
      reporter.report('no internal errors', what, [operation.describe()])
      return
    }
    const since = this.recoveredSince
    if (since === undefined || operation.startedAt < since) return
    if (operation.cancelledTick !== undefined) return
    if (failure !== undefined && (isUnavailability(failure.kind) || failure.kind === 'conflict')) {
      const what = `a call was refused in a calm world: ${describeFailure(failure)}`
      reporter.report('a calm world serves everything', what, [operation.describe()])
    }
    const tookMs = world.now() - operation.startedAt
    if (tookMs > (calmMs[operation.kind] ?? Number.POSITIVE_INFINITY)) {
      const what = `a call took ${tookMs.toFixed(0)} ms in a calm world`
      reporter.report('a calm world is fast', what, [operation.describe()])
    }
  }

  /** Runs in the process of the replica, once for each tick of its own time. */
  tick(view: ReplicaView, parts: ReplicaParts): void {
    view.ticks++
    this.#checkOpen(view)
    this.#checkBounds(view, parts)
    this.observe(view, parts)
  }

  #checkOpen(view: ReplicaView): void {
    const { world, reporter } = this.#options
    for (const operation of view.open) {
      const ageMs = (view.ticks - operation.startedTick - 1) * tickMs
      const { cancelledTick } = operation
      const cancelledMs =
        cancelledTick === undefined ? 0 : (view.ticks - cancelledTick - 1) * tickMs
      if (ageMs <= operation.longestMs && cancelledMs <= longestMs.cancelled) continue
      const what =
        cancelledMs > longestMs.cancelled
          ? `a read was cancelled ${cancelledMs} ms ago and has not ended`
          : `a call has been open for ${ageMs} ms of the process's own time, at most ${operation.longestMs} ms are possible`
      reporter.report('every call ends', what, [operation.describe(), `now ${world.now()} ms`])
      return
    }
  }

  #checkBounds(view: ReplicaView, parts: ReplicaParts): void {
    const { world } = this.#options
    const stats = parts.stats?.()
    const waiting = parts.waitingWrites?.()
    let reads = 0
    for (const { kind } of view.open) if (kind === 'list') reads++
    if (waiting !== undefined) {
      this.#bound(view, 'queued writes', waiting.operations, view.open.size - reads + sweepsAtOnce)
      this.#bound(view, 'queued bytes', waiting.bytes, waiting.operations * operationBytesMax)
    }
    if (stats === undefined) return
    this.#bound(view, 'changes in the ring', stats.historyChanges, world.limits.historyChangesMax)
    this.#bound(view, 'bytes in the ring', stats.historyBytes, defaultHistoryBounds.bytesMax)
    // A state is retained for each list in progress, and trimmed with the next change.
    const statesMax = defaultMemoryBounds.statesMax + reads + 1
    this.#bound(view, 'retained states', stats.statesKept, statesMax)
    this.#bound(view, 'waiting watchers', stats.watchersWaiting, view.openWatches + ownWatches)
  }

  #bound(view: ReplicaView, what: string, value: number, most: number): void {
    if (value <= most && value >= 0) return
    const { reporter } = this.#options
    reporter.report(
      'bounds',
      `replica ${view.index} has ${value} ${what}, at most ${most} are possible`,
    )
  }

  /** Notes what memory has reached. */
  observe(view: ReplicaView, { stats }: ReplicaParts): void {
    if (stats === undefined) return
    const { reporter } = this.#options
    const { version, initializations } = stats()
    const revision = revisionIn(version)
    if (revision < view.memoryRevision) {
      const what = `the memory of replica ${view.index} went back from revision ${view.memoryRevision} to ${revision}`
      reporter.report('memory never goes back', what)
    }
    const since = this.recoveredSince
    if (since !== undefined && initializations > view.initializations && view.initializations > 0) {
      const what = `replica ${view.index} loaded all events again in a calm world`
      reporter.report('a calm world needs no reload', what)
    }
    view.memoryRevision = Math.max(view.memoryRevision, revision)
    view.initializations = initializations
  }

  /** Checks that a watch that is being read gets everything soon. */
  checkWatch(watch: WatchCheck): void {
    const { world, reporter, truth } = this.#options
    const since = this.recoveredSince
    if (since === undefined || !watch.isPulled) return
    const now = world.now()
    const beganAt = Math.max(since, watch.startedAt, watch.pulledSince)
    const lagMs = Math.min(watch.lagMs(now), now - beganAt)
    if (lagMs > watchLagMsMax) {
      const what = `a watch has not delivered a change for ${lagMs.toFixed(0)} ms in a calm world`
      reporter.report('watches deliver soon', what, [
        watch.describe(),
        `next: ${watch.describeNext()}`,
      ])
    }
    const wanted = watch.progressWantedSince
    if (wanted === undefined) return
    const newest = truth.revisionAt(wanted) ?? 0
    const waitedMs = now - Math.max(wanted, beganAt)
    if (waitedMs > progressMsMax && revisionIn(watch.version) < newest) {
      const what = `a watch asked for its progress ${waitedMs.toFixed(0)} ms ago and got none, in a calm world`
      reporter.report('watches report progress', what, [watch.describe()])
    }
  }

  /** Compares all events of a replica with etcd: as a consistent read, and as memory has them. */
  probe(view: ReplicaView, parts: ReplicaParts): void {
    const { reads, lists } = this.#options
    this.#list(view, parts, undefined, (operation, page) => {
      lists.sawPage(operation, { namespace: undefined }, page)
      view.convergedAt = operation.startedAt
    })
    this.observe(view, parts)
    const begin = reads.begin.bind(reads)
    this.#list(view, parts, begin(view, { kind: 'list', notOlderThan: 0 }), (operation, page) => {
      lists.sawPage(operation, { namespace: undefined }, page)
      this.#checkMemory(view, operation, page.version)
    })
  }

  #list(
    view: ReplicaView,
    { storage }: ReplicaParts,
    any: Operation | undefined,
    onPage: (operation: Operation, page: SeenAll) => void,
  ): void {
    const { reads } = this.#options
    const operation = any ?? reads.begin(view, { kind: 'list' })
    const notOlderThan = any === undefined ? undefined : (0 as Version)
    const { signal } = new AbortController()
    storage
      .list(
        { cluster: undefined, namespace: undefined },
        { lane: aLane(), limit: everything, notOlderThan, signal },
      )
      .then(
        ({ items, version, more }) => {
          if (!operation.isOpen) return
          this.settled(operation, undefined)
          const rest = { after: undefined, limit: undefined, remaining: undefined }
          onPage(operation, { ...rest, items, version, isCut: more })
        },
        (error: unknown) => {
          if (!operation.isOpen) return
          const failure = failureOf(error)
          reads.failed(operation, failure, undefined)
          this.settled(operation, failure)
        },
      )
  }

  #checkMemory(view: ReplicaView, operation: Operation, version: number): void {
    const { truth, reporter } = this.#options
    const since = this.recoveredSince
    if (since === undefined || operation.startedAt < since + memoryLagMsMax) return
    const wanted = truth.revisionAt(operation.startedAt - memoryLagMsMax) ?? 0
    if (revisionIn(version) >= wanted) return
    reporter.report(
      'memory follows etcd',
      `the memory of replica ${view.index} is at revision ${revisionIn(version)}, but etcd was at revision ${wanted} ${memoryLagMsMax} ms ago`,
      [operation.describe()],
    )
  }
}

type SeenAll = Parameters<ListChecks['sawPage']>[2]
