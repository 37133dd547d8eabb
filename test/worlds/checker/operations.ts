/** Calls of production code that are open, and the replicas that they were sent to. */
import type { ClientWorld, WorldReplica } from '../workload/contract.ts'
import type { Truth } from './truth.ts'

/** How often each replica's process counts a tick: its own time, which stops while it is paused. */
export const tickMs = 1_000

/**
 * The longest that a call may take, in the own time of its process; from the constants of
 * production code:
 *
 * - every call to etcd ends after 10 s (`CALL_TIMEOUT_MS`), a transaction after 3 s (`txnTimeoutMs`);
 * - a get waits for a shared read of the newest version (at most for the one in flight and its
 *   successor: 20 s), then for memory (`freshnessWaitMsMax`: 3 s), then reads from etcd (10 s);
 * - a list does the same, with a few ranges of 10 s each, and an error about a future version asks
 *   once more for the newest version (20 s);
 * - a write waits at most 5 s to be sent (`sendWithinMs`), behind at most one transaction on the
 *   same key (3 s), then 3 s for its own;
 * - an update begins its last attempt before 30 s (`updateTimeoutMs`) are over, and that attempt is
 *   a read and a write (21 s); it may have queued behind another update of the key that does the
 *   same, after which it is refused at once.
 *
 * Each is more than doubled: a loaded process falls behind its timers. A call that hangs is found
 * anyway, since it hangs forever; slow calls are found in a calm world.
 */
export const longestMs: Readonly<
  Record<'get' | 'list' | 'create' | 'update' | 'cancelled', number>
> = {
  get: 90_000,
  list: 180_000,
  create: 45_000,
  update: 140_000,
  /** A read that was cancelled has nothing left to wait for. */
  cancelled: 20_000,
}

export class Operation {
  readonly view: ReplicaView
  readonly kind: string
  readonly longestMs: number
  readonly startedAt: number
  readonly startedTick: number
  epoch = 0
  /** The newest revision when it began. */
  revision = 0
  /** The oldest state that it may return. */
  floor = 0
  /** The revision of exactly the state that was asked for. */
  wanted: number | undefined
  /** It may be served from memory of an earlier epoch. */
  isLenient = false
  cancelledTick: number | undefined
  isOpen = true

  /** The epoch of the state that it returned. */
  seenEpoch: number | undefined

  constructor(view: ReplicaView, kind: string, limitMs: number) {
    this.view = view
    this.kind = kind
    this.longestMs = limitMs
    this.startedAt = view.world.now()
    this.startedTick = view.ticks
    view.open.add(this)
  }

  /** Its place in the history. */
  begin(truth: Truth): void {
    this.epoch = truth.epoch
    this.revision = truth.newest
    this.floor = this.revision
  }

  close(): void {
    this.isOpen = false
    this.view.open.delete(this)
  }

  /** The client has aborted its signal. */
  cancel(): void {
    this.cancelledTick ??= this.view.ticks
  }

  describe(): string {
    const { view, kind, startedAt, revision } = this
    return `${kind} at replica ${view.index} (process ${view.incarnation}), begun at ${startedAt.toFixed(1)} ms, when the newest revision was ${revision}`
  }
}

/** Whatever needs old states: open operations, watches, and lists that may continue. */
export interface Holder {
  readonly epoch: number
  /** The oldest revision that is needed. */
  readonly floor: number
}

/** What the checks know about one replica. */
export class ReplicaView {
  readonly world: ClientWorld
  readonly index: number
  incarnation: number
  /** Own time of the process, in ticks. */
  ticks = 0
  /** The process began in this epoch or a later one, with at least this revision. */
  sinceEpoch = 0
  sinceRevision = 0
  /** The newest revision that memory is known to have reached, in this process. */
  memoryRevision = 0
  initializations = 0
  openWatches = 0
  /** When the last comparison of all events succeeded. */
  convergedAt: number = Number.NEGATIVE_INFINITY
  readonly open: Set<Operation> = new Set()
  readonly #replica: WorldReplica

  constructor(world: ClientWorld, index: number) {
    const replica = world.replicas[index]
    if (replica === undefined) throw new RangeError(`no replica ${index}`)
    this.world = world
    this.index = index
    this.#replica = replica
    this.incarnation = replica.incarnation
  }

  get replica(): WorldReplica {
    return this.#replica
  }

  /** The process has ended: all that was known of it is void. */
  ended(truth: Truth): readonly Operation[] {
    const lost = [...this.open]
    this.open.clear()
    this.ticks = 0
    this.sinceEpoch = truth.epoch
    this.sinceRevision = truth.newest
    this.memoryRevision = 0
    this.initializations = 0
    this.openWatches = 0
    this.convergedAt = Number.NEGATIVE_INFINITY
    return lost
  }
}
