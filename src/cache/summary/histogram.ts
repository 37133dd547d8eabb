import type { InLane } from '../../lib/run-queue.ts'
import { throwIfAborted } from '../../storage/aborted-read.ts'
import { countBefore, type Occurrences, type Span } from '../../storage/occurrences.ts'
import type { EventScope } from '../../storage/storage.ts'
import {
  type BucketCount,
  type EventHistogram,
  GROUPS_MAX,
  type HistogramOptions,
  identifiedBy,
  OTHER_GROUP,
  TooManyGroups,
} from '../../storage/summary.ts'
import type { EventTable } from '../memory/event-table.ts'
import type { EventMemory, State } from '../memory/memory.ts'
import { rowsOf } from './group-counts.ts'
import { Groups } from './groups.ts'
import { ObjectNumbers } from './object-numbers.ts'
import { SlotList } from './slot-list.ts'
import { topGroups } from './top-groups.ts'

/** Each count takes twelve bytes, even if it is zero. */
const CELLS_MAX = 1_000_000

/** Counts the occurrences of a state by when they were. The state must be pinned. */
export async function histogram(
  memory: EventMemory,
  state: State,
  options: HistogramOptions & InLane & { readonly scope: EventScope },
): Promise<EventHistogram> {
  const { scope, selector, signal, lane, bounds, by, namesMax } = options
  const { table } = memory
  const window = { sinceMs: bounds[0], untilMs: bounds.at(-1) }
  const list = await SlotList.of(memory, state, { scope, selector, window, signal, lane })
  const groupBy = identifiedBy(by, scope)
  const objects = new ObjectNumbers(table)
  const groups = await Groups.of(table, list, { groupBy, objects, signal, lane })
  const bucketCount = bounds.length - 1
  // Each group has a count, so before its texts are read it is known that there are too many.
  const isTooMuch = groups.size > GROUPS_MAX || groups.size * bucketCount > CELLS_MAX
  if (isTooMuch && namesMax === undefined) throw new TooManyGroups()
  const { top } = await topGroups(groups, { max: namesMax ?? groups.size, signal, lane })
  const named = top
    .map(({ group, values }) => ({ group, name: values.join('/') }))
    // A value with the name of the others is counted among them, so no name appears twice.
    .filter(({ name }) => name !== OTHER_GROUP)
  const chosen = named.map(({ group }) => group)
  const rows = rowsOf(groups, chosen)
  const cells = new Cells(table, { groups, rows, rowCount: chosen.length + 1, bounds })
  await cells.count(list, { signal, lane })
  const names = [OTHER_GROUP, ...named.map(({ name }) => name)]
  const countsMax = namesMax === undefined ? GROUPS_MAX : Number.POSITIVE_INFINITY
  const buckets = await cells.buckets(names, { countsMax, signal, lane })
  return { version: state.version, buckets }
}

interface CellsOptions {
  readonly groups: Groups
  /** The row of each group; 0 for those that are counted together. */
  readonly rows: Uint32Array
  readonly rowCount: number
  readonly bounds: readonly number[]
}

/** The counts of each row in each bucket. */
class Cells {
  readonly #table: EventTable
  readonly #groups: Groups
  readonly #rows: Uint32Array
  readonly #buckets: Buckets
  readonly #occurrences: Float64Array
  readonly #events: Uint32Array
  /** 1 where some occurrences are estimated. */
  readonly #estimated: Uint8Array

  constructor(table: EventTable, { groups, rows, rowCount, bounds }: CellsOptions) {
    this.#table = table
    this.#groups = groups
    this.#rows = rows
    this.#buckets = new Buckets(bounds)
    const cells = rowCount * this.#buckets.count
    this.#occurrences = new Float64Array(cells)
    this.#events = new Uint32Array(cells)
    this.#estimated = new Uint8Array(cells)
  }

