export interface Waiter {
  readonly sinceMs: number
  /** Starts the slice, which may end after this has returned. */
  resume(): void
}

/** A lane that has waiting work, or has used time while others waited. */
export interface WaitingLane {
  readonly name: string
  /** FIFO. */
  readonly waiters: Set<Waiter>
  /** The time it has used since it joined, plus the least that any lane had used by then. */
  usedMs: number
  /** `usedMs` when the lane was placed in the heap. */
  placedMs: number
  /** Breaks ties between lanes that have used the same time: the first placed goes first. */
  placedAs: number
}

/**
 * Lanes that compete for slices. The one that has used the least time is next. A lane that joins
 * starts with the least that any other has used, so it gets no credit for having been idle.
 *
 * A lane without waiting work stays until all others have used as much as it has, so that a user who
 * sends one request after the other does not always go first. When nothing waits, all lanes are
 * dropped.
 */
export class LaneOrder {
  readonly #lanes = new Map<string, WaitingLane>()
  /** A binary heap ordered by `placedMs`. */
  readonly #heap: WaitingLane[] = []
  /** `usedMs` of the lane served last: no waiting lane has used less. */
  #leastMs = 0
  #placed = 0
  #waiting = 0

  get waiting(): number {
    return this.#waiting
  }

  get size(): number {
    return this.#lanes.size
  }

  find(name: string): WaitingLane | undefined {
    return this.#lanes.get(name)
  }

  add(name: string, waiter: Waiter): void {
    this.#laneOf(name).waiters.add(waiter)
    this.#waiting++
  }

  /** Returns false if it no longer waits. */
  remove(name: string, waiter: Waiter): boolean {
    if (this.#lanes.get(name)?.waiters.delete(waiter) !== true) return false
    this.#countRemoved()
    return true
  }

  /** Removes and returns the next waiter. Its lane must be charged when the slice has ended. */
  next(): { readonly name: string; readonly waiter: Waiter } | undefined {
    for (let lane = this.#pop(); lane !== undefined; lane = this.#pop()) {
      if (lane.usedMs > lane.placedMs) {
        this.#push(lane)
        continue
      }
      this.#leastMs = lane.usedMs
      const [waiter] = lane.waiters
      if (waiter === undefined) {
        this.#lanes.delete(lane.name)
        continue
      }
      lane.waiters.delete(waiter)
      // Behind lanes that have used as much, so that work that takes no time alternates as well.
      this.#push(lane)
      this.#countRemoved()
      return { name: lane.name, waiter }
    }
    return undefined
  }

  /** Adds to the time that the lane has used. Has no effect while no lane waits. */
  charge(name: string, ms: number): void {
    if (this.#waiting > 0) this.#laneOf(name).usedMs += ms
  }

  #laneOf(name: string): WaitingLane {
    let lane = this.#lanes.get(name)
    if (lane === undefined) {
      lane = { name, waiters: new Set(), usedMs: this.#leastMs, placedMs: 0, placedAs: 0 }
      this.#lanes.set(name, lane)
      this.#push(lane)
    }
    return lane
  }

  #countRemoved(): void {
    if (--this.#waiting > 0) return
    this.#lanes.clear()
    this.#heap.length = 0
    this.#leastMs = 0
  }

  #push(lane: WaitingLane): void {
    lane.placedMs = lane.usedMs
    lane.placedAs = this.#placed++
    const heap = this.#heap
    let at = heap.length
    while (at > 0) {
      const parent = (at - 1) >>> 1
      const above = heap[parent]
      if (above === undefined || !isBefore(lane, above)) break
      heap[at] = above
      at = parent
    }
    heap[at] = lane
  }

  #pop(): WaitingLane | undefined {
    const heap = this.#heap
    const first = heap[0]
    const last = heap.pop()
    if (last === undefined || last === first) return first
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      const left = heap[child]
      if (left === undefined) break
      const right = heap[child + 1]
      if (right !== undefined && isBefore(right, left)) child++
      const lesser = heap[child] ?? left
      if (!isBefore(lesser, last)) break
      heap[at] = lesser
      at = child
    }
    heap[at] = last
    return first
  }
}

function isBefore(one: WaitingLane, other: WaitingLane): boolean {
  return (
    one.placedMs < other.placedMs ||
    (one.placedMs === other.placedMs && one.placedAs < other.placedAs)
  )
}
