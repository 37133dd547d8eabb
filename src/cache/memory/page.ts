import type { EventPage, EventScope, ListOptions, StoredEvent } from '../../storage/storage.ts'
import { TimeSlicer, throwIfAborted } from '../time-slicer.ts'
import { type Requirement, requirementsOf } from './index-hashes.ts'
import type { EventMemory, State } from './memory.ts'
import { keyAfter, type OrderRange, orderKey, orderRange, viewOf } from './order-key.ts'
import type { TreeView } from './tree-view.ts'

/** A range of events, in key order, that contains all matches. */
interface Candidates {
  readonly view: TreeView
  readonly from: number
  readonly to: number
}

/** The clock is read after selectors have parsed this much of bodies. */
const clockReadBytes = 64 * 1024

/**
 * Reads a page from a state of `memory`, which may be the present. A long search is time-sliced and
 * pins the state meanwhile. If more pages follow, the state is kept for them.
 */
export async function readPage(
  memory: EventMemory,
  state: State,
  query: { readonly scope: EventScope } & ListOptions,
): Promise<EventPage> {
  const { selector, limit, signal } = query
  const requirements = requirementsOf(selector)
  const range = narrowed(orderRange(query.scope, query.after), query)
  const candidates = chooseCandidates(memory, state, { range, requirements })
  const items: StoredEvent[] = []
  using slicer = new TimeSlicer(() => memory.pin(state))
  const search = new Search({ memory, query, requirements, items, slicer })
  const { view, to } = candidates
  let index = candidates.from
  while (index < to && items.length < limit) {
    const { run, offset } = view.runAt(index)
    const { slots } = run
    const end = Math.min(slots.length, offset + to - index)
    const at = search.run(slots, offset, end)
    index += at - offset
    if (!slicer.isOver()) continue
    await slicer.yield()
    throwIfAborted(signal)
  }
  // The key in `after` may be behind the whole scope.
  const remaining = Math.max(0, to - index)
  if (remaining > 0 && memory.version === state.version) memory.keep()
  return {
    items,
    version: state.version,
    more: remaining > 0,
    remaining: selector === undefined ? remaining : undefined,
  }
}

interface SearchOptions {
  readonly memory: EventMemory
  readonly query: ListOptions
  readonly requirements: readonly Requirement[]
  readonly items: StoredEvent[]
  readonly slicer: TimeSlicer
}

/** Collects the matches of one run after another. */
class Search {
  readonly #options: SearchOptions
  /** Bytes of bodies that the selector has parsed since the last read of the clock. */
  #readBytes = 0

  constructor(options: SearchOptions) {
    this.#options = options
  }

  /** Returns where it stopped: at the end, at the limit, or at the end of the time slice. */
  run(slots: ArrayLike<number>, from: number, end: number): number {
    const { items, query, slicer } = this.#options
    for (let at = from; at < end; at++) {
      if (items.length >= query.limit) return at
      // A few large events take as long as a whole run of small ones.
      if (this.#readBytes >= clockReadBytes) {
        this.#readBytes = 0
        if (slicer.isOver()) return at
      }
      this.#take(slots[at] ?? 0)
    }
    return end
  }

  #take(slot: number): void {
    const { memory, query, requirements, items } = this.#options
    if (!hasAll(memory, slot, requirements)) return
    const stored = memory.table.read(slot)
    if (query.selector !== undefined) {
      this.#readBytes += stored.body.length
      if (!query.selector.matches(stored)) return
    }
    items.push(stored)
  }
}

/** A single key when the selector requires a name. */
function narrowed(
  range: OrderRange,
  query: { readonly scope: EventScope } & ListOptions,
): OrderRange {
  const { cluster, namespace } = query.scope
  const name = query.selector?.requires?.name
  if (name === undefined || namespace === undefined) return range
  const key = orderKey({ cluster, namespace, name })
  const isInside = key.compare(range.start) >= 0
  return { start: isInside ? key : range.start, end: isInside ? keyAfter(key) : range.start }
}

/** The smallest range that contains all matches: in one of the indexes, or the whole scope. */
function chooseCandidates(
  memory: EventMemory,
  state: State,
  query: { readonly range: OrderRange; readonly requirements: readonly Requirement[] },
): Candidates {
  const { range, requirements } = query
  const { table } = memory
  const start = viewOf(range.start)
  const end = range.end === undefined ? undefined : viewOf(range.end)
  const byKey = (key: DataView) => (slot: number) => table.compareKey(slot, key)
  let best: Candidates = {
    view: state.byKey,
    from: state.byKey.rank(byKey(start)),
    to: end === undefined ? state.byKey.size : state.byKey.rank(byKey(end)),
  }
  for (const { field, hash } of requirements) {
    const view = state.byField[field]
    if (view === undefined) continue
    const rank = (key: DataView | undefined) =>
      view.rank((slot) => {
        const difference = table.hashOf(slot, field) - hash
        if (difference !== 0) return difference
        return key === undefined ? -1 : table.compareKey(slot, key)
      })
    const [from, to] = [rank(start), rank(end)]
    if (to - from < best.to - best.from) best = { view, from, to }
  }
  return best
}

function hasAll(memory: EventMemory, slot: number, requirements: readonly Requirement[]): boolean {
  for (const { field, hash } of requirements) {
    if (memory.table.hashOf(slot, field) !== hash) return false
  }
  return true
}

/** How many events a scope has. No event is read: the tree knows how many are before any key. */
export function countIn(memory: EventMemory, scope: EventScope): number {
  const { start, end } = orderRange(scope, undefined)
  const { byKey } = memory.peek()
  const rank = (key: Buffer): number => {
    const view = viewOf(key)
    return byKey.rank((slot) => memory.table.compareKey(slot, view))
  }
  return (end === undefined ? byKey.size : rank(end)) - rank(start)
}
