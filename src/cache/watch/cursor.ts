/**
 * A watch as a position in the history: it has no buffer and moves only when its consumer pulls.
 *
 * While the consumer is close behind, changes are read from the ring at once. When it stays away for
 * longer, the cursor catches up, one step for each pull, from the ring or from the store's own
 * history. It holds nothing open between steps, so a stalled consumer costs no more than this object.
 *
 * If the history restarts after the cursor has read in it, the store may have been restored: the
 * cursor ends with `compacted`, and its consumer has to list again.
 *
 * A cursor is always in one of these states:
 *
 * | state            | fields                    | meaning
 * | ---------------- | ------------------------- | ------------------------------------------------
 * | new              | not `#isStarted`          | not iterated or taken from yet
 * | idle             | no `#wake`, no `#ready`   | the consumer is busy; registered nowhere
 * | waiting          | `#wake`, `isWaiting`      | read up to `roundEnd`; registered in the fan-out
 * | awaiting restart | `#wake`, no `#position`   | the cache is not current; registered in the
 * |                  |                           | fan-out until the history restarts
 * | catching up      | `#wake`, no `#position`   | far behind; a `catchUp` step runs
 * | ready            | `#ready`                  | has found a batch and called the wake
 * | failed           | `#isEnded`, `#failure`    | the error has not been thrown to the consumer
 * | over             | `#isEnded`, no `#failure` | `isOver` is true once `#ready` has been taken
 *
 * Events move it. "Looks" means `#readRing`, then `#wait` if that found nothing:
 *
 * | event                   | in state                  | effect
 * | ----------------------- | ------------------------- | ----------------------------------------
 * | `take`                  | new                       | starts (if aborted -> over), then as idle
 * |                         | idle                      | looks; a batch is returned -> idle
 * |                         | ready                     | returns the batch -> idle
 * |                         | failed                    | throws the error -> over
 * |                         | over                      | returns `#ready` if retained
 * | `deliver`, by fan-out   | waiting                   | -> ready
 * | `recheck`, by fan-out   | waiting, awaiting restart | looks; a batch -> ready
 * | `catchUp`: changes      | catching up               | -> ready
 * | `catchUp`: no changes   | catching up               | looks; a batch -> ready
 * | `catchUp` rejects       | catching up               | -> failed
 * | the signal aborts       | all but new and failed    | -> over; a ready batch stays
 * | `stop`                  | all but failed            | -> over; a ready batch is dropped
 * | `requestProgress`       | all                       | no move; a later look may find an empty
 * |                         |                           | batch that carries the version
 *
 * A look ends in the first of these that applies:
 *
 * | condition                                                   | effect
 * | ----------------------------------------------------------- | --------------------------------
 * | the history has restarted since the cursor first read in it | -> failed with `compacted`; a
 * |                                                             | `take` throws it at once
 * | the cache is not current                                    | -> awaiting restart
 * | the position is before `History.prompt`                     | -> catching up
 * | there are changes up to `roundEnd`, or requested progress   | a batch is found
 * | none of these                                               | -> waiting
 *
 * Leaving waiting, awaiting restart or catching up for ready, failed or over calls the wake, once.
 * The consumer does not call `take` in these three states: `Pull` has it wait for the wake.
 */

import { AbortListener } from '../../lib/abort.ts'
import { Pulled } from '../../lib/pull.ts'
import { StorageError } from '../../storage/errors.ts'
import { bodyBytes, SharedBatch } from '../../storage/frames.ts'
import { isAfter, type Version } from '../../storage/resource-version.ts'
import type { EventScope, PulledWatch, WatchBatch, WatchOptions } from '../../storage/storage.ts'
import type { DispatchPoint, FanOut, WaitingWatcher } from './fan-out.ts'
import type { History } from './history.ts'

/**
 * Changes in one batch; a transaction is never split. A consumer that does not read retains its
 * batch.
 */
export const batchChanges = 50

