/**
 * A ring buffer of the most recent changes, bounded in number, bytes and age. A position is the
 * count of changes since the start of the process, so it stays valid when earlier changes are
 * evicted.
 */

import { type Clock, monotonicClock } from '../../lib/clock.ts'
import { isInScope } from '../../storage/event-scope.ts'
import { bodyBytesOf, type FramedItem, Frames, framed } from '../../storage/frames.ts'
import {
  isAfter,
  revisionOf,
  type Version,
  versionOfState,
} from '../../storage/resource-version.ts'
import type { EventScope, WatchItem } from '../../storage/storage.ts'

export interface HistoryBounds {
  readonly changesMax: number
  readonly bytesMax: number
  /** Undefined: any age. */
  readonly ageMsMax?: number | undefined
}

/**
 * A few minutes of a busy cluster. A watcher that is further behind reads etcd's history, which by
 * default reaches back no further than `ageMsMax`: a larger bound would not help it.
 */
export const defaultHistoryBounds: HistoryBounds = {
  changesMax: 50_000,
  bytesMax: 96 * 1024 * 1024,
  ageMsMax: 10 * 60_000,
}

/**
 * The fields parsed from a body for selectors may take as much memory again. For bodies up to this
 * size the overhead below includes that.
 */
const largeBytes = 8 * 1024

/** Ages are recorded with this precision: one mark for all changes since the mark before. */
const markEveryMs = 1_000

/** Memory of a change besides its bodies: its objects and its parsed fields. */
const changeOverheadBytes = 1_024

/**
 * A read ends with the transaction in which its bodies reach this size: a slow consumer keeps all
 * that it has read in memory, even after its eviction from the ring.
 */
const readBytesEnough = 256 * 1024

/** Consecutive changes up to `end`; `version` is that of the state after them. */
export interface HistorySlice {
  readonly items: readonly WatchItem[]
  readonly end: number
  readonly version: Version
}

export class History {
  readonly #bounds: HistoryBounds
  readonly #clock: Clock
  /** All changes before `position` had been appended at `atMs`. Oldest first. */
  readonly #marks: { readonly position: number; readonly atMs: number }[] = []
  readonly #ring: (FramedItem | undefined)[]
  readonly #onFrame = (bytes: number): void => {
    this.#bytes += bytes
    this.#evict()
  }
  #tail = 0
  #head = 0
  #bytes = 0
  #updates = 0
  #restarts = 0
  #start: Version
  #version: Version

  /** Starts empty; the first change must come after `version`. */
  constructor(bounds: HistoryBounds, version: Version, clock: Clock = monotonicClock) {
    this.#bounds = bounds
    this.#clock = clock
    this.#ring = new Array<FramedItem | undefined>(bounds.changesMax).fill(undefined)
    this.#start = version
    this.#version = version
  }

  /** Position of the oldest change. */
  get tail(): number {
    return this.#tail
  }

  /** Position of the next change. */
  get head(): number {
    return this.#head
  }

  /** All changes after this version are in the ring. */
  get start(): Version {
    return this.#start
  }

  /** All changes up to this version have been appended. */
  get version(): Version {
    return this.#version
  }

  /** Counts calls of `append` and `restart`, progress without changes included. */
  get updates(): number {
    return this.#updates
  }

  /** Number of restarts: changes from before one may belong to another history of the store. */
  get restarts(): number {
    return this.#restarts
  }

  get bytes(): number {
    return this.#bytes
  }

  /**
   * Appends whole transactions, up to `version`. The reflector of a quiet store calls this about
   * once a second without items, so that old changes are evicted then, too.
   */
  append(items: readonly WatchItem[], version: Version): void {
    for (const item of items) this.#push(item)
    this.#version = version
    this.#updates++
    this.#evict()
    this.#evictOld()
  }

  /** Changes were missed: empties the ring; the next change must come after `version`. */
  restart(version: Version): void {
    while (this.#tail < this.#head) this.#drop()
    // Invalidates all positions handed out so far, including the current head.
    this.#head++
    this.#tail = this.#head
    this.#updates++
    this.#restarts++
    this.#start = version
    this.#version = version
  }

  /** Position of the first change after the version, which must not be before `start`. */
  positionAfter(version: Version): number {
    let low = this.#tail
    let high = this.#head
    while (low < high) {
      const middle = Math.floor((low + high) / 2)
      if (isAfter(this.#at(middle).stored.version, version)) high = middle
      else low = middle + 1
    }
    return low
  }

  /**
   * Reads whole transactions from `position`, which must be in the ring, up to `until`, which must
   * be the end of a transaction. Ends earlier with the transaction that reaches `enough` items, or
   * bytes.
   */
  read(
    position: number,
    options: {
      readonly until: { readonly position: number; readonly version: Version }
      readonly scope: EventScope
      readonly enough: number
    },
  ): HistorySlice {
    const { scope, enough, until } = options
    const items: WatchItem[] = []
    let revision = 0
    let bytes = 0
    for (let end = position; end < until.position; end++) {
      const item = this.#at(end)
      const { stored } = item
      const isEnough = items.length >= enough || bytes >= readBytesEnough
      if (isEnough && revisionOf(stored.version) !== revision) {
        return { items, end, version: versionOfState(revision) }
      }
      revision = revisionOf(stored.version)
      if (isInScope(scope, stored.key)) {
        items.push(item)
        bytes += bytesOf(item)
      }
    }
    return { items, end: Math.max(position, until.position), version: until.version }
  }

  #push(item: WatchItem): void {
    if (this.#head - this.#tail === this.#bounds.changesMax) this.#drop()
    const frames = new Frames(this.#onFrame)
    this.#ring[this.#head % this.#bounds.changesMax] = framed(item, frames)
    this.#head++
    this.#bytes += bytesOf(item)
  }

  #evict(): void {
    while (this.#bytes > this.#bounds.bytesMax && this.#tail < this.#head) this.#drop()
  }

  #evictOld(): void {
    const { ageMsMax } = this.#bounds
    if (ageMsMax === undefined) return
    const atMs = this.#clock.now()
    const newest = this.#marks.at(-1)
    if (newest === undefined || atMs - newest.atMs >= markEveryMs) {
      this.#marks.push({ position: this.#head, atMs })
    }
    for (;;) {
      const oldest = this.#marks[0]
      if (oldest === undefined || atMs - oldest.atMs < ageMsMax) return
      this.#marks.shift()
      while (this.#tail < oldest.position) this.#drop()
    }
  }

  #drop(): void {
    const item = this.#at(this.#tail)
    this.#ring[this.#tail % this.#bounds.changesMax] = undefined
    this.#tail++
    this.#start = item.stored.version
    this.#bytes -= bytesOf(item) + item.frames.end()
  }

  #at(position: number): FramedItem {
    const item = this.#ring[position % this.#bounds.changesMax]
    if (item === undefined) throw new RangeError(`no change at position ${position} in the ring`)
    return item
  }
}

function bytesOf(item: WatchItem): number {
  const { length } = item.stored.body
  return changeOverheadBytes + bodyBytesOf(item) + (length > largeBytes ? length : 0)
}
