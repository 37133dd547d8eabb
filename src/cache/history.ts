/**
 * A ring of the most recent changes, bounded in number, in bytes and in age. Changes are counted from the
 * start of the process; a position is such a count, and stays what it is when changes before it
 * leave the ring.
 */

import { type Clock, monotonicClock } from '../lib/clock.ts'
import { bodyBytesOf, type FramedItem, Frames } from '../storage/frames.ts'
import { isAfter, revisionOf, type Version, versionOfState } from '../storage/resource-version.ts'
import type { WatchItem } from '../storage/storage.ts'

export interface HistoryBounds {
  readonly changesMax: number
  readonly bytesMax: number
  /** Undefined: any age. */
  readonly ageMsMax?: number | undefined
}

/**
 * Some minutes of a busy cluster. Who is further behind reads etcd's history, which by default
 * reaches back no further than the age here, so a watcher that left long ago loses nothing by it.
 */
export const defaultHistoryBounds: HistoryBounds = {
  changesMax: 50_000,
  bytesMax: 96 * 1024 * 1024,
  ageMsMax: 10 * 60_000,
}

/** What is read out of a body for selectors may take as much again: of small ones that is in the overhead. */
const largeBytes = 8 * 1024

/** Ages are known to this precision, for all changes in between together. */
const markEveryMs = 1_000

/** What a change takes besides its bodies: its objects and the fields read out of it. */
const changeOverheadBytes = 1_024

/**
 * A stretch ends with the transaction in which its bodies take this much: whoever is slow to take a
 * stretch keeps all of it in memory, also when it has left the ring.
 */
const stretchBytes = 256 * 1024

/** Changes from one position to another; `version` is that of the state after them. */
export interface Stretch {
  readonly items: readonly WatchItem[]
  readonly end: number
  readonly version: Version
}

export class History {
  readonly #bounds: HistoryBounds
  readonly #clock: Clock
  /** When everything before a position was there; oldest first. */
  readonly #marks: { readonly position: number; readonly atMs: number }[] = []
  readonly #ring: (FramedItem | undefined)[]
  readonly #onFrame = (bytes: number): void => {
    this.#bytes += bytes
    this.#evict()
  }
  #tail = 0
  #head = 0
  #bytes = 0
  #beats = 0
  #restarts = 0
  #start: Version
  #version: Version

  /** Empty; begins with what comes after `version`. */
  constructor(bounds: HistoryBounds, version: Version, clock: Clock = monotonicClock) {
    this.#bounds = bounds
    this.#clock = clock
    this.#ring = new Array<FramedItem | undefined>(bounds.changesMax).fill(undefined)
    this.#start = version
    this.#version = version
  }

  /** Where the oldest change is. */
  get tail(): number {
    return this.#tail
  }

  /** Where the next change will be. */
  get head(): number {
    return this.#head
  }

  /** All changes after this version are here. */
  get start(): Version {
    return this.#start
  }

  /** All changes up to this version have been here. */
  get version(): Version {
    return this.#version
  }

  /** Counts what has come, news of progress included. */
  get beats(): number {
    return this.#beats
  }

  /** How often it began anew: what was told before may be of another history of the store. */
  get restarts(): number {
    return this.#restarts
  }

  get bytes(): number {
    return this.#bytes
  }

  /**
   * Whole transactions; afterwards everything up to `version` has been here. The follower of a quiet
   * store calls this about once a second without any, so that what is old leaves then, too.
   */
  append(items: readonly WatchItem[], version: Version): void {
    for (const item of items) this.#push(item)
    this.#version = version
    this.#beats++
    this.#evict()
    this.#age()
  }

  /** What was missed is not known: begins anew with what comes after `version`. */
  restart(version: Version): void {
    while (this.#tail < this.#head) this.#drop()
    // Positions given out so far are none any more, not even the last.
    this.#head++
    this.#tail = this.#head
    this.#beats++
    this.#restarts++
    this.#start = version
    this.#version = version
  }

  /** Where the first change after the version is; it must not be before `start`. */
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
   * What is between two positions, of which the first must be here and the second must be the end
   * of a transaction, at `until.version`: whole transactions, until there are `enough` items or bytes.
   */
  read(
    position: number,
    options: {
      readonly until: { readonly position: number; readonly version: Version }
      readonly namespace: string | undefined
      readonly enough: number
    },
  ): Stretch {
    const { namespace, enough, until } = options
    const items: WatchItem[] = []
    let revision = 0
    let bytes = 0
    for (let end = position; end < until.position; end++) {
      const item = this.#at(end)
      const { stored } = item
      const isEnough = items.length >= enough || bytes >= stretchBytes
      if (isEnough && revisionOf(stored.version) !== revision) {
        return { items, end, version: versionOfState(revision) }
      }
      revision = revisionOf(stored.version)
      if (namespace === undefined || stored.key.namespace === namespace) {
        items.push(item)
        bytes += bytesOf(item)
      }
    }
    return { items, end: Math.max(position, until.position), version: until.version }
  }

  #push(item: WatchItem): void {
    if (this.#head - this.#tail === this.#bounds.changesMax) this.#drop()
    const frames = new Frames(this.#onFrame)
    this.#ring[this.#head % this.#bounds.changesMax] = { ...item, frames }
    this.#head++
    this.#bytes += bytesOf(item)
  }

  #evict(): void {
    while (this.#bytes > this.#bounds.bytesMax && this.#tail < this.#head) this.#drop()
  }

  #age(): void {
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
    if (item === undefined) throw new RangeError(`no change is kept at ${position}`)
    return item
  }
}

function bytesOf(item: WatchItem): number {
  const { length } = item.stored.body
  return changeOverheadBytes + bodyBytesOf(item) + (length > largeBytes ? length : 0)
}
