import type { InLane } from '../../lib/run-queue.ts'
import type { GroupField } from '../../storage/summary.ts'
import { COLUMNS } from '../memory/columns.ts'
import type { EventTable } from '../memory/event-table.ts'
import { groupNumbers, type SlotNumbers } from './group-numbers.ts'
import { textOf } from './group-values.ts'
import { grown } from './grown.ts'
import type { ObjectNumbers } from './object-numbers.ts'
import type { OccurrenceTimes } from './occurrence-times.ts'
import { type Chunk, chunkMax, type SlotList } from './slot-list.ts'

export interface GroupsOptions extends InLane {
  readonly groupBy: readonly GroupField[]
  readonly objects: ObjectNumbers
  /** Whether to find out when each group began, and which have Warnings. */
  readonly hasBegins?: boolean | undefined
}

/**
 * The groups of some events, numbered from 0 without gaps, and how often the events of each were
 * observed. There are never more groups than events; a group takes some 50 bytes, an event four.
 */
export class Groups {
  readonly #table: EventTable
  readonly #groupBy: readonly GroupField[]
  readonly #numbers: SlotNumbers
  /** The group of each event of the list. */
  readonly #ofEvents: Uint32Array
  #occurrences = new Float64Array(chunkMax)
  /** An event of each group. */
  #samples = new Uint32Array(chunkMax)
  /** When the first event of each group began; 0 when it is not known. Empty if not wanted. */
  #begins: Float64Array
  /** Whether a group has Warnings. Empty if not wanted. */
  #warned: Uint8Array
  readonly #warning: number | undefined
  readonly #before: OccurrenceTimes | undefined
  #countsBefore: Float64Array
  #size = 0

  static async of(table: EventTable, list: SlotList, options: GroupsOptions): Promise<Groups> {
    const groups = new Groups(table, list, options)
    const { signal, lane } = options
    using slices = lane.slices({ signal })
    await list.each(
      { slices, signal },
      (chunk) => groups.#add(chunk),
      async () => {
        await groups.#numbers.reserve(chunkMax, { slices, signal })
        groups.#reserve(chunkMax)
      },
    )
    return groups
  }

  private constructor(table: EventTable, list: SlotList, options: GroupsOptions) {
    const { groupBy, objects, hasBegins = false } = options
    this.#table = table
    this.#warning = hasBegins ? table.texts.find('Warning') : undefined
    this.#begins = new Float64Array(hasBegins ? chunkMax : 0)
    this.#warned = new Uint8Array(hasBegins ? chunkMax : 0)
    this.#before = list.before
    this.#countsBefore = new Float64Array(list.before === undefined ? 0 : chunkMax)
    this.#groupBy = groupBy
    this.#numbers = groupNumbers(table, groupBy, objects)
    this.#ofEvents = new Uint32Array(list.size)
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

  /** When its first event began; 0 when it is not known. Requires `hasBegins`. */
  beginOf(group: number): number {
    return this.#begins[group] ?? 0
  }

  /** Requires `hasBegins`. */
  hasWarnings(group: number): boolean {
    return this.#warned[group] === 1
  }

  /** The occurrences in the earlier window of the list. */
  countBefore(group: number): number {
    return this.#countsBefore[group] ?? 0
  }

  /** What the events of the group have in common: a text for each field. */
  valuesOf(group: number): readonly string[] {
    const slot = this.#samples[group] ?? 0
    return this.#groupBy.map((field) => textOf(this.#table, slot, field))
  }

  #add({ slots, counts, from }: Chunk): void {
    const ofEvents = this.#ofEvents
    this.#numbers.write(slots, ofEvents.subarray(from, from + slots.length))
    for (let at = 0; at < slots.length; at++) {
      const group = ofEvents[from + at] ?? 0
      if (group >= this.#size) {
        this.#size = group + 1
        this.#samples[group] = slots[at] ?? 0
      }
      this.#occurrences[group] = (this.#occurrences[group] ?? 0) + (counts[at] ?? 0)
    }
    if (this.#begins.length > 0) this.#addBegins({ slots, counts, from })
    if (this.#before !== undefined) this.#addBefore(this.#before, slots, from)
  }

  #addBegins({ slots, counts, from }: Chunk): void {
    for (let at = 0; at < slots.length; at++) {
      if (counts[at] === 0) continue
      const group = this.#ofEvents[from + at] ?? 0
      const slot = slots[at] ?? 0
      this.#addBegin(group, slot)
      if (this.#table.valueOf(slot, COLUMNS.type) === this.#warning) this.#warned[group] = 1
    }
  }

  #addBegin(group: number, slot: number): void {
    const known = this.#begins[group] || Number.POSITIVE_INFINITY
    const firstMs = this.#table.firstSeenOf(slot)
    if (firstMs !== 0 && firstMs < known) this.#begins[group] = firstMs
  }

  #addBefore(before: OccurrenceTimes, slots: Uint32Array, from: number): void {
    const counts = this.#countsBefore
    for (let at = 0; at < slots.length; at++) {
      const group = this.#ofEvents[from + at] ?? 0
      counts[group] = (counts[group] ?? 0) + before.countOf(slots[at] ?? 0)
    }
  }

  #reserve(count: number): void {
    let capacity = this.#samples.length
    if (this.#size + count <= capacity) return
    while (this.#size + count > capacity) capacity *= 2
    this.#occurrences = grown(this.#occurrences, new Float64Array(capacity))
    this.#samples = grown(this.#samples, new Uint32Array(capacity))
    if (this.#begins.length > 0) {
      this.#begins = grown(this.#begins, new Float64Array(capacity))
      this.#warned = grown(this.#warned, new Uint8Array(capacity))
    }
    if (this.#before !== undefined) {
      this.#countsBefore = grown(this.#countsBefore, new Float64Array(capacity))
    }
  }
}