  async count(list: SlotList, { signal, lane }: InLane): Promise<void> {
    using slices = lane.slices({ signal })
    await list.each({ slices, signal }, ({ slots, from }) => this.#add(slots, from))
  }

  /** The counts of each bucket, sorted by name. */
  async buckets(
    names: readonly string[],
    { countsMax, signal, lane }: InLane & { readonly countsMax: number },
  ): Promise<readonly (readonly BucketCount[])[]> {
    const sorted = [...names.entries()].sort(([, one], [, other]) => (one < other ? -1 : 1))
    const buckets: BucketCount[][] = []
    let counts = 0
    using slices = lane.slices({ signal })
    for (let bucket = 0; bucket < this.#buckets.count; bucket++) {
      const shown = sorted
        .map(([row, name]) => this.#countOf(name, row * this.#buckets.count + bucket))
        .filter(({ events }) => events > 0)
      counts += shown.length
      if (counts > countsMax) throw new TooManyGroups()
      buckets.push(shown)
      if (!slices.isOver()) continue
      await slices.next()
      throwIfAborted(signal)
    }
    return buckets
  }

  #countOf(name: string, cell: number): BucketCount {
    const [occurrences = 0, events = 0] = [this.#occurrences[cell], this.#events[cell]]
    const isEstimated = this.#estimated[cell] === 1
    return { name, occurrences, events, ...(isEstimated && { estimated: true }) }
  }

  #add(slots: Uint32Array, from: number): void {
    const table = this.#table
    for (let at = 0; at < slots.length; at++) {
      const slot = slots[at] ?? 0
      const row = this.#rows[this.#groups.ofEvent(from + at)] ?? 0
      const firstCell = row * this.#buckets.count
      if (table.occurrencesOf(slot) === 1) {
        this.#count(firstCell + this.#buckets.of(table.lastSeenOf(slot)), 1)
      } else this.#addSpans(firstCell, table.occurrencesIn(slot))
    }
  }

  #count(cell: number, occurrences: number): void {
    this.#occurrences[cell] = (this.#occurrences[cell] ?? 0) + occurrences
    this.#events[cell] = (this.#events[cell] ?? 0) + 1
  }

  /** Counts the event once in each bucket. */
  #addSpans(firstCell: number, { spans, isFirstEstimated }: Occurrences): void {
    let countedTo = -1
    for (const [index, span] of spans.entries()) {
      const from = this.#buckets.of(span.firstMs)
      const to = this.#buckets.of(span.lastMs)
      const isFirst = index === 0 && isFirstEstimated
      const isEstimated = span.count > 1 && (from !== to || isFirst)
      countedTo = this.#addSpan(span, { firstCell, from, to, isEstimated, countedTo })
    }
  }

  /** Returns the last bucket in which the event was counted. */
  #addSpan(span: Span, { firstCell, from, to, isEstimated, countedTo }: SpanPlace): number {
    let last = countedTo
    const begin = Math.max(from, 0)
    const end = Math.min(to, this.#buckets.count - 1)
    let before = countBefore(span, this.#buckets.startOf(begin))
    for (let bucket = begin; bucket <= end; bucket++) {
      const until = countBefore(span, this.#buckets.startOf(bucket + 1))
      const count = until - before
      before = until
      if (count === 0) continue
      const cell = firstCell + bucket
      this.#occurrences[cell] = (this.#occurrences[cell] ?? 0) + count
      if (bucket > last) this.#events[cell] = (this.#events[cell] ?? 0) + 1
      if (isEstimated) this.#estimated[cell] = 1
      last = Math.max(last, bucket)
    }
    return last
  }
}

interface SpanPlace {
  readonly firstCell: number
  /** The buckets of its first and its last occurrence; see `Buckets`. */
  readonly from: number
  readonly to: number
  readonly isEstimated: boolean
  /** The last bucket in which the event is counted already. */
  readonly countedTo: number
}

/** Finds the bucket of a time: -1 before the first bucket, and their number after the last. */
class Buckets {
  readonly count: number
  readonly #bounds: Float64Array
  readonly #perMs: number

  constructor(bounds: readonly number[]) {
    this.count = bounds.length - 1
    this.#bounds = Float64Array.from(bounds)
    this.#perMs = this.count / ((bounds.at(-1) ?? 0) - (bounds[0] ?? 0))
  }

  /** Also the end of the bucket before it. */
  startOf(bucket: number): number {
    return this.#bounds[bucket] ?? 0
  }

  of(ms: number): number {
    const bounds = this.#bounds
    if (ms < (bounds[0] ?? 0)) return -1
    if (ms >= (bounds[this.count] ?? 0)) return this.count
    // Bounds are whole milliseconds, so the quotient may be off by one.
    let bucket = Math.min(this.count - 1, Math.floor((ms - (bounds[0] ?? 0)) * this.#perMs))
    while (ms < (bounds[bucket] ?? 0)) bucket--
    while (ms >= (bounds[bucket + 1] ?? 0)) bucket++
    return bucket
  }
}
