import type { Slices } from '../../lib/run-queue.ts'
import { throwIfAborted } from '../../storage/aborted-read.ts'
import type { EventMemory, State } from '../memory/memory.ts'
import { type SearchOptions, search } from '../read/search.ts'

/** Slots that are visited between two reads of the clock. */
export const chunkMax = 4_096

/** Some slots, and where they are in the list. */
export interface Chunk {
  readonly slots: Uint32Array
  readonly from: number
}

/** The slots of all matches of a search: four bytes for each. */
export class SlotList {
  readonly #chunks: Uint32Array[] = []
  #size = 0

  static async of(memory: EventMemory, state: State, query: SearchOptions): Promise<SlotList> {
    const list = new SlotList()
    await search(memory, state, query, (slot) => list.#add(slot))
    return list
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
    for (const [index, all] of this.#chunks.entries()) {
      await prepare?.()
      const from = index * chunkMax
      visit({ slots: all.subarray(0, this.#size - from), from })
      if (!slices.isOver()) continue
      await slices.next()
      throwIfAborted(signal)
    }
  }

  #add(slot: number): true {
    const at = this.#size % chunkMax
    if (at === 0) this.#chunks.push(new Uint32Array(chunkMax))
    const chunk = this.#chunks.at(-1)
    if (chunk !== undefined) chunk[at] = slot
    this.#size++
    return true
  }
}
