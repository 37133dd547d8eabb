/**
 * Which rows the present has, one bit for each. Reading all rows in the order of their slots is many
 * times faster than following a sorted set, whose neighbours are anywhere in memory.
 */
const firstWords = 512

export class PresentRows {
  #bits = new Uint32Array(firstWords)
  #words = 0

  /** The number of slots that a scan looks at: a multiple of 32. */
  get span(): number {
    return this.#words * 32
  }

  add(slot: number): void {
    const word = slot >>> 5
    if (word >= this.#bits.length) {
      const larger = new Uint32Array(this.#bits.length * 2)
      larger.set(this.#bits)
      this.#bits = larger
    }
    this.#words = Math.max(this.#words, word + 1)
    this.#bits[word] = (this.#bits[word] ?? 0) | (1 << (slot & 31))
  }

  remove(slot: number): void {
    const word = slot >>> 5
    this.#bits[word] = (this.#bits[word] ?? 0) & ~(1 << (slot & 31))
  }

  /** A copy of the bits, which later changes do not affect: an eighth of a megabyte for a million. */
  copy(): Uint32Array {
    return this.#bits.slice(0, this.#words)
  }
}
