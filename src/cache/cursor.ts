/**
 * A watch as a position in the history: it owns no buffer and moves only when its consumer pulls.
 *
 * While what comes next is in the ring it is read from there. A consumer that stayed away for too
 * long finds its position gone, and goes on in the store behind, one step for each pull, until it
 * has caught up with the ring. Between steps nothing is held open, so a consumer that stalls costs
 * no more than this object.
 *
 * A history that began anew after the cursor has read in it may be that of a store which was restored:
 * the cursor ends with `compacted`, and its consumer has to list again.
 */

import { Pulled } from '../lib/pull.ts'
import { StorageError } from '../storage/errors.ts'
import { bodyBytes, SharedBatch } from '../storage/frames.ts'
import { isAfter, type Version } from '../storage/resource-version.ts'
import type { EventScope, PulledWatch, WatchBatch } from '../storage/storage.ts'
import type { FanOut, Seen, Waiting } from './fan-out.ts'
import type { History } from './history.ts'

/** Changes handed over at once, when transactions allow. Who does not read keeps them from leaving. */
const batchChanges = 50

export interface CursorOptions {
  readonly scope: EventScope
  readonly from: Version
  readonly signal: AbortSignal
  readonly history: History
  readonly fanOut: FanOut
  /** Whether there is a history to read; when that comes to be, it has begun anew. */
  readonly isOpen: () => boolean
  /** The next batch after a version out of the store behind, or progress up to `until`. */
  readonly readBehind: (step: BehindStep) => Promise<WatchBatch | undefined>
  readonly askForProgress: () => void
}

export interface BehindStep {
  readonly scope: EventScope
  readonly from: Version
  readonly until: Version
  readonly signal: AbortSignal
}

export class Cursor implements PulledWatch, Waiting {
  readonly namespace: string | undefined
  isWaiting = false
  readonly #options: CursorOptions
  /** Undefined: not in the ring, as far as is known. */
  #position: number | undefined
  /** Everything up to here has been handed over, or is not wanted. */
  #version: Version
  /** Of the history, since this began to read in it. */
  #restarts: number | undefined
  #progressAskedAt: number | undefined
  /** Of the consumer who waits. */
  #wake: (() => void) | undefined
  /** Taken by the consumer, which has not asked for more since. */
  #taken: WatchBatch | undefined
  /** Found for the consumer while it waited. */
  #due: WatchBatch | undefined
  #failure: { readonly error: unknown } | undefined
  #isStarted = false
  #isEnded = false

  constructor(options: CursorOptions) {
    this.#options = options
    this.namespace = options.scope.namespace
    this.#version = options.from
  }

  get position(): number {
    return this.#position ?? 0
  }

  get floor(): Version {
    return this.#version
  }

  get wantsProgress(): boolean {
    return this.#progressAskedAt !== undefined
  }

  get isOver(): boolean {
    return this.#isEnded && this.#due === undefined && this.#failure === undefined
  }

