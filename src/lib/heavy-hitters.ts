/**
 * Finds the most frequent keys of a stream, and their rates, in bounded memory: the space-saving
 * sketch with exponential decay.
 *
 * There is an entry for each of the first `entriesMax` keys. Another key takes over the entry with
 * the lowest count, and that count with it, as its possible error, so the shown rate (count minus
 * error) is never too high. Not every hit takes over an entry, but one in eight, by chance: that
 * costs more than all else. A key with more than one in `entriesMax` of all recent hits keeps an
 * entry that it has, and is likely to have one, the more so the more often it is hit; but it may be
 * missing for a while, and its rate lacks the hits before it had its entry.
 *
 * Counts decay by time. Instead of lowering all counts, later hits weigh more (by `weightAt`); the
 * counts are scaled down before the weights become too large for a number.
 */
import { ownText } from './text/own-text.ts'

/** Hits of this age count about a third. A window of twice this length has the same mean age. */
const DECAY_MS = 30_000
/** The weight grows by a factor of 10^87 in this time. */
const RESCALE_MS = 200 * DECAY_MS
/** The time that a young sketch is assumed to have lasted at least, so that one hit is no flood. */
const WINDOW_MS_MIN = 1_000
/** In hits per second: about one hit within the last two minutes. */
const RATE_MIN = 0.001
const KEY_LENGTH_MAX = 128
const TAKE_OVER_CHANCE = 1 / 8

/** A key and its rate in hits per second. */
export interface HeavyHitter {
  readonly key: string
  readonly rate: number
}

export interface HeavyHittersOptions {
  readonly entriesMax: number
  /** The time of the first hit at the earliest, in milliseconds of the caller's clock. */
  readonly nowMs: number
  /** For tests. */
  readonly takeOverChance?: number
}

/** The key under which `key` is counted: keys with the same first 128 characters are one. */
export function boundedKey(key: string): string {
  return key.length <= KEY_LENGTH_MAX ? key : key.slice(0, KEY_LENGTH_MAX)
}

export class HeavyHitters {
  readonly #entriesMax: number
  readonly #takeOverChance: number
  readonly #startedAt: number
  /** The index of the entry of each key. */
  readonly #index = new Map<string, number>()
  readonly #keys: string[] = []
  readonly #counts: Float64Array
  readonly #errors: Float64Array
  /**
   * A heap of entries, the lowest first, by the counts in `#ranks`. Those are updated only when the
   * lowest entry is wanted: most hits increase a count and do not touch the heap.
   */
  readonly #heap: Int32Array
  readonly #ranks: Float64Array
  /** All hits, those without an entry too. */
  #total = 0
  /** Where weights are 1. */
  #originMs: number
  #weight = 1
  #weightAtMs: number

  constructor({ entriesMax, nowMs, takeOverChance }: HeavyHittersOptions) {
    this.#entriesMax = entriesMax
    this.#takeOverChance = takeOverChance ?? TAKE_OVER_CHANCE
    this.#startedAt = nowMs
    this.#originMs = nowMs
    this.#weightAtMs = nowMs
    this.#counts = new Float64Array(entriesMax)
    this.#errors = new Float64Array(entriesMax)
    this.#ranks = new Float64Array(entriesMax)
    this.#heap = new Int32Array(entriesMax)
  }

  get size(): number {
    return this.#keys.length
  }

  hit(key: string, nowMs: number): void {
    const entry = this.#index.get(boundedKey(key))
    const weight = this.#weightAt(nowMs)
    this.#total += weight
    if (entry !== undefined) this.#counts[entry] = at(this.#counts, entry) + weight
    else this.#miss(key, weight)
  }

  /** The rate of all hits together. */
  totalRate(nowMs: number): number {
    return this.#total * this.#rateScale(nowMs)
  }

  /** The highest rates first; keys that have not been hit for minutes are left out. */
  top(nowMs: number): HeavyHitter[] {
    const found: HeavyHitter[] = []
    this.each(nowMs, (key, rate) => found.push({ key, rate }))
    return found.sort(byRate)
  }

