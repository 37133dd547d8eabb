import { COLUMNS } from '../memory/columns.ts'
import type { EventTable } from '../memory/event-table.ts'
import { PairNumbers, type ReserveOptions } from './pair-numbers.ts'

/**
 * Numbers the regarded objects. Two objects share a number only if both of their hashes collide,
 * which is rare.
 */
export class ObjectNumbers {
  readonly #table: EventTable
  readonly #pairs = new PairNumbers()

  constructor(table: EventTable) {
    this.#table = table
  }

  reserve(count: number, options: ReserveOptions): Promise<void> {
    return this.#pairs.reserve(count, options)
  }

  numberOf(slot: number): number {
    const table = this.#table
    return this.#pairs.numberOf(
      table.valueOf(slot, COLUMNS.object),
      table.valueOf(slot, COLUMNS.regarding),
    )
  }
}
