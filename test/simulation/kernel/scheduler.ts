/** Virtual time: a queue of entries in the order of their time, then of their scheduling. */

/** Something that runs later. */
export interface Entry {
  readonly at: number
  readonly sequence: number
  /** Undefined after it ran or was cancelled. */
  run: (() => void) | undefined
}

/** Cancelled entries stay in the heap until their time; above this share the heap is rebuilt. */
const cancelledShareMax = 0.75
const rebuildAbove = 4_096

export class Scheduler {
  #now = 0
  #sequence = 0
  #cancelled = 0
  #heap: Entry[] = []

  /** True time in milliseconds. */
  get now(): number {
    return this.#now
  }

  get waiting(): number {
    return this.#heap.length - this.#cancelled
  }

  /** Schedules work at a time, or now if that time has passed. */
  at(time: number, run: () => void): Entry {
    const entry: Entry = {
      at: Math.max(time, this.#now),
      sequence: this.#sequence++,
      run,
    }
    this.#push(entry)
    return entry
  }

  cancel(entry: Entry): void {
    if (entry.run === undefined) return
    entry.run = undefined
    this.#cancelled++
    if (
      this.#heap.length > rebuildAbove &&
      this.#cancelled > this.#heap.length * cancelledShareMax
    ) {
      this.#rebuild()
    }
  }

  /** Removes the next entry and moves time to it. Undefined when there is none up to `until`. */
  next(until: number): (() => void) | undefined {
    for (;;) {
      const first = this.#heap[0]
      if (first === undefined || first.at > until) {
        if (until > this.#now) this.#now = until
        return undefined
      }
      this.#pop()
      const { run } = first
      if (run === undefined) {
        this.#cancelled--
        continue
      }
      first.run = undefined
      this.#now = first.at
      return run
    }
  }

  #push(entry: Entry): void {
    const heap = this.#heap
    let index = heap.length
    heap.push(entry)
    while (index > 0) {
      const parent = (index - 1) >> 2
      const above = heap[parent] as Entry
      if (!isBefore(entry, above)) break
      heap[index] = above
      index = parent
    }
    heap[index] = entry
  }

  #pop(): void {
    const heap = this.#heap
    const last = heap.pop() as Entry
    if (heap.length > 0) this.#sink(0, last)
  }

  /** Puts an entry where it belongs, from this index downwards. */
  #sink(start: number, entry: Entry): void {
    const heap = this.#heap
    const { length } = heap
    let index = start
    for (;;) {
      const first = index * 4 + 1
      if (first >= length) break
      let least = first
      const end = Math.min(first + 4, length)
      for (let child = first + 1; child < end; child++) {
        if (isBefore(heap[child] as Entry, heap[least] as Entry)) least = child
      }
      const below = heap[least] as Entry
      if (!isBefore(below, entry)) break
      heap[index] = below
      index = least
    }
    heap[index] = entry
  }

  #rebuild(): void {
    const heap = this.#heap.filter(({ run }) => run !== undefined)
    this.#heap = heap
    this.#cancelled = 0
    for (let index = (heap.length - 2) >> 2; index >= 0; index--) {
      this.#sink(index, heap[index] as Entry)
    }
  }
}

function isBefore(a: Entry, b: Entry): boolean {
  return a.at < b.at || (a.at === b.at && a.sequence < b.sequence)
}
