/**
 * Dispatches changes to the watchers that have read everything and wait.
 *
 * Watchers are indexed by scope, so a change costs only the watchers that want it. All watchers
 * of a scope that wait share one batch. Dispatch goes in rounds: a round covers the changes up
 * to a position, the next round those that arrived meanwhile, so batches grow with the load. A
 * round is cut into slices of the run queue, and after it the dispatcher rests for
 * as long as it took: writing to all watchers costs the same for one change as for ten.
 *
 * | state     | `#round` | `#isScheduled` | left by
 * | --------- | -------- | -------------- | ---------------------------------------------------
 * | idle      | none     | false          | `changed` -> scheduled
 * | scheduled | none     | true           | a slice after the rest: begins a round -> in round
 * | in round  | set      | true           | the last slice ends the
 * |           |          |                | round -> scheduled if changes arrived, else idle
 *
 * `restarted` replaces the current round, in any state, with one that sends all waiting watchers to
 * recheck the history (-> in round).
 */

import type { Clock } from '../../lib/clock.ts'
import { type Lane, sliceMs } from '../../lib/run-queue.ts'
import { allEvents, scopePath } from '../../storage/event-scope.ts'
import { SharedBatch } from '../../storage/frames.ts'
import { isAfter, type Version } from '../../storage/resource-version.ts'
import type { EventScope, WatchItem } from '../../storage/storage.ts'
import type { History } from './history.ts'

/** Watchers notified between two reads of the clock: each takes 5 to 50 microseconds. */
const notifiedPerClockRead = 16
/**
 * The longest rest between rounds, however long they take: other processes may hold the core, too.
 */
const restMsMax = 10
/** Changes in one round; a transaction is never split. */
const roundChanges = 1_000

/** A watcher that has read everything that rounds have covered, up to `position`, and waits. */
export interface WaitingWatcher {
  readonly scope: EventScope
  readonly position: number
  /** Changes up to this version are not wanted, although they are after `position`. */
  readonly floor: Version
  readonly wantsProgress: boolean
  /** Set by the fan-out only; initially false. */
  isWaiting: boolean
  /** Ends the wait with a batch. `end` is the position after the batch. */
  deliver(batch: SharedBatch, end: number): void
  /** Ends the wait: the watcher must look for itself what the history has after `dispatched`. */
  recheck(dispatched: DispatchPoint): void
}

/** All changes before the position, up to the version, have been dispatched. */
export interface DispatchPoint {
  readonly position: number
  readonly version: Version
  /** `History.updates` at that time. */
  readonly updates: number
}

/** The changes of one scope that a round delivers. */
interface Delivery {
  readonly items: WatchItem[]
  /** Position of the first item. */
  readonly first: number
  readonly watchers: Iterable<WaitingWatcher>
}

interface Round {
  /** The sum of its slices. */
  tookMs: number
  readonly end: DispatchPoint
  /** Each step notifies as many watchers as fit into a slice. */
  readonly slices: Iterator<void>
}

const everything = scopePath(allEvents)

export class FanOut {
  readonly #history: History
  readonly #clock: Clock
  readonly #lane: Lane
  /**
   * All watchers that have waited at least once and have not left, whether or not they wait now, by
   * the path of their scope.
   */
  readonly #watchers = new Map<string, Set<WaitingWatcher>>()
  /** Waiting watchers that want progress as well. */
  readonly #wantingProgress = new Set<WaitingWatcher>()
  /** Watchers that wait for the history to restart, only. */
  readonly #awaitingRestart = new Set<WaitingWatcher>()
  readonly #tick = (): void => this.#runSlice()
  #round: Round | undefined
  #isScheduled = false
  #sliceEndsAtMs = 0
  #restEndsAtMs = 0
  /** The end of the last complete round. */
  #lastEnd: DispatchPoint
  #count = 0
  #dispatched = 0

  constructor(history: History, clock: Clock, lane: Lane) {
    this.#history = history
    this.#clock = clock
    this.#lane = lane
    this.#lastEnd = endOf(history)
  }

  get waitingCount(): number {
    return this.#count + this.#awaitingRestart.size
  }

  /** Changes delivered, counted once for each watcher. */
  get dispatched(): number {
    return this.#dispatched
  }

  countDispatched(changes: number): void {
    this.#dispatched += changes
  }

  /**
   * The end of the current round, or of the last one between rounds. A watcher that is further back reads up
   * to here by itself; one that has reached it waits for the next round and shares its batch.
   */
  get roundEnd(): DispatchPoint {
    return this.#round?.end ?? this.#lastEnd
  }

  /** The watcher must have read everything up to `roundEnd`. */
  wait(watcher: WaitingWatcher): void {
    const path = scopePath(watcher.scope)
    const others = this.#watchers.get(path)
    if (others === undefined) this.#watchers.set(path, new Set([watcher]))
    else others.add(watcher)
    watcher.isWaiting = true
    this.#count++
    if (watcher.wantsProgress) this.#wantingProgress.add(watcher)
  }

  /** Waits while there is no history to read. */
  waitForRestart(watcher: WaitingWatcher): void {
    this.#awaitingRestart.add(watcher)
  }

  /** If the watcher waits, it is rechecked after the next round, even without a change for it. */
  requestProgress(watcher: WaitingWatcher): void {
    if (watcher.isWaiting) this.#wantingProgress.add(watcher)
  }

