/**
 * Entries in groups that hold a limited number of bytes together. When there are more, the oldest
 * entries of the largest group are evicted, so that a group cannot displace the others.
 */
export class BoundedMap<Value> {
  readonly #bytesMax: number
  readonly #sizeOf: (key: string, value: Value) => number
  readonly #groups = new Map<string, Group<Value>>()
  #bytes = 0
  #evicted = 0

  /** `sizeOf` returns the same for an entry whenever it is called. */
  constructor(bytesMax: number, sizeOf: (key: string, value: Value) => number) {
    this.#bytesMax = bytesMax
    this.#sizeOf = sizeOf
  }

  get size(): number {
    let size = 0
    for (const { entries } of this.#groups.values()) size += entries.size
    return size
  }

  get bytes(): number {
    return this.#bytes
  }

  /** How many entries made room for others. */
  get evicted(): number {
    return this.#evicted
  }

  get(group: string, key: string): Value | undefined {
    return this.#groups.get(group)?.entries.get(key)
  }

  /** Makes the entry the newest. */
  set(group: string, key: string, value: Value): void {
    this.delete(group, key)
    const { entries } = this.#changed(group, this.#sizeOf(key, value))
    entries.set(key, value)
    if (this.#bytes <= this.#bytesMax) return
    while (this.#bytes > this.#bytesMax - EVICTED_PART * this.#bytesMax) this.#evict()
  }

  delete(group: string, key: string): void {
    const found = this.#groups.get(group)
    const value = found?.entries.get(key)
    if (found === undefined || value === undefined) return
    found.entries.delete(key)
    this.#changed(group, -this.#sizeOf(key, value))
    if (found.entries.size > 0) return
    this.#groups.delete(group)
    this.#bytes -= GROUP_BYTES
  }

  #evict(): void {
    let largest = ''
    let most = 0
    for (const [name, { bytes }] of this.#groups) {
      if (bytes <= most) continue
      largest = name
      most = bytes
    }
    const { entries } = this.#groups.get(largest) ?? { entries: new Map<string, Value>() }
    let left = Math.ceil(entries.size * EVICTED_PART)
    for (const oldest of entries.keys()) {
      if (left-- === 0) return
      this.delete(largest, oldest)
      this.#evicted++
    }
  }

  #changed(name: string, bytes: number): Group<Value> {
    let group = this.#groups.get(name)
    if (group === undefined) {
      group = { entries: new Map(), bytes: 0 }
      this.#bytes += GROUP_BYTES
      this.#groups.set(name, group)
    }
    group.bytes += bytes
    this.#bytes += bytes
    return group
  }
}

/**
 * Several at once: all groups are compared to find the largest, and to find its oldest entry, a Map
 * passes the places of all that were deleted before.
 */
const EVICTED_PART = 1 / 64

/** What a group takes in addition to its entries. */
const GROUP_BYTES = 400

interface Group<Value> {
  /** Oldest first. */
  readonly entries: Map<string, Value>
  bytes: number
}