export interface CursorOptions extends WatchOptions {
  readonly scope: EventScope
  readonly history: History
  readonly fanOut: FanOut
  /** Whether there is a history to read. Each time this becomes true, the history has restarted. */
  readonly isCurrent: () => boolean
  /** Reads the next batch after a version, or progress at least up to where the ring begins. */
  readonly catchUp: (step: CatchUpStep) => Promise<WatchBatch | undefined>
  readonly requestProgress: () => void
}

export interface CatchUpStep extends WatchOptions {
  readonly scope: EventScope
}

export class Cursor implements PulledWatch, WaitingWatcher {
  readonly scope: EventScope
  isWaiting = false
  readonly #options: CursorOptions
  /** Undefined: far behind, or not looked up yet. */
  #position: number | undefined
  /** All changes in scope up to this version have been handed over, or are not wanted. */
  #version: Version
  /** `History.restarts` when the cursor first read in the history. */
  #restarts: number | undefined
  /** `History.updates` when progress was requested; undefined when it is not. */
  #progressRequestedAt: number | undefined
  /** Set while the consumer waits. */
  #wake: (() => void) | undefined
  /** The last batch that the consumer took, which it may hold until it takes the next one. */
  #taken: WatchBatch | undefined
  /** Found while the consumer waited; its next `take` returns it. */
  #ready: WatchBatch | undefined
  #failure: { readonly error: unknown } | undefined
  #isStarted = false
  #listener: AbortListener | undefined
  #isEnded = false

  constructor(options: CursorOptions) {
    this.#options = options
    this.scope = options.scope
    this.#version = options.from
  }

  get position(): number {
    return this.#position ?? 0
  }

  get floor(): Version {
    return this.#version
  }

  get wantsProgress(): boolean {
    return this.#progressRequestedAt !== undefined
  }

  get isOver(): boolean {
    return this.#isEnded && this.#ready === undefined && this.#failure === undefined
  }

