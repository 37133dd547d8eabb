/**
 * A ring buffer of the most recent changes, bounded in number, bytes and age. All watchers share the
 * changes and their encoded frames. A position is the count of changes since the start of the
 * process, so it stays valid when earlier changes are evicted.
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
  /**
   * A watcher that is at most this many changes behind reads them at once, one further behind in
   * turns with others. Undefined: all changes are read at once.
   */
  readonly promptMax?: number | undefined
}

/**
 * At 600 changes a second, `changesMax` covers 17 seconds. A watcher that is further behind reads
 * etcd's history, which by default reaches back no further than `ageMsMax`.
 */
export const defaultHistoryBounds: HistoryBounds = {
  changesMax: 10_000,
  bytesMax: 96 * 1024 * 1024,
  ageMsMax: 10 * 60_000,
  promptMax: 2_048,
}

/** Memory of a change besides its bodies: its objects and its parsed fields. */
const changeOverheadBytes = 1_024
/** Up to this size of the bodies, the overhead includes the parsed fields. */
const largeBytes = 8 * 1024

/**
 * A read ends with the transaction in which its changes reach this size: a slow consumer retains
 * all that it has read, even after its eviction from the ring.
 */
const readBytesEnough = 256 * 1024

/**
 * Part of the bytes for frames of changes before `prompt`. Without it, watchers that are far behind
 * could fill the ring with frames in many encodings, and evict the changes that others need.
 */
const latePart = 1 / 8

/** Consecutive changes up to `end`; `version` is that of the state after them. */
export interface HistorySlice {
  readonly items: readonly WatchItem[]
  readonly end: number
  readonly version: Version
}

export class History {
  readonly #bounds: HistoryBounds
  readonly #ages: Ages | undefined
  readonly #ring: (FramedItem | undefined)[]
  readonly #onFrame = (bytes: number, isLate: boolean): void => {
    this.#bytes += bytes
    if (isLate) this.#lateBytes += bytes
    if (this.#lateBytes > this.#bounds.bytesMax * latePart) this.#clearLate()
    this.#evict()
  }
  #tail = 0
  #head = 0
  #bytes = 0
  /** Frames encoded for watchers that are far behind since these frames were last cleared. */
  #lateBytes = 0
  #updates = 0
  #restarts = 0
  #start: Version
  #version: Version

  /** Starts empty; the first change must come after `version`. */
  constructor(bounds: HistoryBounds, version: Version, clock: Clock = monotonicClock) {
    this.#bounds = bounds
    this.#ages = bounds.ageMsMax === undefined ? undefined : new Ages(bounds.ageMsMax, clock)
    this.#ring = new Array<undefined>(bounds.changesMax).fill(undefined)
    this.#start = version
    this.#version = version
  }

  /** Position of the oldest change. */
  get tail(): number {
    return this.#tail
  }

  /** Position of the oldest change that watchers may read at once. */
  get prompt(): number {
    const { promptMax } = this.#bounds
    return promptMax === undefined ? this.#tail : Math.max(this.#tail, this.#head - promptMax)
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
   * be the end of a transaction. Ends earlier with the transaction that reaches `enough` items or the
   * limit of bytes. A full ring without a change in scope takes 2 to 3 ms while code is cold.
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
      const { key, version } = item.stored
      const isEnough = items.length >= enough || bytes >= readBytesEnough
      if (isEnough && revisionOf(version) !== revision) {
        return { items, end, version: versionOfState(revision) }
      }
      revision = revisionOf(version)
      if (!isInScope(scope, key)) continue
      items.push(item)
      bytes += bytesOf(item)
    }
    return { items, end: Math.max(position, until.position), version: until.version }
  }

  #push(item: WatchItem): void {
    if (this.#head - this.#tail === this.#bounds.changesMax) this.#drop()
    this.#ring[this.#indexOf(this.#head)] = framed(item, new Frames(this.#onFrame))
    this.#head++
    this.#bytes += bytesOf(item)
    // Most watchers have read the change that has just fallen behind `prompt`. Those that are further
    // behind encode it again, and share that.
    const behind = this.prompt - 1
    if (behind >= this.#tail) this.#bytes -= this.#at(behind).frames.clear()
  }

  #clearLate(): void {
    const { prompt } = this
    for (let position = this.#tail; position < prompt; position++) {
      this.#bytes -= this.#at(position).frames.clear()
    }
    this.#lateBytes = 0
  }

  #evict(): void {
    while (this.#bytes > this.#bounds.bytesMax && this.#tail < this.#head) this.#drop()
  }

  #evictOld(): void {
    const oldest = this.#ages?.oldestRetained(this.#head) ?? 0
    while (this.#tail < oldest) this.#drop()
  }

  #drop(): void {
    const item = this.#at(this.#tail)
    this.#start = item.stored.version
    this.#ring[this.#indexOf(this.#tail)] = undefined
    this.#bytes -= bytesOf(item) + item.frames.end()
    this.#tail++
  }

  #at(position: number): FramedItem {
    const item = this.#ring[this.#indexOf(position)]
    if (item === undefined) throw new RangeError(`no change at position ${position} in the ring`)
    return item
  }

  #indexOf(position: number): number {
    return position % this.#bounds.changesMax
  }
}

/**
 * Memory of a change without its frames. The fields that selectors parse from a large body may take
 * twice its length: two bytes for each character.
 */
function bytesOf(item: WatchItem): number {
  const bodies = bodyBytesOf(item)
  return changeOverheadBytes + (bodies > largeBytes ? 3 : 1) * bodies
}

/** Ages are recorded with this precision: one mark for all changes since the previous mark. */
const markEveryMs = 1_000

/** Finds the changes that are too old, by a few marks instead of a time for each change. */
class Ages {
  readonly #ageMsMax: number
  readonly #clock: Clock
  /** Oldest first. All changes before `position` had been appended at `atMs`. */
  readonly #marks: { readonly position: number; readonly atMs: number }[] = []
  #oldest = 0

  constructor(ageMsMax: number, clock: Clock) {
    this.#ageMsMax = ageMsMax
    this.#clock = clock
  }

  /** Changes before the returned position are too old. `head` is the position of the next change. */
  oldestRetained(head: number): number {
    const atMs = this.#clock.now()
    const newest = this.#marks.at(-1)
    if (newest === undefined || atMs - newest.atMs >= markEveryMs) {
      this.#marks.push({ position: head, atMs })
    }
    for (;;) {
      const oldest = this.#marks[0]
      if (oldest === undefined || atMs - oldest.atMs < this.#ageMsMax) return this.#oldest
      this.#marks.shift()
      this.#oldest = oldest.position
    }
  }
}
