/** A hash of everything that happened in a run, cheap enough for every message. */
const words = new Uint32Array(2)
const double = new Float64Array(words.buffer)

export class TraceHash {
  #low = 0x811c9dc5
  #high = 0x9e3779b9
  #count = 0

  add(value: number): void {
    double[0] = value
    this.#low = mix(this.#low ^ (words[0] as number))
    this.#high = mix(this.#high ^ (words[1] as number) ^ this.#low)
    this.#count++
  }

  digest(): string {
    const hex = (word: number) => (word >>> 0).toString(16).padStart(8, '0')
    return `${hex(this.#high)}${hex(this.#low)}-${this.#count}`
  }
}

function mix(word: number): number {
  const first = Math.imul(word ^ (word >>> 16), 0x85ebca6b)
  const second = Math.imul(first ^ (first >>> 13), 0xc2b2ae35)
  return second ^ (second >>> 16)
}