  /**
   * Size of the last batch taken, once it is behind `History.prompt`: its encoded pieces, which the
   * ring does not count, are then in memory only for this consumer and others that share them. A batch
   * from a catch-up, whether from the ring or from the store, is charged at once.
   */
  get heldBytes(): number {
    const taken = this.#taken
    const position = this.#position
    if (taken === undefined) return 0
    if (position !== undefined && position > this.#options.history.prompt) return 0
    return taken instanceof SharedBatch ? taken.bytesOfEach : bodyBytes(taken.items)
  }

  requestProgress(): void {
    const { history, fanOut, requestProgress } = this.#options
    this.#progressRequestedAt ??= history.updates
    fanOut.requestProgress(this)
    requestProgress()
  }

  [Symbol.asyncIterator](): AsyncIterator<WatchBatch, undefined> {
    if (this.#isStarted) throw new Error('a watch can be iterated only once')
    this.#start()
    return new Pulled(this)
  }

  take(wake: () => void): WatchBatch | undefined {
    // Released before the next one is found, which may fail.
    this.#hold(undefined)
    const batch = this.#next(wake)
    this.#hold(batch)
    return batch
  }

  #hold(batch: WatchBatch | undefined): void {
    if (this.#taken instanceof SharedBatch) this.#taken.holders--
    if (batch instanceof SharedBatch) batch.holders++
    this.#taken = batch
  }

  #next(wake: () => void): WatchBatch | undefined {
    if (!this.#isStarted) this.#start()
    const ready = this.#ready
    if (ready !== undefined) {
      this.#ready = undefined
      return ready
    }
    if (this.#isEnded) {
      const failure = this.#failure
      this.#failure = undefined
      if (failure !== undefined) throw failure.error
      return undefined
    }
    const batch = this.#readRing()
    if (batch !== undefined) return batch
    if (this.#failure !== undefined) return this.#next(wake)
    this.#wake = wake
    this.#wait()
    return undefined
  }

  stop(): void {
    this.#hold(undefined)
    this.#ready = undefined
    this.#end()
  }

  deliver(batch: SharedBatch, end: number): void {
    this.#position = end
    this.#version = batch.version
    this.#progressRequestedAt = undefined
    this.#makeReady(batch)
  }

  recheck(dispatched: DispatchPoint): void {
    if (this.#position !== undefined && this.#position < dispatched.position) {
      this.#position = dispatched.position
      if (isAfter(dispatched.version, this.#version)) this.#version = dispatched.version
    }
    this.#look()
  }

  #start(): void {
    this.#isStarted = true
    this.#listener = new AbortListener(this.#options.signal, this.#end)
  }

  /** Finds a batch for the waiting consumer, or waits for one. */
  #look(): void {
    const batch = this.#readRing()
    if (batch !== undefined) this.#makeReady(batch)
    else if (!this.#isEnded) this.#wait()
  }

  /** Waits for what the ring does not have. */
  #wait(): void {
    const { fanOut, isCurrent } = this.#options
    if (!isCurrent()) {
      this.#position = undefined
      fanOut.waitForRestart(this)
    } else if (this.#position !== undefined) fanOut.wait(this)
    else this.#startCatchUp()
  }

  #startCatchUp(): void {
    this.#catchUp().then(
      (batch) => {
        if (this.#isEnded) return
        if (batch === undefined) this.#look()
        else this.#makeReady(batch)
      },
      (error: unknown) => {
        if (this.#isEnded) return
        this.#failure = { error }
        this.#end()
      },
    )
  }

  /** The next batch; undefined when there is none, or when the cursor is far behind. */
  #readRing(): WatchBatch | undefined {
    const { history, fanOut, isCurrent } = this.#options
    if (this.#restarts !== undefined && this.#restarts !== history.restarts) {
      this.#failure = { error: restarted() }
      this.#end()
      return undefined
    }
    if (!isCurrent()) return undefined
    this.#restarts ??= history.restarts
    this.#position ??= this.#findPosition()
    let position = this.#position
    if (position === undefined) return undefined
    if (position < history.prompt) {
      this.#position = undefined
      return undefined
    }
    const { scope } = this
    const { roundEnd } = fanOut
    while (position < roundEnd.position) {
      const slice = history.read(position, { scope, enough: batchChanges, until: roundEnd })
      const floor = this.#version
      const items = slice.items.filter(({ stored }) => isAfter(stored.version, floor))
      position = slice.end
      this.#advance(position, slice.version)
      if (items.length === 0) continue
      fanOut.countDispatched(items.length)
      this.#progressRequestedAt = undefined
      return { items, version: this.#version }
    }
    const requestedAt = this.#progressRequestedAt
    if (
      requestedAt === undefined ||
      roundEnd.updates <= requestedAt ||
      position > roundEnd.position
    ) {
      return undefined
    }
    this.#advance(position, roundEnd.version)
    this.#progressRequestedAt = undefined
    return { items: [], version: this.#version }
  }

  #advance(position: number, version: Version): void {
    this.#position = position
    if (isAfter(version, this.#version)) this.#version = version
  }

  /** Undefined when the cursor is far behind. */
  #findPosition(): number | undefined {
    const { history } = this.#options
    if (isAfter(history.start, this.#version)) return undefined
    const position = history.positionAfter(this.#version)
    return position < history.prompt ? undefined : position
  }

  /** One step. Undefined when it found no changes. */
  async #catchUp(): Promise<WatchBatch | undefined> {
    const { scope, signal, lane, catchUp, fanOut } = this.#options
    const batch = await catchUp({ scope, from: this.#version, signal, lane })
    if (batch === undefined) return undefined
    if (isAfter(batch.version, this.#version)) this.#version = batch.version
    if (batch.items.length === 0) return undefined
    fanOut.countDispatched(batch.items.length)
    return batch
  }

  #makeReady(batch: WatchBatch): void {
    this.#ready = batch
    this.#callWake()
  }

  #callWake(): void {
    const wake = this.#wake
    this.#wake = undefined
    wake?.()
  }

  readonly #end = (): void => {
    if (this.#isEnded) return
    this.#isEnded = true
    this.#listener?.[Symbol.dispose]()
    this.#options.fanOut.leave(this)
    this.#callWake()
  }
}

function restarted(): StorageError {
  return new StorageError({
    kind: 'compacted',
    message: 'all events were loaded again from the store: the changes in between are not known',
  })
}
