import type { Lane, Slices } from '../../lib/run-queue.ts'
import { throwIfAborted } from '../../storage/aborted-read.ts'
import type {
  EventPage,
  EventScope,
  EventSelector,
  ListOptions,
  ListOrder,
  StoredEvent,
} from '../../storage/storage.ts'
import type { EventMemory, ReaderKind, State } from '../memory/memory.ts'
import { orderRange } from '../memory/order-key.ts'
import { pinningSlices, smallest, walkSliced } from './search.ts'
import {
  compareToPosition,
  type Position,
  rangeByKey,
  type Source,
  scanCost,
  scanOf,
  sourcesOf,
} from './sources.ts'
import { TopSlots } from './top-slots.ts'

/** Unsorted slots that a page may be chosen from: some ten milliseconds, in time slices. */
const unsortedMax = 50_000
/** Sorting a slot costs about as much as finding it. */
const sortFactor = 2

type PageQuery = { readonly scope: EventScope; readonly lane: Lane } & ListOptions
type OrderedQuery = PageQuery & Position

/**
 * Reads a page from a state of `memory`, which may be the present. A long search is time-sliced and
 * pins the state meanwhile. If more pages may follow, the state is retained for them.
 */
export async function readPage(
  memory: EventMemory,
  state: State,
  options: PageQuery,
): Promise<EventPage> {
  const query = { ...options, order: options.order ?? 'key' }
  const isPlain = query.selector === undefined && query.order === 'key'
  const found = await (isPlain ? readByKey : find)(memory, state, query)
  const { version } = state
  const { items, remaining } = found
  const more = found.following > 0 && remaining !== 0
  const isContinued = more || options.isContinued === true
  if (isContinued && options.isOnlyPage !== true && memory.version === version) {
    memory.snapshot(options)
  }
  if (!isContinued && options.isReadOnce === true) memory.finish(version)
  return { items, version, more, remaining }
}

/** Reads run by run: without a selector, every slot belongs to the page. */
async function readByKey(memory: EventMemory, state: State, query: OrderedQuery): Promise<Page> {
  const { scope, after, limit, signal } = query
  const { view, from, to } = rangeByKey(memory, state, orderRange(scope, after))
  const end = Math.min(to, from + limit)
  using slices = pinningSlices(memory, state, { ...query, pages: pagesOf(query) })
  const items: StoredEvent[] = []
  for (let index = from; index < end; ) {
    // The first run is read without a wait: a short page pins nothing.
    if (items.length > 0 && slices.isOver()) {
      await slices.next()
      throwIfAborted(signal)
    }
    const { run, offset } = view.runAt(index)
    const slots = run.slots.slice(offset, offset + end - index)
    for (const slot of slots) items.push(memory.table.read(slot))
    index += slots.length
  }
  const following = Math.max(0, to - from - items.length)
  return { items, following, remaining: following }
}

/** Searches the source that promises to be the fastest. */
async function find(memory: EventMemory, state: State, query: OrderedQuery): Promise<Page> {
  const sources = sourcesOf(memory, state, query)
  const source = chooseSource(sources, query)
  if (source === undefined) return { items: [], following: 0, remaining: undefined }
  const read = source.sortedBy === sortOf(query.order) ? readSorted : readUnsorted
  const found = await read(memory, state, { ...query, source, least: smallest(sources) })
  return { ...found, remaining: remainingOf(memory, state, { ...query, ...found, source }) }
}

interface EndQuery extends Pick<PageQuery, 'scope' | 'lane'> {
  readonly order: 'oldest' | 'newest'
  /** Ignores events that were last seen then or later. */
  readonly untilMs?: number | undefined
}

/** When the first event in this order was last seen; undefined when there are none. */
export async function endTime(
  memory: EventMemory,
  { untilMs, ...query }: EndQuery,
): Promise<number | undefined> {
  const { signal } = new AbortController()
  const selector = untilMs === undefined ? undefined : seenBefore(untilMs)
  const { items } = await readPage(memory, memory.peek(), {
    ...query,
    ...{ selector, signal, limit: 1, isOnlyPage: true },
  })
  return items[0]?.fields.lastSeenMs
}

function seenBefore(untilMs: number): EventSelector {
  return {
    matches: ({ fields }) => fields.lastSeenMs < untilMs,
    requires: { untilMs, isAll: true },
  }
}

/** Undefined when it is not known without a search. */
function remainingOf(
  memory: EventMemory,
  state: State,
  { selector, scope, after, source, items, following }: SourceQuery & Found,
): number | undefined {
  if (selector !== undefined) return undefined
  if (source.isInScope) return following
  return after === undefined ? countIn(memory, scope, state) - items.length : undefined
}

interface Found {
  readonly items: readonly StoredEvent[]
  /** How many slots of the source follow. They may not match. */
  readonly following: number
}

type Page = Found & Pick<EventPage, 'remaining'>

