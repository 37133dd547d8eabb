/**
 * When an event was observed, as far as the server knows: spans of time, each with a number of
 * occurrences. A write that raises the count of an event by one adds a moment; one that raises it by
 * more adds the time since the last occurrence that was known. What came with the first write is one
 * span, from the first to the last time that the event itself reports.
 */
import type { EventFields } from './event-fields.ts'

/** Some occurrences, evenly distributed from the first to the last. */
export interface Span {
  /** When the first was; if the span is open, all of them were later. */
  readonly firstMs: number
  readonly lastMs: number
  /** At least 1. */
  readonly count: number
  /** They came with one write: only the last time is known, and that of the span before. */
  readonly isOpen?: true
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
export const PERIODS_MS: readonly number[] = [
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
 * known but what the fields say: the count was lowered, so the event is another one. None is later
 * than the last time of the event: if the clock of the reporter was set back, they are moved there.
 */
export function occurrencesAfter(
  known: Occurrences,
  before: SeenFields,
  after: SeenFields,
): Occurrences | undefined {
  if (after.occurrences < before.occurrences) return undefined
  const { lastSeenMs: lastMs } = after
  const kept = known.spans.map((span) => (span.lastMs <= lastMs ? span : movedBack(span, lastMs)))
  const added = addedOccurrences(known, before, after)
  if (added === undefined) return { ...known, spans: kept }
  const spans = [...kept, added]
  return { ...known, spans: spans.length > SPANS_MAX ? merged(spans) : spans }
}

/** The occurrences that a write added. Undefined when it did not raise the count. */
export function addedOccurrences(
  known: Occurrences,
  before: SeenFields,
  after: SeenFields,
): Span | undefined {
  const count = after.occurrences - before.occurrences
  if (count <= 0) return undefined
  const { lastSeenMs: lastMs } = after
  if (count === 1) return { firstMs: lastMs, lastMs, count }
  const firstMs = Math.min(known.spans.at(-1)?.lastMs ?? lastMs, lastMs)
  return { firstMs, lastMs, count, isOpen: true }
}

function movedBack(span: Span, lastMs: number): Span {
  return { ...span, firstMs: Math.min(span.firstMs, lastMs), lastMs }
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
    const { lastMs } = other
    return spans.toSpliced(at, 2, { ...one, lastMs, count: one.count + other.count })
  }
  return spans
}

/**
 * The same occurrences in at most `max` spans: those that lie in the same period become one, and no
 * period is longer than it has to be.
 */
export function compacted(spans: readonly Span[], max: number): readonly Span[] {
  if (spans.length <= max) return spans
  let fewer = spans.toSorted((one, other) => one.lastMs - other.lastMs)
  for (const periodMs of PERIODS_MS) {
    if (fewer.length > max) fewer = mergedWithin(fewer, periodMs)
  }
  return fewer
}

function mergedWithin(spans: readonly Span[], periodMs: number): Span[] {
  const fewer: Span[] = []
  for (const span of spans) {
    const last = fewer.at(-1)
    const firstMs = Math.min(last?.firstMs ?? 0, span.firstMs)
    if (last === undefined || !isOnePeriod(firstMs, span.lastMs, periodMs)) fewer.push(span)
    else {
      const { isOpen } = last.firstMs <= span.firstMs ? last : span
      const count = last.count + span.count
      const merged = { firstMs, lastMs: span.lastMs, count }
      fewer[fewer.length - 1] = isOpen ? { ...merged, isOpen } : merged
    }
  }
  return fewer
}

/** The occurrences from this time on, as far as it is known which were. */
export function occurrencesFrom(spans: readonly Span[], ms: number): readonly Span[] {
  const later: Span[] = []
  for (const span of spans) {
    const before = countBefore(span, ms)
    if (before === 0) later.push(span)
    else if (before < span.count) {
      later.push({ firstMs: timeOf(span, before), lastMs: span.lastMs, count: span.count - before })
    }
  }
  return later
}

function isOnePeriod(oneMs: number, otherMs: number, periodMs: number): boolean {
  return Math.floor(oneMs / periodMs) === Math.floor(otherMs / periodMs)
}

/** How many occurrences of the span were before this time, as far as it is known. */
export function countBefore({ firstMs, lastMs, count, isOpen }: Span, ms: number): number {
  if (ms <= firstMs) return 0
  if (ms > lastMs) return count
  // Later than the first and not after the last, so these are two different times.
  const steps = Math.ceil(((ms - firstMs) * (isOpen ? count : count - 1)) / (lastMs - firstMs))
  return Math.min(count - 1, isOpen ? steps - 1 : steps)
}

/** When the occurrence with this index was, as far as it is known. */
export function timeOf({ firstMs, lastMs, count, isOpen }: Span, index: number): number {
  const steps = isOpen ? count : count - 1
  if (steps === 0) return firstMs
  return Math.floor(firstMs + ((lastMs - firstMs) * (isOpen ? index + 1 : index)) / steps)
}
