import type { Slices } from '../../lib/run-queue.ts'
import { throwIfAborted } from '../../storage/aborted-read.ts'
import type { EventSelector } from '../../storage/storage.ts'
import type { TimeWindow } from '../../storage/summary.ts'
import type { EventTable } from '../memory/event-table.ts'
import type { EventMemory, State } from '../memory/memory.ts'
import { type SearchOptions, search } from '../read/search.ts'
import { OccurrenceTimes } from './occurrence-times.ts'

/** Slots that space is reserved for at once. */
export const chunkMax = 4_096
/** Slots that are visited between two reads of the clock: each may be decoded, and be in many buckets. */
const visitedMax = 256

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
    const { window = {}, newSince, lane, signal } = query
    const selector = seenSince(query.selector, (newSince ?? window).sinceMs)
    const { table } = memory
    const found = new SlotList(table, window, newSince)
    const searched = { ...query, selector }
    await search(memory, state, searched, (slot) => found.#add(slot, table.occurrencesOf(slot)))
    const isUnbounded = window.sinceMs === undefined && window.untilMs === undefined
    if (isUnbounded && newSince === undefined) return found
    const list = new SlotList(table, window, newSince)
    using slices = lane.slices({ signal })
    await found.each({ slices, signal }, ({ slots }) => list.#addSeen(slots))
    return list
  }

  private constructor(table: EventTable, window: TimeWindow, newSince: TimeWindow | undefined) {
    this.times = new OccurrenceTimes(table, window)
    this.before = newSince && new OccurrenceTimes(table, newSince)
  }

  get size(): number {
    return this.#size
  }

  /** Visits all slots, some at a time, in time slices. `prepare` runs before each chunk. */
  async each(
    { slices, signal }: { readonly slices: Slices; readonly signal: AbortSignal },
    visit: (chunk: Chunk) => void,
    prepare?: () => Promise<void>,
  ): Promise<void> {
    for (const [index, { slots, counts }] of this.#chunks.entries()) {
      await prepare?.()
      const first = index * chunkMax
      const end = Math.min(chunkMax, this.#size - first)
      for (let from = 0; from < end; from += visitedMax) {
        const to = Math.min(end, from + visitedMax)
        const part = { slots: slots.subarray(from, to), counts: counts.subarray(from, to) }
        visit({ ...part, from: first + from })
        if (!slices.isOver()) continue
        await slices.next()
        throwIfAborted(signal)
      }
    }
  }

  /** Adds those that were observed within one of the windows. */
  #addSeen(slots: Uint32Array): void {
    for (let at = 0; at < slots.length; at++) {
      const slot = slots[at] ?? 0
      const count = this.times.countOf(slot)
      if (count > 0 || (this.before?.countOf(slot) ?? 0) > 0) this.#add(slot, count)
    }
  }

  #add(slot: number, count: number): true {
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