  /** Of the batch that was taken last: once it has left the ring it is here for this consumer alone. */
  get heldBytes(): number {
    const taken = this.#taken
    const position = this.#position
    if (taken === undefined) return 0
    if (position !== undefined && position > this.#options.history.tail) return 0
    return taken instanceof SharedBatch ? taken.bytes : bodyBytes(taken.items)
  }

  requestProgress(): void {
    const { history, fanOut, askForProgress } = this.#options
    this.#progressAskedAt ??= history.beats
    fanOut.inquire(this)
    askForProgress()
  }

  [Symbol.asyncIterator](): AsyncIterator<WatchBatch, undefined> {
    if (this.#isStarted) throw new Error('a watch is iterated once')
    this.#start()
    return new Pulled(this)
  }

  take(wake: () => void): WatchBatch | undefined {
    this.#taken = this.#next(wake)
    return this.#taken
  }

  #next(wake: () => void): WatchBatch | undefined {
    if (!this.#isStarted) this.#start()
    const due = this.#due
    if (due !== undefined) {
      this.#due = undefined
      return due
    }
    if (this.#isEnded) {
      const failure = this.#failure
      this.#failure = undefined
      if (failure !== undefined) throw failure.error
      return undefined
    }
    const batch = this.#fromRing()
    if (batch !== undefined) return batch
    if (this.#failure !== undefined) return this.#next(wake)
    this.#wake = wake
    this.#wait()
    return undefined
  }

  stop(): void {
    this.#taken = undefined
    this.#due = undefined
    this.#end()
  }

  deliver(batch: SharedBatch, end: number): void {
    this.#position = end
    this.#version = batch.version
    this.#progressAskedAt = undefined
    this.#hand(batch)
  }

  reconsider(seen: Seen): void {
    if (this.#position !== undefined && this.#position < seen.position) {
      this.#position = seen.position
      if (isAfter(seen.version, this.#version)) this.#version = seen.version
    }
    this.#seek()
  }

  #start(): void {
    this.#isStarted = true
    const { signal } = this.#options
    if (signal.aborted) this.#end()
    else signal.addEventListener('abort', this.#end)
  }

  /** Finds something for the consumer who waits, or waits as well. */
  #seek(): void {
    const batch = this.#fromRing()
    if (batch !== undefined) this.#hand(batch)
    else if (!this.#isEnded) this.#wait()
  }

  /** For what there is not in the ring. */
  #wait(): void {
    const { fanOut, isOpen } = this.#options
    if (!isOpen()) {
      this.#position = undefined
      fanOut.waitForRestart(this)
    } else if (this.#position !== undefined) fanOut.wait(this)
    else this.#goBehind()
  }

  /** Looks again when that is done, if it found nothing. */
  #goBehind(): void {
    this.#readBehind().then(
      (batch) => {
        if (this.#isEnded) return
        if (batch === undefined) this.#seek()
        else this.#hand(batch)
      },
      (error: unknown) => {
        if (this.#isEnded) return
        this.#failure = { error }
        this.#end()
      },
    )
  }

  /** What the ring has; undefined when that is nothing, or the ring is not where it is. */
  #fromRing(): WatchBatch | undefined {
    const { history, fanOut, isOpen } = this.#options
    if (this.#restarts !== undefined && this.#restarts !== history.restarts) {
      this.#failure = { error: begunAnew() }
      this.#end()
      return undefined
    }
    if (!isOpen()) return undefined
    this.#restarts ??= history.restarts
    this.#position ??= this.#findPosition()
    let position = this.#position
    if (position === undefined) return undefined
    if (position < history.tail) {
      this.#position = undefined
      return undefined
    }
    const { namespace } = this
    const { reach } = fanOut
    while (position < reach.position) {
      const stretch = history.read(position, { namespace, enough: batchChanges, until: reach })
      const floor = this.#version
      const items = stretch.items.filter(({ stored }) => isAfter(stored.version, floor))
      position = stretch.end
      this.#advance(position, stretch.version)
      if (items.length === 0) continue
      fanOut.countDispatched(items.length)
      this.#progressAskedAt = undefined
      return { items, version: this.#version }
    }
    const askedAt = this.#progressAskedAt
    if (askedAt === undefined || reach.beats <= askedAt || position > reach.position) {
      return undefined
    }
    this.#advance(position, reach.version)
    this.#progressAskedAt = undefined
    return { items: [], version: this.#version }
  }

  #advance(position: number, version: Version): void {
    this.#position = position
    if (isAfter(version, this.#version)) this.#version = version
  }

  /** Undefined when the ring does not reach back far enough. */
  #findPosition(): number | undefined {
    const { history } = this.#options
    if (isAfter(history.start, this.#version)) return undefined
    return history.positionAfter(this.#version)
  }

  async #readBehind(): Promise<WatchBatch | undefined> {
    const { scope, signal, history, readBehind, fanOut } = this.#options
    const until = history.start
    const batch = await readBehind({ scope, from: this.#version, until, signal })
    if (batch === undefined) return undefined
    if (isAfter(batch.version, this.#version)) this.#version = batch.version
    if (batch.items.length === 0) return undefined
    fanOut.countDispatched(batch.items.length)
    return batch
  }

  #hand(batch: WatchBatch): void {
    this.#due = batch
    this.#call()
  }

  #call(): void {
    const wake = this.#wake
    this.#wake = undefined
    wake?.()
  }

  readonly #end = (): void => {
    if (this.#isEnded) return
    this.#isEnded = true
    this.#options.signal.removeEventListener('abort', this.#end)
    this.#options.fanOut.leave(this)
    this.#call()
  }
}

function begunAnew(): StorageError {
  return new StorageError({
    kind: 'compacted',
    message: 'everything was read from the store again: what changed in between is not known',
  })
}
