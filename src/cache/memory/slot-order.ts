/** How a sorted set of slots finds the place of one of them. */

/** Compares slots with the one that was sought last. */
export abstract class SlotOrder {
  /** All comparisons until the next call are with this slot, and narrow its place down. */
  abstract seek(slot: number): void

  /**
   * Below 0 when the slot is before the sought one, above 0 when after, 0 when they are equal.
   * Each must be between the nearest ones on both sides that were compared before it.
   */
  abstract compare(slot: number): number

  /** How many of the sorted slots are before the sought one. */
  countBefore(slots: readonly number[]): number {
    let low = 0
    let high = slots.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.compare(slots[middle] ?? 0) < 0) low = middle + 1
      else high = middle
    }
    return low
  }

  /** How many of the sorted slots are before the sought one, or equal to it. */
  countUpTo(slots: readonly number[]): number {
    let low = 0
    let high = slots.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.compare(slots[middle] ?? 0) <= 0) low = middle + 1
      else high = middle
    }
    return low
  }
}
