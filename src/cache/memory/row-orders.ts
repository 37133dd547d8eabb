/**
 * The orders of rows: by key alone, or by a number and then by key.
 *
 * There are several indexes, and most events have equal neighbours in some of them: the same reason,
 * the same source. So that keys need not be read and compared for each, a row gets a rank when its
 * place among the keys is found: a number between those of its neighbours. Where events arrive in
 * the order of their keys there is no number left between two neighbours after a while; then the rank
 * is equal to one of theirs, and their keys are compared.
 */
import type { Column } from './columns.ts'
import type { EventTable } from './event-table.ts'
import type { TextSearch } from './slabs.ts'
import { SlotOrder } from './slot-order.ts'

/** The distance of the ranks of events that are loaded in order. */
const rankStep = 2 ** 20

export class KeyOrder extends SlotOrder {
  readonly #table: EventTable
  readonly #keys: TextSearch
  /** The nearest slots that were compared with the sought one. */
  #before: number | undefined
  #after: number | undefined

  constructor(table: EventTable) {
    super()
    this.#table = table
    this.#keys = table.keySearch()
  }

  override seek(slot: number): void {
    this.#keys.seek(this.#table.keyPlaceOf(slot))
    this.#before = undefined
    this.#after = undefined
  }

  override compare(slot: number): number {
    const difference = this.#keys.compare(this.#table.keyPlaceOf(slot))
    if (difference < 0) this.#before = slot
    else if (difference > 0) this.#after = slot
    return difference
  }

  /** The place of the sought slot was found, which was not taken: gives it its rank. */
  rank(slot: number): void {
    this.#table.setKeyRank(slot, this.#rankBetween())
  }

  #rankBetween(): number {
    const [before, after] = [this.#before, this.#after]
    if (before === undefined) {
      return after === undefined ? 0 : this.#table.keyRankOf(after) - rankStep
    }
    const low = this.#table.keyRankOf(before)
    if (after === undefined) return low + rankStep
    // A larger gap is left after it than before it: later events of an object have higher keys.
    return low + (this.#table.keyRankOf(after) - low) / 4
  }
}

/** Orders rows by when their events were last seen, then by key. */
export class TimeOrder extends SlotOrder {
  readonly #table: EventTable
  readonly #keys: RankedKeys
  #lastSeen = 0

  constructor(table: EventTable) {
    super()
    this.#table = table
    this.#keys = new RankedKeys(table)
  }

  override seek(slot: number): void {
    this.#lastSeen = this.#table.lastSeenOf(slot)
    this.#keys.seek(slot)
  }

  override compare(slot: number): number {
    return this.#table.lastSeenOf(slot) - this.#lastSeen || this.#keys.compare(slot)
  }
}

/** Orders rows by the number in a column, then by key. */
export class ColumnOrder extends SlotOrder {
  readonly #table: EventTable
  readonly #column: Column
  readonly #keys: RankedKeys
  #value = 0

  constructor(table: EventTable, column: Column) {
    super()
    this.#table = table
    this.#column = column
    this.#keys = new RankedKeys(table)
  }

  override seek(slot: number): void {
    this.#value = this.#table.valueOf(slot, this.#column)
    this.#keys.seek(slot)
  }

  override compare(slot: number): number {
    return this.#table.valueOf(slot, this.#column) - this.#value || this.#keys.compare(slot)
  }
}

/** Compares keys, by their ranks if these differ. */
class RankedKeys {
  readonly #table: EventTable
  readonly #keys: TextSearch
  #rank = 0

  constructor(table: EventTable) {
    this.#table = table
    this.#keys = table.keySearch()
  }

  seek(slot: number): void {
    this.#rank = this.#table.keyRankOf(slot)
    this.#keys.seek(this.#table.keyPlaceOf(slot))
  }

  compare(slot: number): number {
    return (
      this.#table.keyRankOf(slot) - this.#rank || this.#keys.compare(this.#table.keyPlaceOf(slot))
    )
  }
}
