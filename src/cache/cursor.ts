/**
 * A watch as a position in the history: it owns no buffer and moves only when its consumer pulls.
 *
 * While what comes next is in the ring it is read from there. A consumer that stayed away for too
 * long finds its position gone, and goes on in the store behind, one step for each pull, until it
 * has caught up with the ring. Between steps nothing is held open, so a consumer that stalls costs
 * no more than this object.
 */

import type { SharedBatch } from '../storage/frames.ts'
import { isAfter, type Version } from '../storage/resource-version.ts'
import type { EventScope, EventWatch, WatchBatch } from '../storage/storage.ts'
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
  /** Undefined when there is a history to read; else resolves when there will be. */
  readonly opened: () => Promise<void> | undefined
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

type Result = IteratorResult<WatchBatch, undefined>

export class Cursor implements EventWatch, AsyncIterator<WatchBatch, undefined>, Waiting {
  readonly namespace: string | undefined
  readonly #options: CursorOptions
  /** Undefined: not in the ring, as far as is known. */
  #position: number | undefined
  /** Everything up to here has been handed over, or is not wanted. */
  #version: Version
  #progressAskedAt: number | undefined
  /** Of the consumer who waits. */
  #resolve: ((result: Result) => void) | undefined
  #reject: ((error: unknown) => void) | undefined
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

  requestProgress(): void {
    const { history, fanOut, askForProgress } = this.#options
    this.#progressAskedAt ??= history.beats
    fanOut.inquire(this)
    askForProgress()
  }

  [Symbol.asyncIterator](): this {
    if (this.#isStarted) throw new Error('a watch is iterated once')
    this.#isStarted = true
    const { signal } = this.#options
    if (signal.aborted) this.#end()
    else signal.addEventListener('abort', this.#end)
    return this
  }

  /** One pull at a time, as `for await` does it. */
  next(): Promise<Result> {
    if (this.#isEnded) return Promise.resolve({ value: undefined, done: true })
    const batch = this.#fromRing()
    if (batch !== undefined) return Promise.resolve({ value: batch, done: false })
    return new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
      this.#seek()
    })
  }

  return(): Promise<Result> {
    this.#end()
    return Promise.resolve({ value: undefined, done: true })
  }

  deliver(batch: SharedBatch, end: number): void {
    this.#position = end
    this.#version = batch.version
    this.#progressAskedAt = undefined
    this.#answer(batch.result)
  }

  reconsider(seen: Seen): void {
    if (this.#position !== undefined && this.#position < seen.position) {
      this.#position = seen.position
      if (isAfter(seen.version, this.#version)) this.#version = seen.version
    }
    this.#seek()
  }

  /** Finds something for the consumer who waits, or waits as well. */
  #seek(): void {
    const { fanOut, opened } = this.#options
    const opening = opened()
    if (opening !== undefined) {
      this.#position = undefined
      this.#follow(opening.then(() => undefined))
      return
    }
    const batch = this.#fromRing()
    if (batch !== undefined) this.#answer({ value: batch, done: false })
    else if (this.#position !== undefined) fanOut.wait(this)
    else this.#follow(this.#readBehind())
  }

  /** Looks again when the work is done, if it found nothing. */
  #follow(work: Promise<WatchBatch | undefined>): void {
    work.then(
      (batch) => {
        if (this.#isEnded) return
        if (batch === undefined) this.#seek()
        else this.#answer({ value: batch, done: false })
      },
      (error: unknown) => this.#fail(error),
    )
  }

  /** What the ring has; undefined when that is nothing, or the ring is not where it is. */
  #fromRing(): WatchBatch | undefined {
    const { history, fanOut, opened } = this.#options
    if (opened() !== undefined) return undefined
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

  #answer(result: Result): void {
    const resolve = this.#resolve
    this.#resolve = undefined
    this.#reject = undefined
    resolve?.(result)
  }

  #fail(error: unknown): void {
    const reject = this.#reject
    this.#resolve = undefined
    this.#reject = undefined
    this.#end()
    reject?.(error)
  }

  readonly #end = (): void => {
    this.#isEnded = true
    this.#options.signal.removeEventListener('abort', this.#end)
    this.#options.fanOut.leave(this)
    this.#answer({ value: undefined, done: true })
  }
}
