import { GROUPS_MAX } from '../../storage/summary.ts'
import { COLUMNS } from '../memory/columns.ts'
import type { EventTable } from '../memory/event-table.ts'
import { ObjectPairs } from './object-pairs.ts'

/** What is counted of each group, by column: a group is a row number. */
export class GroupCounts {
  readonly occurrences: Float64Array = new Float64Array(GROUPS_MAX)
  readonly warnings: Float64Array = new Float64Array(GROUPS_MAX)
  readonly events: Uint32Array = new Uint32Array(GROUPS_MAX)
  readonly objects: Uint32Array = new Uint32Array(GROUPS_MAX)
  /** 0 when no event has such a time. */
  readonly firstMs: Float64Array = new Float64Array(GROUPS_MAX)
  readonly lastMs: Float64Array = new Float64Array(GROUPS_MAX)
  /** The slot of the event that was seen last; of several, the one with the first key. */
  readonly samples: Uint32Array = new Uint32Array(GROUPS_MAX)
  readonly #table: EventTable
  readonly #pairs = new ObjectPairs()
  /** The number of the type; undefined when there are none. It stays while their state is pinned. */
  readonly #warning: number | undefined
  #size = 0

  constructor(table: EventTable) {
    this.#table = table
    this.#warning = table.texts.find('Warning')
  }

  /** Groups are numbered from 0 without gaps. */
  get size(): number {
    return this.#size
  }

  add(group: number, slot: number): void {
    const table = this.#table
    const seenMs = table.lastSeenOf(slot)
    const isFirst = this.events[group] === 0
    if (isFirst) this.#size++
    increase(this.events, group, 1)
    const occurrences = table.occurrencesOf(slot)
    increase(this.occurrences, group, occurrences)
    if (table.valueOf(slot, COLUMNS.type) === this.#warning) {
      increase(this.warnings, group, occurrences)
    }
    if (this.#pairs.add(group, table.objectOf(slot))) increase(this.objects, group, 1)
    this.#addFirst(group, table.firstSeenOf(slot))
    if (!isFirst && !this.#isBetterSample(group, slot, seenMs)) return
    this.lastMs[group] = seenMs
    this.samples[group] = slot
  }

  #addFirst(group: number, firstMs: number): void {
    if (firstMs === 0) return
    const known = this.firstMs[group] ?? 0
    if (known === 0 || firstMs < known) this.firstMs[group] = firstMs
  }

  #isBetterSample(group: number, slot: number, seenMs: number): boolean {
    const lastMs = this.lastMs[group] ?? 0
    if (seenMs !== lastMs) return seenMs > lastMs
    return this.#table.compareKeys(slot, this.samples[group] ?? 0) < 0
  }
}

function increase(counts: Float64Array | Uint32Array, group: number, by: number): void {
  counts[group] = (counts[group] ?? 0) + by
}
