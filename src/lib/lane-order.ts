/** Work that waits for a slice. */
export interface Waiter {
  readonly sinceMs: number
  /** Runs the slice. It may end, or wait for something else, after this has returned. */
  resume(): void
}

/** A lane that has waiting work, or has used time while others waited. */
export interface WaitingLane {
  readonly name: string
  /** FIFO. */
  readonly waiters: Set<Waiter>
  /** The time that it has used, plus what all others had used when it joined. */
  usedMs: number
  /** `usedMs` when the lane got its place in the heap. */
  placedMs: number
  /** Decides between lanes that have used the same time: the one that was placed first. */
  placedAs: number
}

/**
 * Lanes that compete for slices. The one that has used the least time is next, and a lane that joins
 * starts with the least that any other has used: it has no credit for the time when it was idle.
 *
 * A lane that has no more waiting work stays until all others have used as much as it has, so that
 * a user who sends one request after the other does not always go first. When nothing waits, all
 * lanes are forgotten.
 */
export class LaneOrder {
  readonly #lanes = new Map<string, WaitingLane>()
  /** A binary heap by time used when placed. */
  readonly #heap: WaitingLane[] = []
  /** What the lane had used that was served last: no waiting lane has used less. */
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

  /** Returns false if it does not wait any more. */
  remove(name: string, waiter: Waiter): boolean {
    if (this.#lanes.get(name)?.waiters.delete(waiter) !== true) return false
    this.#countRemoved()
    return true
  }

  /** Removes and returns the next waiter; `charge` its lane when its slice has ended. */
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
      // At the end of those that have used as much: work that takes no time alternates as well.
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
