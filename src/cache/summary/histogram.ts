import type { InLane } from '../../lib/run-queue.ts'
import { throwIfAborted } from '../../storage/aborted-read.ts'
import type { EventScope, EventSelector } from '../../storage/storage.ts'
import {
  type BucketCount,
  type EventHistogram,
  GROUPS_MAX,
  type HistogramOptions,
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

/** Counts the events of a state by the time when they were last seen. The state must be pinned. */
export async function histogram(
  memory: EventMemory,
  state: State,
  options: HistogramOptions & InLane & { readonly scope: EventScope },
): Promise<EventHistogram> {
  const { scope, signal, lane, bounds, by, namesMax } = options
  const { table } = memory
  const selector = within(options.selector, bounds)
  const list = await SlotList.of(memory, state, { scope, selector, signal, lane })
  // The same object of two clusters is two objects.
  const groupBy = by === 'object' && scope.cluster === undefined ? (['cluster', by] as const) : [by]
  const objects = new ObjectNumbers(table)
  const groups = await Groups.of(table, list, { groupBy, objects, signal, lane })
  const bucketCount = bounds.length - 1
  // Each group has a count, so before its texts are read it is known that there are too many.
  const isTooMuch = groups.size > GROUPS_MAX || groups.size * bucketCount > CELLS_MAX
  if (isTooMuch && namesMax === undefined) throw new TooManyGroups()
  const top = await topGroups(groups, { max: namesMax ?? groups.size, signal, lane })
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

  constructor(table: EventTable, { groups, rows, rowCount, bounds }: CellsOptions) {
    this.#table = table
    this.#groups = groups
    this.#rows = rows
    this.#buckets = new Buckets(bounds)
    const cells = rowCount * this.#buckets.count
    this.#occurrences = new Float64Array(cells)
    this.#events = new Uint32Array(cells)
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
    return { name, occurrences, events }
  }

  #add(slots: Uint32Array, from: number): void {
    const table = this.#table
    const occurrences = this.#occurrences
    const events = this.#events
    for (let at = 0; at < slots.length; at++) {
      const slot = slots[at] ?? 0
      const row = this.#rows[this.#groups.ofEvent(from + at)] ?? 0
      const cell = row * this.#buckets.count + this.#buckets.of(table.lastSeenOf(slot))
      occurrences[cell] = (occurrences[cell] ?? 0) + table.occurrencesOf(slot)
      events[cell] = (events[cell] ?? 0) + 1
    }
  }
}

/** The selector, within the window of the histogram. */
function within(selector: EventSelector | undefined, bounds: readonly number[]): EventSelector {
  const { requires = selector === undefined ? { isAll: true } : {} } = selector ?? {}
  const { sinceMs = Number.NEGATIVE_INFINITY, untilMs = Number.POSITIVE_INFINITY } = requires
  return {
    matches: (stored) => selector?.matches(stored) ?? true,
    requires: {
      ...requires,
      sinceMs: Math.max(sinceMs, bounds[0] ?? 0),
      untilMs: Math.min(untilMs, bounds.at(-1) ?? 0),
    },
  }
}

/** Finds the bucket of a time within the bounds. */
class Buckets {
  readonly count: number
  readonly #bounds: Float64Array
  readonly #perMs: number

  constructor(bounds: readonly number[]) {
    this.count = bounds.length - 1
    this.#bounds = Float64Array.from(bounds)
    this.#perMs = this.count / ((bounds.at(-1) ?? 0) - (bounds[0] ?? 0))
  }

  of(ms: number): number {
    const bounds = this.#bounds
    // Bounds are whole milliseconds, so the quotient may be off by one.
    let bucket = Math.min(this.count - 1, Math.floor((ms - (bounds[0] ?? 0)) * this.#perMs))
    while (ms < (bounds[bucket] ?? 0)) bucket--
    while (ms >= (bounds[bucket + 1] ?? 0)) bucket++
    return bucket
  }
}
