/**
 * Finds the most frequent keys of a stream, and their rates, in bounded memory: the space-saving
 * sketch with exponential decay.
 *
 * Each of the first `entriesMax` keys gets an entry. Another key takes over the entry with the lowest
 * count, and inherits that count as its possible error, so the reported rate (count minus error) is
 * never too high. Only one in eight such hits, at random, takes over an entry, since that costs more
 * than everything else. A key with more than one in `entriesMax` of all recent hits keeps its entry,
 * and is the more likely to have one the more often it is hit. It may be missing for a while, and its
 * rate lacks the hits before it got its entry.
 *
 * Counts decay over time. Instead of lowering all counts, later hits get more weight (`weightAt`); the
 * counts are scaled down before the weights become too large for a number.
 */
import { ownText } from './text/own-text.ts'

/** Hits of this age count for about a third. A window twice as long has the same mean age. */
const DECAY_MS = 30_000
/** The weight grows by a factor of 10^87 in this time. */
const RESCALE_MS = 200 * DECAY_MS
/** Minimum assumed age of a sketch, so that one hit in a young one is not a flood. */
const WINDOW_MS_MIN = 1_000
/** Hits per second: about one hit within the last two minutes. */
const RATE_MIN = 0.001
const KEY_LENGTH_MAX = 128
const TAKE_OVER_CHANCE = 1 / 8

export interface HeavyHitter {
  readonly key: string
  /** Hits per second. */
  readonly rate: number
}

export interface HeavyHittersOptions {
  readonly entriesMax: number
  /** No hit is earlier than this; milliseconds of the caller's clock. */
  readonly nowMs: number
  /** Set by tests. */
  readonly takeOverChance?: number
}

/** Keys with the same first 128 characters are counted as one. */
export function boundedKey(key: string): string {
  return key.length <= KEY_LENGTH_MAX ? key : key.slice(0, KEY_LENGTH_MAX)
}

export class HeavyHitters {
  readonly #entriesMax: number
  readonly #takeOverChance: number
  readonly #startedAt: number
  /** Entry numbers, keyed by key. */
  readonly #index = new Map<string, number>()
  readonly #keys: string[] = []
  readonly #counts: Float64Array
  readonly #errors: Float64Array
  /**
   * A min-heap of entries by the counts in `#ranks`. Those are updated only when the lowest entry is
   * needed: most hits increase a count without touching the heap.
   */
  readonly #heap: Int32Array
  readonly #ranks: Float64Array
  /** All hits, including those without an entry. */
  #total = 0
  /** The time at which weights are 1. */
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

  totalRate(nowMs: number): number {
    return this.#total * this.#rateScale(nowMs)
  }

  /** Highest rates first, without keys that have not been hit for minutes. */
  top(nowMs: number): HeavyHitter[] {
    const found: HeavyHitter[] = []
    this.each(nowMs, (key, rate) => found.push({ key, rate }))
    return found.sort(byRate)
  }

  /** Visits the same keys in no particular order; for callers that sum many sketches. */
  each(nowMs: number, visit: (key: string, rate: number) => void): void {
    const scale = this.#rateScale(nowMs)
    for (let entry = 0; entry < this.size; entry++) {
      const rate = (at(this.#counts, entry) - at(this.#errors, entry)) * scale
      if (rate >= RATE_MIN) visit(this.#keys[entry] ?? '', rate)
    }
  }

  /** Converts a count to a rate: the decay until now, divided by the time that still counts. */
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
    const stored = ownText(boundedKey(key))
    if (isFull) this.#replaceLowest(stored, weight)
    else this.#add(stored, weight)
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

/** Sorts by rate, highest first, then by key. */
export function byRate(one: HeavyHitter, other: HeavyHitter): number {
  return other.rate - one.rate || (one.key < other.key ? -1 : 1)
}

function at(values: Float64Array | Int32Array, index: number): number {
  return values[index] ?? 0
}
