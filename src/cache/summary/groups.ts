import type { InLane } from '../../lib/run-queue.ts'
import type { GroupField } from '../../storage/summary.ts'
import type { EventTable } from '../memory/event-table.ts'
import { type Reader, readerOf, textOf } from './group-values.ts'
import { grown } from './grown.ts'
import type { ObjectNumbers } from './object-numbers.ts'
import { PairNumbers } from './pair-numbers.ts'
import { chunkMax, type SlotList } from './slot-list.ts'
import { ValueNumbers } from './value-numbers.ts'

interface Level {
  readonly read: Reader
  readonly groups: PairNumbers | ValueNumbers
}

export interface GroupsOptions extends InLane {
  readonly groupBy: readonly GroupField[]
  readonly objects: ObjectNumbers
}

/**
 * The groups of some events, numbered from 0 without gaps, and how often the events of each were
 * observed. There are never more groups than events; a group takes some 50 bytes, an event four.
 */
export class Groups {
  readonly #table: EventTable
  readonly #groupBy: readonly GroupField[]
  readonly #levels: readonly Level[]
  /** The group of each event of the list. */
  readonly #ofEvents: Uint32Array
  #occurrences = new Float64Array(chunkMax)
  /** An event of each group. */
  #samples = new Uint32Array(chunkMax)
  #size = 0

  static async of(table: EventTable, list: SlotList, options: GroupsOptions): Promise<Groups> {
    const groups = new Groups(table, list.size, options)
    const { objects, signal, lane } = options
    using slices = lane.slices({ signal })
    await list.each(
      { slices, signal },
      ({ slots, from }) => groups.#add(slots, from),
      async () => {
        if (options.groupBy.includes('object')) await objects.reserve(chunkMax, { slices, signal })
        for (const level of groups.#levels) await level.groups.reserve(chunkMax, { slices, signal })
        groups.#reserve(chunkMax)
      },
    )
    return groups
  }

  private constructor(table: EventTable, events: number, { groupBy, objects }: GroupsOptions) {
    this.#table = table
    this.#groupBy = groupBy
    this.#levels = groupBy.map((field, index) => {
      const isObject = field === 'object'
      return {
        read: isObject ? (slot) => objects.numberOf(slot) : readerOf(table, field),
        groups: index === 0 && !isObject ? new ValueNumbers(table.texts.span) : new PairNumbers(),
      }
    })
    this.#ofEvents = new Uint32Array(events)
  }

  get size(): number {
    return this.#size
  }

  /** The group of the event at this index of the list. */
  ofEvent(index: number): number {
    return this.#ofEvents[index] ?? 0
  }

  occurrencesOf(group: number): number {
    return this.#occurrences[group] ?? 0
  }

  /** What the events of the group have in common: a text for each field. */
  valuesOf(group: number): readonly string[] {
    const slot = this.#samples[group] ?? 0
    return this.#groupBy.map((field) => textOf(this.#table, slot, field))
  }

  #add(slots: Uint32Array, from: number): void {
    const ofEvents = this.#ofEvents
    // Field by field: a group of the first fields and the value of the next one are a pair.
    for (const { read, groups } of this.#levels) {
      for (let at = 0; at < slots.length; at++) {
        ofEvents[from + at] = groups.numberOf(ofEvents[from + at] ?? 0, read(slots[at] ?? 0))
      }
    }
    for (let at = 0; at < slots.length; at++) {
      const group = ofEvents[from + at] ?? 0
      const slot = slots[at] ?? 0
      if (group >= this.#size) {
        this.#size = group + 1
        this.#samples[group] = slot
      }
      this.#occurrences[group] = (this.#occurrences[group] ?? 0) + this.#table.occurrencesOf(slot)
    }
  }

  #reserve(count: number): void {
    let capacity = this.#samples.length
    if (this.#size + count <= capacity) return
    while (this.#size + count > capacity) capacity *= 2
    this.#occurrences = grown(this.#occurrences, new Float64Array(capacity))
    this.#samples = grown(this.#samples, new Uint32Array(capacity))
  }
}
