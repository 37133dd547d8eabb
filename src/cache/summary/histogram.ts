import { TimeSlicer } from '../../lib/yield.ts'
import type { EventScope, EventSelector } from '../../storage/storage.ts'
import {
  type BucketCount,
  type EventHistogram,
  GROUPS_MAX,
  type HistogramOptions,
  TooManyGroups,
} from '../../storage/summary.ts'
import { throwIfAborted } from '../aborted-read.ts'
import { COLUMNS } from '../memory/columns.ts'
import type { EventMemory, State } from '../memory/memory.ts'
import { search } from '../read/search.ts'

interface Count {
  readonly bucket: number
  readonly value: number
  occurrences: number
  events: number
}

/** A value is below this. */
const valueRange = 2 ** 32

/** Counts the events of a state by the time when they were last seen. The state must be pinned. */
export async function histogram(
  memory: EventMemory,
  state: State,
  options: HistogramOptions & { readonly scope: EventScope },
): Promise<EventHistogram> {
  const { scope, signal, bounds, by } = options
  const { table } = memory
  const column = COLUMNS[by]
  const bucketOf = bucketFinder(bounds)
  const counts = new Map<number, Count>()
  const selector = within(options.selector, bounds)
  await search(memory, state, { scope, selector, signal }, (slot) => {
    const bucket = bucketOf(table.lastSeenOf(slot))
    const value = table.valueOf(slot, column)
    const key = bucket * valueRange + value
    let count = counts.get(key)
    if (count === undefined) {
      if (counts.size >= GROUPS_MAX) throw new TooManyGroups()
      count = { bucket, value, occurrences: 0, events: 0 }
      counts.set(key, count)
    }
    count.occurrences += table.occurrencesOf(slot)
    count.events++
    return true
  })
  const buckets: BucketCount[][] = Array.from({ length: bounds.length - 1 }, () => [])
  for (const { bucket, value, occurrences, events } of counts.values()) {
    buckets[bucket]?.push({ name: table.texts.textOf(value), occurrences, events })
  }
  using slicer = new TimeSlicer()
  for (const bucket of buckets) {
    bucket.sort((one, other) => (one.name < other.name ? -1 : 1))
    if (!slicer.isOver()) continue
    await slicer.yield()
    throwIfAborted(signal)
  }
  return { version: state.version, buckets }
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

/** For times within the bounds. */
function bucketFinder(bounds: readonly number[]): (ms: number) => number {
  const startMs = bounds[0] ?? 0
  const last = bounds.length - 2
  const bucketsPerMs = (last + 1) / ((bounds.at(-1) ?? 0) - startMs)
  return (ms) => {
    // Bounds are whole milliseconds, so the quotient may be off by one.
    let bucket = Math.min(last, Math.floor((ms - startMs) * bucketsPerMs))
    while (ms < (bounds[bucket] ?? 0)) bucket--
    while (ms >= (bounds[bucket + 1] ?? 0)) bucket++
    return bucket
  }
}
