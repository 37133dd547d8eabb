/** The orders of rows: by key alone, or by a number and then by key. */
import type { Column } from './columns.ts'
import type { EventTable } from './event-table.ts'
import type { TextSearch } from './slabs.ts'
import { SlotOrder } from './slot-order.ts'

export class KeyOrder extends SlotOrder {
  readonly #table: EventTable
  readonly #keys: TextSearch

  constructor(table: EventTable) {
    super()
    this.#table = table
    this.#keys = table.keySearch()
  }

  override seek(slot: number): void {
    this.#keys.seek(this.#table.keyPlaceOf(slot))
  }

  override compare(slot: number): number {
    return this.#keys.compare(this.#table.keyPlaceOf(slot))
  }
}

/** By when events were last seen, then by key. */
export class TimeOrder extends SlotOrder {
  readonly #table: EventTable
  readonly #keys: TextSearch
  #lastSeen = 0

  constructor(table: EventTable) {
    super()
    this.#table = table
    this.#keys = table.keySearch()
  }

  override seek(slot: number): void {
    this.#lastSeen = this.#table.lastSeenOf(slot)
    this.#keys.seek(this.#table.keyPlaceOf(slot))
  }

  override compare(slot: number): number {
    const difference = this.#table.lastSeenOf(slot) - this.#lastSeen
    return difference === 0 ? this.#keys.compare(this.#table.keyPlaceOf(slot)) : difference
  }
}

/** By the number in a column, then by key. */
export class ColumnOrder extends SlotOrder {
  readonly #table: EventTable
  readonly #column: Column
  readonly #keys: TextSearch
  #value = 0

  constructor(table: EventTable, column: Column) {
    super()
    this.#table = table
    this.#column = column
    this.#keys = table.keySearch()
  }

  override seek(slot: number): void {
    this.#value = this.#table.valueOf(slot, this.#column)
    this.#keys.seek(this.#table.keyPlaceOf(slot))
  }

  override compare(slot: number): number {
    const difference = this.#table.valueOf(slot, this.#column) - this.#value
    return difference === 0 ? this.#keys.compare(this.#table.keyPlaceOf(slot)) : difference
  }
}
