import type { InLane } from '../../lib/run-queue.ts'
import { COLUMNS } from '../memory/columns.ts'
import type { EventTable } from '../memory/event-table.ts'
import type { Groups } from './groups.ts'
import type { ObjectNumbers } from './object-numbers.ts'
import type { OccurrenceTimes } from './occurrence-times.ts'
import { PairNumbers } from './pair-numbers.ts'
import { chunkMax, type SlotList } from './slot-list.ts'

export interface CountOptions extends InLane {
  readonly groups: Groups
  /** The groups that are counted. */
  readonly chosen: readonly number[]
  readonly objects: ObjectNumbers
}

/** The counts of the chosen groups, one array per column; a row is the index of a chosen group. */
export class GroupCounts {
  readonly events: Uint32Array
  /** Occurrences of Warnings. */
  readonly warnings: Float64Array
  readonly objects: Uint32Array
  /** 0 when no event has such a time. */
  readonly firstMs: Float64Array
  readonly lastMs: Float64Array
  /** 1 where some occurrences are estimated. */
  readonly estimated: Uint8Array
  /** The slot of the event that was seen last; if there are several, the one with the first key. */
  readonly samples: Uint32Array
  readonly #table: EventTable
  readonly #times: OccurrenceTimes
  /** The number of the type; undefined when there are none. It stays while their state is pinned. */
  readonly #warning: number | undefined
  /** Pairs of a row and an object. */
  readonly #pairs = new PairNumbers()

  static async of(table: EventTable, list: SlotList, options: CountOptions): Promise<GroupCounts> {
    const { groups, chosen, objects, signal, lane } = options
    const counts = new GroupCounts(table, list.times, chosen.length)
    const rows = rowsOf(groups, chosen)
    using slices = lane.slices({ signal })
    await list.each(
      { slices, signal },
      ({ slots, counts: seen, from }) => {
        for (let at = 0; at < slots.length; at++) {
          if (seen[at] === 0) continue
          const row = (rows[groups.ofEvent(from + at)] ?? 0) - 1
          if (row >= 0) counts.#add(row, slots[at] ?? 0, objects)
        }
      },
      async () => {
        await objects.reserve(chunkMax, { slices, signal })
        await counts.#pairs.reserve(chunkMax, { slices, signal })
      },
    )
    return counts
  }

  private constructor(table: EventTable, times: OccurrenceTimes, rows: number) {
    this.#table = table
    this.#times = times
    this.estimated = new Uint8Array(rows)
    this.events = new Uint32Array(rows)
    this.warnings = new Float64Array(rows)
    this.#warning = table.texts.find('Warning')
    this.objects = new Uint32Array(rows)
    this.firstMs = new Float64Array(rows)
    this.lastMs = new Float64Array(rows)
    this.samples = new Uint32Array(rows)
  }

  #add(row: number, slot: number, objects: ObjectNumbers): void {
    const table = this.#table
    const { count, lastMs: seenMs, isEstimated } = this.#times.within(slot)
    const isFirst = this.events[row] === 0
    increase(this.events, row, 1)
    if (isEstimated) this.estimated[row] = 1
    if (table.valueOf(slot, COLUMNS.type) === this.#warning) increase(this.warnings, row, count)
    const known = this.#pairs.size
    if (this.#pairs.numberOf(row, objects.numberOf(slot)) === known) increase(this.objects, row, 1)
    this.#addFirst(row, table.firstSeenOf(slot))
    if (!isFirst && !this.#isBetterSample(row, slot, seenMs)) return
    this.lastMs[row] = seenMs
    this.samples[row] = slot
  }

  #addFirst(row: number, firstMs: number): void {
    if (firstMs === 0) return
    const known = this.firstMs[row] ?? 0
    if (known === 0 || firstMs < known) this.firstMs[row] = firstMs
  }

  #isBetterSample(row: number, slot: number, seenMs: number): boolean {
    const lastMs = this.lastMs[row] ?? 0
    if (seenMs !== lastMs) return seenMs > lastMs
    return this.#table.compareKeys(slot, this.samples[row] ?? 0) < 0
  }
}

/** Maps each chosen group to its index plus 1, and the others to 0. */
export function rowsOf({ size }: Groups, chosen: readonly number[]): Uint32Array {
  const rows = new Uint32Array(size)
  for (const [row, group] of chosen.entries()) rows[group] = row + 1
  return rows
}

function increase(counts: Uint32Array | Float64Array, row: number, by: number): void {
  counts[row] = (counts[row] ?? 0) + by
}
