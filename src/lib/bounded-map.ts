/** A map that holds a limited number of bytes: the oldest entries are evicted. */
export class BoundedMap<Value> {
  readonly #bytesMax: number
  readonly #sizeOf: (key: string, value: Value) => number
  readonly #entries = new Map<string, Value>()
  #bytes = 0

  /** `sizeOf` returns the same for an entry whenever it is called. */
  constructor(bytesMax: number, sizeOf: (key: string, value: Value) => number) {
    this.#bytesMax = bytesMax
    this.#sizeOf = sizeOf
  }

  get size(): number {
    return this.#entries.size
  }

  get bytes(): number {
    return this.#bytes
  }

  get(key: string): Value | undefined {
    return this.#entries.get(key)
  }

  /** Makes the entry the newest. */
  set(key: string, value: Value): void {
    this.delete(key)
    this.#entries.set(key, value)
    this.#bytes += this.#sizeOf(key, value)
    for (const oldest of this.#entries.keys()) {
      if (this.#bytes <= this.#bytesMax) return
      this.delete(oldest)
    }
  }

  delete(key: string): void {
    const value = this.#entries.get(key)
    if (value === undefined) return
    this.#entries.delete(key)
    this.#bytes -= this.#sizeOf(key, value)
  }
}