type SourceQuery = OrderedQuery & {
  readonly source: Source
  /** The smallest source, which may be the same. */
  readonly least?: Source | undefined
}

/**
 * Walks in the order of the page, and ends with the page. When all slots of the smallest source, or
 * all rows, could have been read and sorted in the time that the walk took, they are: then matches
 * are rare, or far from where the page begins, like old events of one namespace in a list by
 * descending time.
 */
async function readSorted(memory: EventMemory, state: State, query: SourceQuery): Promise<Found> {
  const { limit, source } = query
  const items: StoredEvent[] = []
  const isReverse = query.order === 'newest'
  const other = isSelective(query) ? cheapest(state, query) : undefined
  const passMax = other?.cost
  const isLong = other !== undefined && other.cost < source.size
  // Opened before the walk, after which the present may be another state.
  using _pin = isLong ? memory.pin(state, pagesOf(query)) : undefined
  const rest = isLong ? other.open() : undefined
  using slices = pinningSlices(memory, state, { ...query, pages: pagesOf(query) })
  const sliced = { ...query, isReverse, passMax, slices }
  const passed = await walkSliced(memory, sliced, (slot) => {
    items.push(memory.table.read(slot))
    return items.length < limit
  })
  const isEnd = rest === undefined || items.length === limit || passed >= source.size
  if (isEnd) return { items, following: source.size - passed }
  return await choose(memory, { ...query, source: rest, slices })
}

/** The cheapest way to find all matches in any order: by the smallest source, or by all rows. */
function cheapest(
  state: State,
  { source, least }: SourceQuery,
): { readonly cost: number; open(): Source | undefined } | undefined {
  const leastCost =
    least === undefined || least === source ? Number.POSITIVE_INFINITY : least.size * sortFactor
  const rowsCost = scanCost(state) ?? Number.POSITIVE_INFINITY
  if (leastCost <= rowsCost && least !== source) return { cost: leastCost, open: () => least }
  return rowsCost < Number.POSITIVE_INFINITY
    ? { cost: rowsCost, open: () => scanOf(state) }
    : undefined
}

/** Whether the state is read again, for the next page. */
function pagesOf({ isOnlyPage, isReadOnce }: ListOptions): ReaderKind {
  return { isForPages: isOnlyPage !== true, isReadOnce }
}

/** Some slots of the source may not match. */
function isSelective({ selector, order, source }: SourceQuery): boolean {
  return order !== 'key' && (selector !== undefined || !source.isInScope)
}

/** Walks through everything, and collects the first matches in the order of the page. */
async function readUnsorted(memory: EventMemory, state: State, query: SourceQuery): Promise<Found> {
  using slices = pinningSlices(memory, state, { ...query, pages: pagesOf(query) })
  return await choose(memory, { ...query, slices })
}

async function choose(
  memory: EventMemory,
  query: SourceQuery & { readonly slices: Slices },
): Promise<Found> {
  const { order, limit, source } = query
  const top = new TopSlots(limit, comparison(memory, order))
  const position = source.isBehindPosition ? undefined : compareToPosition(memory, query)
  await walkSliced(memory, query, (slot) => {
    const side = position?.(slot) ?? 1
    if (order === 'newest' && position !== undefined ? side < 0 : side > 0) top.offer(slot)
    return true
  })
  const items = top.sorted().map((slot) => memory.table.read(slot))
  return { items, following: top.dropped }
}

/**
 * A source in the order of the page can be left when the page is full; from another source, which
 * may be smaller, everything must be read and sorted. Matches are taken to be spread evenly.
 */
function chooseSource(sources: readonly Source[], query: OrderedQuery): Source | undefined {
  const least = smallest(sources)
  const wanted = sortOf(query.order)
  const sorted = smallest(sources.filter(({ sortedBy }) => sortedBy === wanted))
  if (least === undefined || sorted === undefined) return sorted
  const passed = Math.min(sorted.size, (query.limit * sorted.size) / Math.max(1, least.size))
  const isUnsortedBetter = least.size <= unsortedMax && least.size * sortFactor < passed
  return isUnsortedBetter ? least : sorted
}

function sortOf(order: ListOrder): 'key' | 'time' {
  return order === 'key' ? 'key' : 'time'
}

function comparison(
  { table }: EventMemory,
  order: ListOrder,
): (slot: number, other: number) => number {
  if (order === 'key') return (slot, other) => table.compareKeys(slot, other)
  if (order === 'oldest') return (slot, other) => table.compareTimes(slot, other)
  return (slot, other) => table.compareTimes(other, slot)
}

/** How many events a scope has. No event is read: the tree knows how many are before any key. */
export function countIn(
  memory: EventMemory,
  scope: EventScope,
  state: Pick<State, 'byKey'> = memory.peek(),
): number {
  const { from, to } = rangeByKey(memory, state, orderRange(scope, undefined))
  return to - from
}
