/** Keeps the first slots of many, in an order, without holding the others: a bounded heap. */
export class TopSlots {
  readonly #max: number
  readonly #compare: (slot: number, other: number) => number
  /** A binary heap: the last in order is at the root. */
  readonly #heap: number[] = []
  #offered = 0

  constructor(max: number, compare: (slot: number, other: number) => number) {
    this.#max = max
    this.#compare = compare
  }

  /** How many slots were offered and dropped. */
  get dropped(): number {
    return this.#offered - this.#heap.length
  }

  offer(slot: number): void {
    const heap = this.#heap
    this.#offered++
    if (heap.length < this.#max) {
      heap.push(slot)
      this.#siftUp(heap.length - 1)
      return
    }
    const last = heap[0]
    if (last === undefined || this.#compare(slot, last) >= 0) return
    heap[0] = slot
    this.#siftDown()
  }

  sorted(): readonly number[] {
    return this.#heap.toSorted(this.#compare)
  }

  #siftUp(from: number): void {
    let at = from
    while (at > 0) {
      const parent = (at - 1) >>> 1
      if (this.#order(at, parent) <= 0) return
      this.#swap(at, parent)
      at = parent
    }
  }

  #siftDown(): void {
    let at = 0
    for (;;) {
      const left = 2 * at + 1
      if (left >= this.#heap.length) return
      const right = left + 1
      const child = right < this.#heap.length && this.#order(right, left) > 0 ? right : left
      if (this.#order(child, at) <= 0) return
      this.#swap(at, child)
      at = child
    }
  }

  #order(at: number, other: number): number {
    return this.#compare(this.#heap[at] ?? 0, this.#heap[other] ?? 0)
  }

  #swap(at: number, other: number): void {
    const heap = this.#heap
    const held = heap[at] ?? 0
    heap[at] = heap[other] ?? 0
    heap[other] = held
  }
}
