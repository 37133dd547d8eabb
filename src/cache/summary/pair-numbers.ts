/**
 * Numbers pairs of numbers: 0, 1, 2 and so on. A `Map` would need a text or a large number for each
 * pair, and would block the event loop whenever a large one grows: here it grows in time slices.
 * A pair takes 16 to 32 bytes.
 */
import { randomFillSync } from 'node:crypto'
import { mixed } from '../../lib/hash.ts'
import type { Slices } from '../../lib/run-queue.ts'
import { throwIfAborted } from '../../storage/aborted-read.ts'
import { grown } from './grown.ts'

const firstCapacity = 1_024
/** Entries that are moved between two reads of the clock. */
const movedAtOnce = 4_096

export interface ReserveOptions {
  readonly slices: Slices
  readonly signal: AbortSignal
}

export class PairNumbers {
  #firsts = new Uint32Array(firstCapacity)
  #seconds = new Uint32Array(firstCapacity)
  /** The number of a pair plus 1 at its place; 0 at a free place. At most half of them are used. */
  #places = new Uint32Array(2 * firstCapacity)
  #size = 0
  readonly #seeds = newSeeds()

  get size(): number {
    return this.#size
  }

  /** Makes space for this many more pairs. */
  async reserve(count: number, { slices, signal }: ReserveOptions): Promise<void> {
    let capacity = this.#firsts.length
    if (this.#size + count <= capacity) return
    while (this.#size + count > capacity) capacity *= 2
    this.#firsts = grown(this.#firsts, new Uint32Array(capacity))
    this.#seconds = grown(this.#seconds, new Uint32Array(capacity))
    this.#places = new Uint32Array(2 * capacity)
    for (let number = 0; number < this.#size; number++) {
      const place = this.#placeOf(this.#firsts[number] ?? 0, this.#seconds[number] ?? 0)
      this.#places[place] = number + 1
      if (number % movedAtOnce !== 0 || !slices.isOver()) continue
      await slices.next()
      throwIfAborted(signal)
    }
  }

  /** The number of a pair, which is the size if it is new. Its space must have been reserved. */
  numberOf(first: number, second: number): number {
    const place = this.#placeOf(first, second)
    const known = this.#places[place] ?? 0
    if (known !== 0) return known - 1
    const number = this.#size++
    this.#firsts[number] = first
    this.#seconds[number] = second
    this.#places[place] = number + 1
    return number
  }

  /** Where the pair is, or would be. */
  #placeOf(first: number, second: number): number {
    const places = this.#places
    const mask = places.length - 1
    for (let at = hashOf(this.#seeds, first, second) & mask; ; at = (at + 1) & mask) {
      const known = places[at] ?? 0
      if (known === 0) return at
      if (this.#firsts[known - 1] === first && this.#seconds[known - 1] === second) return at
    }
  }
}

/**
 * Random for each table: names of objects are chosen by clients, who must not be able to choose
 * objects that all have one place.
 */
type Seeds = readonly [first: number, second: number]

function newSeeds(): Seeds {
  // Odd factors lose no bit.
  const [first = 0, second = 0] = randomFillSync(new Uint32Array(2))
  return [first | 1, second | 1]
}

function hashOf(seeds: Seeds, first: number, second: number): number {
  const value = Math.imul(first ^ seeds[1], seeds[0]) ^ (first >>> 15)
  return mixed(Math.imul(value ^ second, seeds[1]))
}
