/**
 * A ring buffer of the most recent changes, bounded in number, bytes and age. A position is the
 * count of changes since the start of the process, so it stays valid when earlier changes are
 * evicted.
 *
 * The newest changes are fresh: watchers share them and their encoded frames. Older ones are packed;
 * those that were read last are shared as well.
 */

import { type Clock, monotonicClock } from '../../lib/clock.ts'
import { isInScope } from '../../storage/event-scope.ts'
import { type FramedItem, Frames, framed } from '../../storage/frames.ts'
import {
  isAfter,
  revisionOf,
  type Version,
  versionOfState,
} from '../../storage/resource-version.ts'
import type { EventScope, WatchItem } from '../../storage/storage.ts'
import { Ages } from './ages.ts'
import { type HistoryBounds, unpackedBytesOf } from './history-bounds.ts'
import { PackedChanges, type Rows } from './packed-changes.ts'
import { UnpackedChanges } from './unpacked-changes.ts'

/** What fresh changes may take of the bytes, where there is a bound on their number. */
const freshPart = 1 / 4
/** Reserved for changes that were packed and are read again. */
const unpackedPart = 1 / 8

/**
 * A read ends with the transaction in which its changes reach this size: a slow consumer keeps all
 * that it has read in memory, even after its eviction from the ring.
 */
const readBytesEnough = 256 * 1024
/** A read also ends after so many changes of other scopes: it takes about 2 ms while code is cold. */
const readScanEnough = 8_192

/** Consecutive changes up to `end`; `version` is that of the state after them. */
export interface HistorySlice {
  readonly items: readonly WatchItem[]
  readonly end: number
  readonly version: Version
}

export interface HistoryOptions {
  readonly clock?: Clock | undefined
  /** Where the bodies of packed changes may be. `leaveRow` must be called before a row is freed. */
  readonly rows?: Rows | undefined
}

