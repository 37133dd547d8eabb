import type { EventPage, EventScope, ListOptions, StoredEvent } from '../storage/storage.ts'
import { type Requirement, requirementsOf } from './index-hashes.ts'
import type { EventMemory, State } from './memory.ts'
import { keyAfter, type OrderRange, orderKey, orderRange, viewOf } from './order-key.ts'
import type { TreeView } from './slot-tree.ts'
import { Turns, throwIfAborted } from './turns.ts'

/** Events in the order of their keys, among which all matches are. */
interface Candidates {
  readonly view: TreeView
  readonly from: number
  readonly to: number
}

/** Bodies that selectors look at before the clock is looked at. */
const lookBytes = 64 * 1024

/**
 * A page out of a state of `memory`, which may be the present. A long search lets others take their
 * turn, and keeps the state for as long as it takes. A state with more pages in it is kept for the
 * next one.
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
  using turns = new Turns(() => memory.pin(state))
  const search = new Search({ memory, query, requirements, items, turns })
  const { view, to } = candidates
  let index = candidates.from
  while (index < to && items.length < limit) {
    const { run, offset } = view.runAt(index)
    const { slots } = run
    const end = Math.min(slots.length, offset + to - index)
    const at = search.run(slots, offset, end)
    index += at - offset
    if (!turns.isOver()) continue
    await turns.yield()
    throwIfAborted(signal)
  }
  // A key to begin after may lie behind all of the scope.
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
  readonly turns: Turns
}

/** Takes what is selected of one run after another. */
class Search {
  readonly #options: SearchOptions
  /** Bodies that the selector has looked at since the clock was looked at. */
  #readBytes = 0

  constructor(options: SearchOptions) {
    this.#options = options
  }

  /** Answers where it stopped: at the end, at the limit, or when its turn was over. */
  run(slots: ArrayLike<number>, from: number, end: number): number {
    const { items, query, turns } = this.#options
    for (let at = from; at < end; at++) {
      if (items.length >= query.limit) return at
      // Of large events, a few take as long as a whole run of others.
      if (this.#readBytes >= lookBytes) {
        this.#readBytes = 0
        if (turns.isOver()) return at
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

/** One key alone when the name is known. */
function narrowed(
  range: OrderRange,
  query: { readonly scope: EventScope } & ListOptions,
): OrderRange {
  const { namespace } = query.scope
  const name = query.selector?.requires?.name
  if (name === undefined || namespace === undefined) return range
  const key = orderKey({ namespace, name })
  const isInside = key.compare(range.start) >= 0
  return { start: isInside ? key : range.start, end: isInside ? keyAfter(key) : range.start }
}

/** The shortest of the lists that have all matches: those of the indexes, or all in scope. */
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
