/**
 * A bitmap of the slots that hold a live event in the newest state. Scanning slots in memory order is
 * several times faster than walking a sorted index, whose neighbours are scattered.
 */
const firstWords = 512

export class PresentRows {
  #bits = new Uint32Array(firstWords)
  #words = 0

  /** The number of slots that a scan visits: a multiple of 32, which never shrinks. */
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

  /** A copy that later changes do not affect: 125 KB per million slots. */
  copy(): Uint32Array {
    return this.#bits.slice(0, this.#words)
  }
}
