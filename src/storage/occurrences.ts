/**
 * When an event was observed, as far as the server knows: spans of time, each with a number of
 * occurrences. A write that raises the count of an event by one adds a moment; one that raises it by
 * more adds the time since the last occurrence that was known. What came with the first write is one
 * span, from the first to the last time that the event itself reports.
 */
import type { EventFields } from './event-fields.ts'

/** Some occurrences, evenly distributed from the first to the last. */
export interface Span {
  readonly firstMs: number
  readonly lastMs: number
  /** At least 1. */
  readonly count: number
}

export interface Occurrences {
  /** Oldest first. */
  readonly spans: readonly Span[]
  /**
   * The oldest span, of more than one occurrence, came with the first write: only the reporter knows
   * when its occurrences were.
   */
  readonly isFirstEstimated: boolean
}

export type SeenFields = Pick<EventFields, 'firstSeenMs' | 'lastSeenMs' | 'occurrences'>

/** The spans of an event that have to be merged before there are more of them. */
export const SPANS_MAX = 32

const SECOND_MS = 1_000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS

/**
 * Two neighbours are merged only if both lie in one period of such a length, counted from 1970, and
 * shorter periods are tried first: a histogram with buckets of that length, or of a multiple of it,
 * stays exact.
 */
const PERIODS_MS: readonly number[] = [
  MINUTE_MS,
  5 * MINUTE_MS,
  15 * MINUTE_MS,
  HOUR_MS,
  6 * HOUR_MS,
  24 * HOUR_MS,
  Number.POSITIVE_INFINITY,
]

/** The occurrences of an event of which only the first write is known. */
export function firstOccurrences({
  firstSeenMs,
  lastSeenMs,
  occurrences,
}: SeenFields): Occurrences {
  const isRange = occurrences > 1 && firstSeenMs > 0 && firstSeenMs < lastSeenMs
  const firstMs = isRange ? firstSeenMs : lastSeenMs
  return {
    spans: [{ firstMs, lastMs: lastSeenMs, count: occurrences }],
    isFirstEstimated: occurrences > 1,
  }
}

/**
 * The occurrences after a write that left the event with these fields. Undefined when nothing is
 * known but what the fields say: the count was lowered, so the event is another one.
 */
export function occurrencesAfter(
  known: Occurrences,
  before: SeenFields,
  after: SeenFields,
): Occurrences | undefined {
  const raised = after.occurrences - before.occurrences
  if (raised < 0) return undefined
  if (raised === 0) return known
  const lastKnownMs = known.spans.at(-1)?.lastMs ?? after.lastSeenMs
  const lastMs = Math.max(after.lastSeenMs, lastKnownMs)
  const firstMs = lastKnownMs + (lastMs - lastKnownMs) / raised
  const spans = [...known.spans, { firstMs, lastMs, count: raised }]
  return { ...known, spans: spans.length > SPANS_MAX ? merged(spans) : spans }
}

/** Merges the oldest two neighbours that lie in the same period. */
function merged(spans: readonly Span[]): readonly Span[] {
  for (const periodMs of PERIODS_MS) {
    const at = spans.findIndex((span, index) => {
      const next = spans[index + 1]
      return next !== undefined && isOnePeriod(span.firstMs, next.lastMs, periodMs)
    })
    const [one, other] = spans.slice(Math.max(at, 0), at + 2)
    if (at < 0 || one === undefined || other === undefined) continue
    const both = { firstMs: one.firstMs, lastMs: other.lastMs, count: one.count + other.count }
    return spans.toSpliced(at, 2, both)
  }
  return spans
}

function isOnePeriod(oneMs: number, otherMs: number, periodMs: number): boolean {
  return Math.floor(oneMs / periodMs) === Math.floor(otherMs / periodMs)
}

/** How many occurrences of the span are before this time. */
export function countBefore({ firstMs, lastMs, count }: Span, ms: number): number {
  if (ms <= firstMs) return 0
  if (ms > lastMs) return count
  // Later than the first and not after the last, so there are at least two at different times.
  return Math.min(count - 1, Math.ceil(((ms - firstMs) * (count - 1)) / (lastMs - firstMs)))
}