  /** The same keys in no order, for callers that add up many sketches. */
  each(nowMs: number, visit: (key: string, rate: number) => void): void {
    const scale = this.#rateScale(nowMs)
    for (let entry = 0; entry < this.size; entry++) {
      const rate = (at(this.#counts, entry) - at(this.#errors, entry)) * scale
      if (rate >= RATE_MIN) visit(this.#keys[entry] ?? '', rate)
    }
  }

  /** From a count to a rate: decayed until now, and divided by the time that still counts. */
  #rateScale(nowMs: number): number {
    const ageMs = Math.max(WINDOW_MS_MIN, nowMs - this.#startedAt)
    const windowSeconds = (DECAY_MS / 1000) * (1 - Math.exp(-ageMs / DECAY_MS))
    return Math.exp(-(nowMs - this.#originMs) / DECAY_MS) / windowSeconds
  }

  #weightAt(nowMs: number): number {
    if (nowMs === this.#weightAtMs) return this.#weight
    if (nowMs - this.#originMs > RESCALE_MS) this.#rescale(nowMs)
    this.#weightAtMs = nowMs
    this.#weight = Math.exp((nowMs - this.#originMs) / DECAY_MS)
    return this.#weight
  }

  #rescale(nowMs: number): void {
    const factor = Math.exp(-(nowMs - this.#originMs) / DECAY_MS)
    for (const values of [this.#counts, this.#errors, this.#ranks]) {
      for (let entry = 0; entry < this.size; entry++) values[entry] = at(values, entry) * factor
    }
    this.#total *= factor
    this.#originMs = nowMs
  }

  #miss(key: string, weight: number): void {
    const isFull = this.size === this.#entriesMax
    if (isFull && Math.random() >= this.#takeOverChance) return
    const kept = ownText(boundedKey(key))
    if (isFull) this.#replaceLowest(kept, weight)
    else this.#add(kept, weight)
  }

  #add(key: string, weight: number): void {
    const entry = this.size
    this.#keys.push(key)
    this.#index.set(key, entry)
    this.#counts[entry] = weight
    this.#ranks[entry] = weight
    this.#heap[entry] = entry
    this.#siftUp(entry)
  }

  #replaceLowest(key: string, weight: number): void {
    const entry = this.#lowest()
    this.#index.delete(this.#keys[entry] ?? '')
    this.#index.set(key, entry)
    this.#keys[entry] = key
    const error = at(this.#counts, entry)
    this.#errors[entry] = error
    this.#counts[entry] = error + weight
  }

  /** Counts only grow, so an entry whose rank is up to date and first in the heap is the lowest. */
  #lowest(): number {
    for (;;) {
      const entry = at(this.#heap, 0)
      const count = at(this.#counts, entry)
      if (at(this.#ranks, entry) === count) return entry
      this.#ranks[entry] = count
      this.#siftDown()
    }
  }

  #siftUp(from: number): void {
    const heap = this.#heap
    const entry = at(heap, from)
    const rank = at(this.#ranks, entry)
    let place = from
    while (place > 0) {
      const parent = (place - 1) >> 1
      const above = at(heap, parent)
      if (at(this.#ranks, above) <= rank) break
      heap[place] = above
      place = parent
    }
    heap[place] = entry
  }

  #siftDown(): void {
    const heap = this.#heap
    const ranks = this.#ranks
    const entry = at(heap, 0)
    const rank = at(ranks, entry)
    let place = 0
    for (;;) {
      let child = 2 * place + 1
      if (child >= this.size) break
      if (child + 1 < this.size && rankAt(child + 1) < rankAt(child)) child++
      if (rankAt(child) >= rank) break
      heap[place] = at(heap, child)
      place = child
    }
    heap[place] = entry

    function rankAt(of: number): number {
      return at(ranks, at(heap, of))
    }
  }
}

/** The highest rate first; of equal rates, the first key by code units. */
export function byRate(one: HeavyHitter, other: HeavyHitter): number {
  return other.rate - one.rate || (one.key < other.key ? -1 : 1)
}

function at(values: Float64Array | Int32Array, index: number): number {
  return values[index] ?? 0
}
