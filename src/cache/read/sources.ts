/** Finds the places in the indexes that lead to the matches of a query. */

import type { EventKey, ListOrder } from '../../storage/storage.ts'
import {
  anyOfConditions,
  type Column,
  type Condition,
  conditionsOf,
  indexes,
} from '../memory/columns.ts'
import type { EventMemory, State } from '../memory/memory.ts'
import { type OrderRange, orderKey, viewOf } from '../memory/order-key.ts'
import type { TreeView } from '../memory/slot-tree.ts'
import { keyRanges } from './key-ranges.ts'
import type { Query } from './query.ts'

/** Where a page begins: after the event with this key, which was last seen then. */
export interface Position {
  readonly order: ListOrder
  readonly after?: EventKey | undefined
  readonly afterMs?: number | undefined
}

/** Neighbouring slots of a sorted set. */
export interface Range {
  readonly view: TreeView
  readonly from: number
  readonly to: number
  /** Slots that meet one of these are in an earlier range of the source as well. */
  readonly except?: readonly Condition[] | undefined
}

/** Contains the slots of all matches that follow the position. */
export interface Source {
  readonly ranges: readonly Range[]
  readonly size: number
  /** Undefined when the ranges follow each other without order. */
  readonly sortedBy: 'key' | 'time' | undefined
  /** It contains only slots of the scope. */
  readonly isInScope: boolean
  /** It contains only slots that follow the position. */
  readonly isBehindPosition: boolean
  /** The source is these rows, one bit for each, in no order. It has no ranges. */
  readonly rows?: Uint32Array | undefined
}

/** Passing a slot of a sorted set takes about as long as passing this many in the order of rows. */
const scanFactor = 4

/** How many slots of a sorted set take as long as all rows; undefined if these cannot be read. */
export function scanCost({ rows }: State): number | undefined {
  return rows === undefined ? undefined : Math.ceil(rows.span / scanFactor)
}

/** All rows of the present, as they are now. Only for a state that has a `scanCost`. */
export function scanOf({ rows }: State): Source | undefined {
  if (rows === undefined) return undefined
  const isAnywhere = { sortedBy: undefined, isInScope: false, isBehindPosition: false } as const
  return { ranges: [], size: rows.span, ...isAnywhere, rows: rows.copy() }
}

/** Sources of all matches, each of which would do; none when nothing can match. */
export function sourcesOf(
  memory: EventMemory,
  state: State,
  query: Query & Position,
): readonly Source[] {
  const requires = query.selector?.requires
  const conditions = conditionsOf(requires, memory.table.texts)
  if (conditions === undefined) return []
  const isByKey = query.order === 'key'
  const keys = keyRanges(query, isByKey ? query.after : undefined)
  const byKey = (ranges: readonly Range[]): Source => ({
    ranges,
    size: sizeOf(ranges),
    sortedBy:
      ranges.every(({ view }) => view === state.byKey) || ranges.length <= 1 ? 'key' : undefined,
    isInScope: true,
    isBehindPosition: isByKey,
  })
  const inKeys = rangesByColumn(memory, state, keys)
  const sources = [
    byKey(keys.map((range) => rangeByKey(memory, state, range))),
    timeSource(memory, state, query),
  ]
  for (const condition of conditions.numbers) {
    const ranges = condition.isEqual ? inKeys(condition) : undefined
    if (ranges !== undefined) sources.push(byKey(ranges))
  }
  for (const anyOf of anyOfConditions(requires)) {
    sources.push(
      byKey(
        anyOf.flatMap((condition, index) => {
          const except = anyOf.slice(0, index)
          return (inKeys(condition) ?? []).map((range) => ({ ...range, except }))
        }),
      ),
    )
  }
  return sources
}

/** Below 0 when the slot is before the position in ascending order, 0 when it is there. */
export function compareToPosition(
  { table }: EventMemory,
  { order, after, afterMs = 0 }: Position,
): ((slot: number) => number) | undefined {
  if (after === undefined) return undefined
  const key = viewOf(orderKey(after))
  if (order === 'key') return (slot) => table.compareKey(slot, key)
  return (slot) => table.lastSeenOf(slot) - afterMs || table.compareKey(slot, key)
}

/** The slots of a range of keys, in key order. */
export function rangeByKey(
  { table }: EventMemory,
  { byKey: view }: Pick<State, 'byKey'>,
  { start, end }: OrderRange,
): Range {
  const rank = (key: Buffer): number => {
    const bytes = viewOf(key)
    return view.rank((slot) => table.compareKey(slot, bytes))
  }
  return { view, from: rank(start), to: end === undefined ? view.size : rank(end) }
}

/** More ranges than this take longer to find than some needless slots take to pass. */
const columnRangesMax = 64

/**
 * Finds the slots of ranges of keys that meet a condition, which has a range for each of its values
 * and each range of keys; undefined if there is no index for it.
 */
function rangesByColumn(
  memory: EventMemory,
  state: State,
  keys: readonly OrderRange[],
): (condition: Condition) => readonly Range[] | undefined {
  return ({ column, values }) => {
    const view = state.byColumn[indexes.findIndex((index) => index.column === column)]
    if (view === undefined) return undefined
    const [first, last] = [keys[0], keys.at(-1)]
    if (first === undefined || last === undefined) return []
    const within =
      values.length * keys.length <= columnRangesMax
        ? keys
        : [{ start: first.start, end: last.end }]
    return values.flatMap((value) =>
      within.map((range) => rangeByColumn(memory, view, range, { column, value })),
    )
  }
}

function rangeByColumn(
  { table }: EventMemory,
  view: TreeView,
  keys: OrderRange,
  { column, value }: { readonly column: Column; readonly value: number },
): Range {
  const start = viewOf(keys.start)
  const end = keys.end === undefined ? undefined : viewOf(keys.end)
  const rank = (key: DataView | undefined) =>
    view.rank((slot) => {
      const difference = table.valueOf(slot, column) - value
      if (difference !== 0) return difference
      return key === undefined ? -1 : table.compareKey(slot, key)
    })
  return { view, from: rank(start), to: rank(end) }
}

/** All events of the time span, of all scopes. */
function timeSource(memory: EventMemory, state: State, query: Query & Position): Source {
  const { table } = memory
  const view = state.byTime
  const { sinceMs, untilMs } = query.selector?.requires ?? {}
  const rank = (ms: number) => view.rank((slot) => (table.lastSeenOf(slot) < ms ? -1 : 1))
  let from = sinceMs === undefined ? 0 : rank(sinceMs)
  let to = untilMs === undefined ? view.size : rank(untilMs)
  const isByTime = query.order !== 'key'
  const compare = isByTime ? compareToPosition(memory, query) : undefined
  if (compare !== undefined && query.order === 'newest') to = Math.min(to, view.rank(compare))
  if (compare !== undefined && query.order === 'oldest') {
    from = Math.max(
      from,
      view.rank((slot) => (compare(slot) <= 0 ? -1 : 1)),
    )
  }
  const ranges = [{ view, from, to: Math.max(from, to) }]
  const isInScope = query.scope.cluster === undefined
  return { ranges, size: sizeOf(ranges), sortedBy: 'time', isInScope, isBehindPosition: isByTime }
}

/** The position in `after` may be behind the whole scope. */
function sizeOf(ranges: readonly Range[]): number {
  return ranges.reduce((sum, { from, to }) => sum + Math.max(0, to - from), 0)
}
