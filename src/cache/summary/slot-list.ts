import type { Slices } from '../../lib/run-queue.ts'
import { throwIfAborted } from '../../storage/aborted-read.ts'
import type { EventSelector } from '../../storage/storage.ts'
import type { TimeWindow } from '../../storage/summary.ts'
import type { EventTable } from '../memory/event-table.ts'
import type { EventMemory, State } from '../memory/memory.ts'
import { type SearchOptions, search } from '../read/search.ts'
import { OccurrenceTimes } from './occurrence-times.ts'

/** Slots that are visited between two reads of the clock. */
export const chunkMax = 4_096

/** Some slots, and where they are in the list. */
export interface Chunk {
  readonly slots: Uint32Array
  /** How often each event was observed within the window; 0 for one that was only before it. */
  readonly counts: Uint32Array
  readonly from: number
}

interface WindowSearch extends SearchOptions {
  readonly window?: TimeWindow | undefined
  /** An earlier window: the list has the events that were observed in it as well. */
  readonly newSince?: TimeWindow | undefined
}

/** The slots of all matches of a search that were observed within a window: eight bytes for each. */
export class SlotList {
  readonly #chunks: Pick<Chunk, 'slots' | 'counts'>[] = []
  readonly times: OccurrenceTimes
  /** The times in the earlier window. */
  readonly before: OccurrenceTimes | undefined
  #size = 0

  static async of(memory: EventMemory, state: State, query: WindowSearch): Promise<SlotList> {
    const { window = {}, newSince } = query
    const list = new SlotList(memory.table, window, newSince)
    const selector = seenSince(query.selector, (newSince ?? window).sinceMs)
    await search(memory, state, { ...query, selector }, (slot) => list.#add(slot))
    return list
  }

  private constructor(table: EventTable, window: TimeWindow, newSince: TimeWindow | undefined) {
    this.times = new OccurrenceTimes(table, window)
    this.before = newSince && new OccurrenceTimes(table, newSince)
  }

  get size(): number {
    return this.#size
  }

  /** Visits all chunks in time slices. `prepare` runs before each chunk, in the same slices. */
  async each(
    { slices, signal }: { readonly slices: Slices; readonly signal: AbortSignal },
    visit: (chunk: Chunk) => void,
    prepare?: () => Promise<void>,
  ): Promise<void> {
    for (const [index, { slots, counts }] of this.#chunks.entries()) {
      await prepare?.()
      const from = index * chunkMax
      const end = this.#size - from
      visit({ slots: slots.subarray(0, end), counts: counts.subarray(0, end), from })
      if (!slices.isOver()) continue
      await slices.next()
      throwIfAborted(signal)
    }
  }

  #add(slot: number): true {
    const count = this.times.countOf(slot)
    if (count === 0 && (this.before?.countOf(slot) ?? 0) === 0) return true
    const at = this.#size % chunkMax
    if (at === 0) {
      this.#chunks.push({ slots: new Uint32Array(chunkMax), counts: new Uint32Array(chunkMax) })
    }
    const chunk = this.#chunks.at(-1)
    if (chunk !== undefined) {
      chunk.slots[at] = slot
      chunk.counts[at] = count
    }
    this.#size++
    return true
  }
}

/** An event that was last seen earlier has no occurrences within the window. */
function seenSince(
  selector: EventSelector | undefined,
  sinceMs: number | undefined,
): EventSelector | undefined {
  if (sinceMs === undefined) return selector
  const { requires = selector === undefined ? { isAll: true } : {} } = selector ?? {}
  return {
    matches: (stored) => selector?.matches(stored) ?? true,
    requires: { ...requires, sinceMs: Math.max(sinceMs, requires.sinceMs ?? sinceMs) },
  }
}