export class History {
  readonly #bounds: HistoryBounds
  readonly #ages: Ages | undefined
  /** The fresh changes. */
  readonly #ring: (FramedItem | undefined)[]
  /** The others, by the same index. */
  readonly #packed: PackedChanges
  readonly #unpacked: UnpackedChanges
  readonly #onFrame = (bytes: number): void => {
    this.#freshBytes += bytes
    this.#evict()
  }
  #tail = 0
  #fresh = 0
  #head = 0
  #freshBytes = 0
  #updates = 0
  #restarts = 0
  #start: Version
  #version: Version

  /** Starts empty; the first change must come after `version`. */
  constructor(
    bounds: HistoryBounds,
    version: Version,
    { clock = monotonicClock, rows }: HistoryOptions = {},
  ) {
    this.#bounds = bounds
    this.#ages = bounds.ageMsMax === undefined ? undefined : new Ages(bounds.ageMsMax, clock)
    this.#packed = new PackedChanges(bounds.freshMax === undefined ? 0 : bounds.changesMax, rows)
    this.#unpacked = new UnpackedChanges(bounds.bytesMax * unpackedPart)
    this.#ring = new Array<undefined>(bounds.changesMax).fill(undefined)
    this.#start = version
    this.#version = version
  }

  /** Position of the oldest change. */
  get tail(): number {
    return this.#tail
  }

  /** Position of the oldest fresh change. */
  get fresh(): number {
    return this.#fresh
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
    return this.#freshBytes + this.#packed.bytes + this.#unpacked.bytes
  }

  /**
   * Appends whole transactions, up to `version`. The reflector of a quiet store calls this about
   * once a second without items, so that old changes are evicted then, too.
   */
  append(items: readonly WatchItem[], version: Version): void {
    for (const item of items) this.#push(item)
    this.#version = version
    this.#updates++
    this.#settle()
    this.#evict()
    this.#evictOld()
  }

  /** The row with the event at this version is about to be freed. */
  leaveRow(row: number, version: Version): void {
    if (!isAfter(version, this.#start)) return
    const position = this.positionAfter(version) - 1
    if (position < this.#tail || position >= this.#fresh) return
    if (this.#versionAt(position) !== version) return
    this.#packed.leaveRow(this.#indexOf(position), row)
    this.#evict()
  }

  /** Changes were missed: empties the ring; the next change must come after `version`. */
  restart(version: Version): void {
    while (this.#tail < this.#head) this.#drop()
    this.#unpacked.clear()
    // Invalidates all positions handed out so far, including the current head.
    this.#head++
    this.#tail = this.#head
    this.#fresh = this.#head
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
      if (isAfter(this.#versionAt(middle), version)) high = middle
      else low = middle + 1
    }
    return low
  }

  /**
   * Reads whole transactions from `position`, which must be in the ring, up to `until`, which must
   * be the end of a transaction. Ends earlier with the transaction that reaches `enough` items, or
   * the limit of bytes or of changes that are not in scope.
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
      const version = this.#versionAt(end)
      const isEnough =
        items.length >= enough || bytes >= readBytesEnough || end - position >= readScanEnough
      if (isEnough && revisionOf(version) !== revision) {
        return { items, end, version: versionOfState(revision) }
      }
      revision = revisionOf(version)
      if (!this.#isInScope(end, scope)) continue
      const item = this.#itemAt(end)
      items.push(item)
      bytes += unpackedBytesOf(item)
    }
    return { items, end: Math.max(position, until.position), version: until.version }
  }

  #push(item: WatchItem): void {
    if (this.#head - this.#tail === this.#bounds.changesMax) this.#drop()
    const frames = new Frames(this.#onFrame)
    this.#ring[this.#indexOf(this.#head)] = framed(item, frames)
    this.#head++
    this.#freshBytes += unpackedBytesOf(item)
  }

  /** Packs the oldest fresh changes. */
  #settle(): void {
    const { bytesMax, freshMax } = this.#bounds
    if (freshMax === undefined) return
    const isOver = () =>
      this.#head - this.#fresh > freshMax || this.#freshBytes > bytesMax * freshPart
    for (; this.#fresh < this.#head && isOver(); this.#fresh++) {
      const item = this.#takeFresh(this.#fresh)
      this.#packed.pack(this.#indexOf(this.#fresh), item)
    }
  }

  #evict(): void {
    const { bytesMax, freshMax } = this.#bounds
    const most = freshMax === undefined ? bytesMax : bytesMax * (1 - unpackedPart)
    while (this.#freshBytes + this.#packed.bytes > most && this.#tail < this.#head) this.#drop()
  }

  #evictOld(): void {
    const kept = this.#ages?.oldestKept(this.#head) ?? 0
    while (this.#tail < kept) this.#drop()
  }

  #drop(): void {
    this.#start = this.#versionAt(this.#tail)
    if (this.#tail < this.#fresh) this.#packed.drop(this.#indexOf(this.#tail))
    else {
      this.#takeFresh(this.#tail)
      this.#fresh++
    }
    this.#tail++
  }

  /** Removes a fresh change. */
  #takeFresh(position: number): WatchItem {
    const item = this.#at(position)
    this.#ring[this.#indexOf(position)] = undefined
    this.#freshBytes -= unpackedBytesOf(item) + item.frames.end()
    return item
  }

  /** A fresh change. */
  #at(position: number): FramedItem {
    const item = this.#ring[this.#indexOf(position)]
    if (item === undefined) throw new RangeError(`no change at position ${position} in the ring`)
    return item
  }

  #itemAt(position: number): FramedItem {
    if (position >= this.#fresh) return this.#at(position)
    return this.#unpacked.read(position, () => this.#packed.unpack(this.#indexOf(position)))
  }

  #versionAt(position: number): Version {
    if (position >= this.#fresh) return this.#at(position).stored.version
    return this.#packed.versionAt(this.#indexOf(position))
  }

  #isInScope(position: number, scope: EventScope): boolean {
    if (position >= this.#fresh) return isInScope(scope, this.#at(position).stored.key)
    const own = this.#packed.scopeAt(this.#indexOf(position))
    return own !== undefined && isInScope(scope, own)
  }

  #indexOf(position: number): number {
    return position % this.#bounds.changesMax
  }
}
