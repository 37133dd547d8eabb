import type { Clock } from '../../lib/clock.ts'
import { TimeSlicer } from '../../lib/yield.ts'
import { scopePath } from '../../storage/event-scope.ts'
import type { EventScope } from '../../storage/storage.ts'
import type { EventMemory } from '../memory/memory.ts'
import { orderRange, viewOf } from '../memory/order-key.ts'

/** A scope is searched at most this often, however many requests ask for it. */
const freshMs = 1_000
const knownMax = 10_000

interface Known {
  readonly oldestMs: Promise<number | undefined>
  readonly askedAtMs: number
}

/**
 * Finds when the oldest event of a scope was last seen. For all events an index tells. For a cluster
 * or a namespace its rows are searched, and no others: all namespaces together cost one search of all
 * rows a second, some 20 ms of a million events.
 */
export class OldestTimes {
  readonly #memory: EventMemory
  readonly #clock: Clock
  readonly #known = new Map<string, Known>()

  constructor(memory: EventMemory, clock: Clock) {
    this.#memory = memory
    this.#clock = clock
  }

  /** In ms; undefined when there are no events. Up to a second old. */
  in(scope: EventScope): Promise<number | undefined> {
    const path = scopePath(scope)
    const now = this.#clock.now()
    const known = this.#known.get(path)
    if (known !== undefined && now - known.askedAtMs < freshMs) return known.oldestMs
    const oldestMs = this.#find(scope)
    if (this.#known.size >= knownMax) this.#known.clear()
    this.#known.set(path, { oldestMs, askedAtMs: now })
    return oldestMs
  }

  async #find(scope: EventScope): Promise<number | undefined> {
    const { table } = this.#memory
    const state = this.#memory.peek()
    if (scope.cluster === undefined) {
      if (state.byTime.size === 0) return undefined
      const { run, offset } = state.byTime.runAt(0)
      return table.lastSeenOf(run.slots[offset] ?? 0)
    }
    const { start, end } = orderRange(scope, undefined)
    const rank = (key: Buffer) => {
      const view = viewOf(key)
      return state.byKey.rank((slot) => table.compareKey(slot, view))
    }
    const to = end === undefined ? state.byKey.size : rank(end)
    using slicer = new TimeSlicer(() => this.#memory.pin(state))
    let oldestMs: number | undefined
    for (let index = rank(start); index < to; ) {
      const { run, offset } = state.byKey.runAt(index)
      const behind = Math.min(run.slots.length, offset + to - index)
      for (let at = offset; at < behind; at++) {
        const seenMs = table.lastSeenOf(run.slots[at] ?? 0)
        if (oldestMs === undefined || seenMs < oldestMs) oldestMs = seenMs
      }
      index += behind - offset
      if (slicer.isOver()) await slicer.yield()
    }
    return oldestMs
  }
}