  leave(watcher: WaitingWatcher): void {
    this.#release(watcher)
    const path = scopePath(watcher.scope)
    const others = this.#watchers.get(path)
    if (others?.delete(watcher) === true && others.size === 0) this.#watchers.delete(path)
  }

  /** The history was updated, if only by progress without changes. */
  changed(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    const restMs = this.#round === undefined ? this.#restEndsAtMs - this.#clock.now() : 0
    // Timers have a resolution of 1 ms.
    if (restMs < 1) this.#lane.schedule(this.#tick)
    else setTimeout(() => this.#lane.schedule(this.#tick), restMs)
  }

  /** The history restarted: all watchers recheck it, and nothing is delivered before all have. */
  restarted(): void {
    const all = [...this.#waiting(), ...this.#awaitingRestart]
    this.#round = {
      tookMs: 0,
      end: endOf(this.#history),
      slices: this.#recheckAll(all, this.#lastEnd),
    }
    this.changed()
  }

  #runSlice(): void {
    this.#isScheduled = false
    const beganAtMs = this.#clock.now()
    this.#sliceEndsAtMs = beganAtMs + sliceMs
    this.#round ??= this.#beginRound()
    const round = this.#round
    const isLast = round.slices.next().done === true
    const endedAtMs = this.#clock.now()
    round.tookMs += endedAtMs - beganAtMs
    if (isLast) {
      this.#round = undefined
      this.#lastEnd = round.end
      this.#restEndsAtMs = endedAtMs + Math.min(round.tookMs, restMsMax)
      if (round.end.position === this.#history.head) return
    }
    this.changed()
  }

  #beginRound(): Round {
    const history = this.#history
    const { position, updates } = this.#lastEnd
    const now = endOf(history)
    // If it is before the tail, more changes arrived in one tick than the ring holds.
    if (position >= history.tail) {
      const whole = { scope: allEvents, enough: roundChanges, until: now }
      const { items, end, version } = history.read(position, whole)
      const isAll = end === now.position
      const roundEnd = { position: end, version, updates: isAll ? now.updates : updates }
      const slices = this.#deliverAll(this.#deliveriesOf(position, items), roundEnd)
      return { tookMs: 0, end: roundEnd, slices }
    }
    return { tookMs: 0, end: now, slices: this.#recheckAll(this.#waiting(), this.#lastEnd) }
  }

  #deliveriesOf(start: number, items: readonly WatchItem[]): readonly Delivery[] {
    if (this.#watchers.size === 0) return []
    const deliveries = new Map<string, Delivery>()
    const add = (path: string, item: WatchItem, first: number) => {
      const known = deliveries.get(path)
      if (known !== undefined) {
        known.items.push(item)
        return
      }
      const watchers = this.#watchers.get(path)
      if (watchers !== undefined) deliveries.set(path, { items: [item], first, watchers })
    }
    for (const [index, item] of items.entries()) {
      const { cluster, namespace } = item.stored.key
      add(everything, item, start + index)
      add(scopePath({ cluster, namespace: undefined }), item, start + index)
      add(scopePath({ cluster, namespace }), item, start + index)
    }
    return [...deliveries.values()]
  }

  /**
   * A waiting watcher has been sent everything before the round, so if its position is before the
   * first item, no change for it lies in between. A watcher that starts to wait during the round
   * has read up to the end of the round already.
   */
  *#deliverAll(
    deliveries: readonly Delivery[],
    end: DispatchPoint,
  ): Generator<void, void, undefined> {
    const before = this.#lastEnd
    let notified = 0
    for (const { items, first, watchers } of deliveries) {
      const batch = new SharedBatch(items, end.version)
      const from = items[0]?.stored.version ?? end.version
      for (const watcher of watchers) {
        if (!watcher.isWaiting || watcher.position >= end.position) continue
        this.#release(watcher)
        if (watcher.position <= first && isAfter(from, watcher.floor)) {
          this.#dispatched += items.length
          watcher.deliver(batch, end.position)
        } else watcher.recheck(before)
        if (this.#isSliceOver(++notified)) yield
      }
    }
    yield* this.#recheckAll([...this.#wantingProgress], end)
  }

  *#recheckAll(
    watchers: readonly WaitingWatcher[],
    dispatched: DispatchPoint,
  ): Generator<void, void, undefined> {
    let notified = 0
    for (const watcher of watchers) {
      if (!this.#release(watcher)) continue
      watcher.recheck(dispatched)
      if (this.#isSliceOver(++notified)) yield
    }
  }

  #isSliceOver(notified: number): boolean {
    return notified % notifiedPerClockRead === 0 && this.#clock.now() >= this.#sliceEndsAtMs
  }

  /** False if it no longer waits: it has left, or was notified otherwise, since the round began. */
  #release(watcher: WaitingWatcher): boolean {
    if (!watcher.isWaiting) return this.#awaitingRestart.delete(watcher)
    watcher.isWaiting = false
    this.#count--
    if (watcher.wantsProgress) this.#wantingProgress.delete(watcher)
    return true
  }

  #waiting(): readonly WaitingWatcher[] {
    return [...this.#watchers.values()].flatMap((all) => [...all].filter((one) => one.isWaiting))
  }
}

function endOf(history: History): DispatchPoint {
  return { position: history.head, version: history.version, updates: history.updates }
}
