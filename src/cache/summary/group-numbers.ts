/**
 * Numbers the groups of events: 0, 1, 2 and so on. The fields are divided into two halves, and pairs
 * of their values are numbered: few reasons and patterns are a small table, so that only the last of
 * the tables is as large as the number of groups.
 */
import type { GroupField } from '../../storage/summary.ts'
import type { EventTable } from '../memory/event-table.ts'
import { isInterned, type Reader, readerOf } from './group-values.ts'
import type { ObjectNumbers } from './object-numbers.ts'
import { PairNumbers, type ReserveOptions } from './pair-numbers.ts'
import { chunkMax } from './slot-list.ts'
import { ValueNumbers } from './value-numbers.ts'

/** Numbers slots: those with the same values of some fields have the same number. */
export interface SlotNumbers {
  /** Writes the number of each slot. Space for as many pairs must have been reserved. */
  write(slots: Uint32Array, target: Uint32Array): void
  reserve(count: number, options: ReserveOptions): Promise<void>
}

/** The numbers of groups have no gaps, in the order in which groups are first seen. */
export function groupNumbers(
  table: EventTable,
  groupBy: readonly GroupField[],
  objects: ObjectNumbers,
): SlotNumbers {
  const [only, second] = groupBy
  if (only === undefined) return new RawValues(() => 0)
  if (second !== undefined) return numbersOf(table, groupBy, objects)
  const values = valuesOf(table, only, objects)
  const numbers = isInterned(only) ? new ValueNumbers(table.texts.span) : new PairNumbers()
  return new Numbered(new RawValues(() => 0), values, numbers)
}

function numbersOf(
  table: EventTable,
  fields: readonly GroupField[],
  objects: ObjectNumbers,
): SlotNumbers {
  const [first, second] = fields
  if (first !== undefined && second === undefined) return valuesOf(table, first, objects)
  const middle = Math.ceil(fields.length / 2)
  return new Numbered(
    numbersOf(table, fields.slice(0, middle), objects),
    numbersOf(table, fields.slice(middle), objects),
    new PairNumbers(),
  )
}

function valuesOf(table: EventTable, field: GroupField, objects: ObjectNumbers): SlotNumbers {
  if (field !== 'object') return new RawValues(readerOf(table, field))
  return new RawValues(
    (slot) => objects.numberOf(slot),
    (count, options) => objects.reserve(count, options),
  )
}

/** The values themselves. */
class RawValues implements SlotNumbers {
  readonly #read: Reader
  readonly reserve: SlotNumbers['reserve']

  constructor(read: Reader, reserve: SlotNumbers['reserve'] = async () => {}) {
    this.#read = read
    this.reserve = reserve
  }

  write(slots: Uint32Array, target: Uint32Array): void {
    for (let at = 0; at < slots.length; at++) target[at] = this.#read(slots[at] ?? 0)
  }
}

/** Pairs of the numbers of two others. */
class Numbered implements SlotNumbers {
  readonly #left: SlotNumbers
  readonly #right: SlotNumbers
  readonly #pairs: PairNumbers | ValueNumbers
  readonly #seconds = new Uint32Array(chunkMax)

  constructor(left: SlotNumbers, right: SlotNumbers, pairs: PairNumbers | ValueNumbers) {
    this.#left = left
    this.#right = right
    this.#pairs = pairs
  }

  async reserve(count: number, options: ReserveOptions): Promise<void> {
    await this.#left.reserve(count, options)
    await this.#right.reserve(count, options)
    await this.#pairs.reserve(count, options)
  }

  write(slots: Uint32Array, target: Uint32Array): void {
    const seconds = this.#seconds
    this.#left.write(slots, target)
    this.#right.write(slots, seconds)
    for (let at = 0; at < slots.length; at++) {
      target[at] = this.#pairs.numberOf(target[at] ?? 0, seconds[at] ?? 0)
    }
  }
}
