import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import {
  compacted,
  countBefore,
  firstOccurrences,
  type Occurrences,
  occurrencesAfter,
  occurrencesFrom,
  type SeenFields,
  SPANS_MAX,
  type Span,
  timeOf,
} from './occurrences.ts'
import { encodeTrailer, occurrencesIn } from './trailer.ts'

const midnight = Date.UTC(2026, 10, 17)
const minutes = (count: number) => midnight + count * 60_000

/** A trailer has no fractions of them. */
const wholeSeconds = fc.nat({ max: 4_000 }).map((seconds) => seconds * 1_000)

function seen(firstSeenMs: number, lastSeenMs: number, occurrences: number): SeenFields {
  return { firstSeenMs, lastSeenMs, occurrences }
}

interface Raise {
  readonly by: number
  readonly atMs: number
}

/** As it is read again. */
function stored(occurrences: Occurrences, seenFields: SeenFields): Occurrences {
  const fields = { ...seenFields, regarding: { name: '' } }
  return occurrencesIn(encodeTrailer({ occurrences }, fields), fields)
}

/** What is known after the event was created at this time, and raised later. */
function raised(firstMs: number, raises: readonly Raise[]): Occurrences {
  let before = seen(firstMs, firstMs, 1)
  let known = firstOccurrences(before)
  for (const { by, atMs } of raises) {
    const after = seen(firstMs, atMs, before.occurrences + by)
    const next = occurrencesAfter(known, before, after)
    known = next === undefined ? firstOccurrences(after) : stored(next, after)
    before = after
  }
  return known
}

/** What is known after the event was created at the first time, and raised by one at the others. */
function raisedAt([firstMs = 0, ...later]: readonly number[]): Occurrences {
  return raised(
    firstMs,
    later.map((atMs) => ({ by: 1, atMs })),
  )
}

/** Running sums. */
function added(startMs: number, gaps: readonly number[]): readonly number[] {
  let atMs = startMs
  return gaps.map((gap) => {
    atMs += gap
    return atMs
  })
}

function countIn({ spans }: Occurrences, fromMs: number, toMs: number): number {
  return spans.reduce((sum, one) => sum + countBefore(one, toMs) - countBefore(one, fromMs), 0)
}

describe('occurrences', () => {
  test('of a first write are distributed from the first to the last', () => {
    const known = firstOccurrences(seen(minutes(0), minutes(60), 61))
    assert.equal(known.isFirstEstimated, true)
    for (let hour = 0; hour < 6; hour++) {
      assert.equal(countIn(known, minutes(10 * hour), minutes(10 * hour + 10)), 10)
    }
    assert.equal(countIn(known, minutes(60), minutes(70)), 1)
  })

  test('of a first write without a first time are at the last', () => {
    assert.deepEqual(firstOccurrences(seen(0, minutes(3), 4)).spans, [
      { firstMs: minutes(3), lastMs: minutes(3), count: 4 },
    ])
    const future = firstOccurrences(seen(minutes(9), minutes(3), 4))
    assert.equal(countIn(future, minutes(3), minutes(3) + 1), 4)
  })

  test('of one are at the last time, and known', () => {
    const known = firstOccurrences(seen(minutes(0), minutes(3), 1))
    assert.deepEqual(known, {
      spans: [{ firstMs: minutes(3), lastMs: minutes(3), count: 1 }],
      isFirstEstimated: false,
    })
  })

  test('that a write adds are after those that were known', () => {
    const before = seen(minutes(0), minutes(10), 3)
    const after = seen(minutes(0), minutes(30), 7)
    const known = occurrencesAfter(firstOccurrences(before), before, after)
    assert.ok(known)
    assert.deepEqual(known.spans.at(-1), {
      firstMs: minutes(10),
      lastMs: minutes(30),
      count: 4,
      isOpen: true,
    })
    const added = [15, 20, 25, 30].map((at) => countIn(known, minutes(at), minutes(at) + 1))
    assert.deepEqual(added, [1, 1, 1, 1])
    assert.equal(countIn(known, minutes(10) + 1, minutes(30) + 1), 4)
  })

  test('that several writes add stay between what was known before and the last', () => {
    const made = fc.array(
      fc.record({ by: fc.integer({ min: 1, max: 9 }), afterMs: wholeSeconds }),
      { minLength: 1, maxLength: 100 },
    )
    fc.assert(
      fc.property(made, (list) => {
        const times = added(
          midnight,
          list.map(({ afterMs }) => afterMs),
        )
        const raises = list.map(({ by }, at) => ({ by, atMs: times[at] ?? 0 }))
        const known = raised(midnight, raises)
        const edges = [midnight, ...times]
        for (const [at, span] of known.spans.entries()) {
          // Every end is a time at which it was seen, and no time between two spans is lost.
          assert.ok(edges.includes(span.firstMs) && edges.includes(span.lastMs))
          assert.equal(span.isOpen && span.firstMs, span.isOpen && known.spans[at - 1]?.lastMs)
          for (let index = 0; index < span.count; index++) {
            const ms = timeOf(span, index)
            assert.ok(ms >= span.firstMs && ms <= span.lastMs)
            assert.ok(countBefore(span, ms) <= index && index < countBefore(span, ms + 1))
          }
        }
      }),
      { numRuns: 100 },
    )
  })

  test('are as before when the count is', () => {
    const before = seen(minutes(0), minutes(10), 3)
    const known = firstOccurrences(before)
    assert.deepEqual(occurrencesAfter(known, before, seen(minutes(0), minutes(20), 3)), known)
  })

  test('are unknown again when the count was lowered', () => {
    const before = seen(minutes(0), minutes(10), 3)
    const known = firstOccurrences(before)
    assert.equal(occurrencesAfter(known, before, seen(minutes(20), minutes(20), 1)), undefined)
  })

  test('are not later than the last time of the event, also if that was set back', () => {
    const before = seen(minutes(0), minutes(10), 3)
    const known = occurrencesAfter(
      firstOccurrences(before),
      before,
      seen(minutes(0), minutes(5), 5),
    )
    assert.ok(known)
    assert.equal(countIn(known, minutes(0), minutes(5) + 1), 5)
    assert.equal(known.spans.at(-1)?.lastMs, minutes(5))
  })

  test('of two hours are exact in buckets of five minutes, however many there were', () => {
    // Bursts that end early in a bucket, or begin late: to distribute them over more would be wrong.
    const times = Array.from({ length: 24 }, (_, bucket) =>
      Array.from({ length: 3 + ((bucket * 7) % 11) }, (_each, at) => {
        const startMs = minutes(5 * bucket) + (bucket % 3) * 100_000
        return startMs + at * 8_000
      }),
    ).flat()
    const known = raisedAt(times)
    assert.ok(times.length > 5 * SPANS_MAX && known.spans.length <= SPANS_MAX)
    for (let bucket = 0; bucket < 24; bucket++) {
      const [fromMs, toMs] = [minutes(5 * bucket), minutes(5 * bucket + 5)]
      const exact = times.filter((ms) => ms >= fromMs && ms < toMs).length
      assert.equal(countIn(known, fromMs, toMs), exact, `bucket ${bucket}`)
    }
  })

  test('keep their number, their order and their ends, whatever was merged', () => {
    const gaps = fc.array(wholeSeconds, { minLength: 1, maxLength: 300 })
    fc.assert(
      fc.property(gaps, (list) => {
        const times = added(midnight, list)
        const { spans } = raisedAt(times)
        assert.ok(spans.length <= SPANS_MAX)
        assert.equal(
          spans.reduce((sum, { count }) => sum + count, 0),
          times.length,
        )
        assert.equal(spans[0]?.firstMs, times[0])
        assert.equal(spans.at(-1)?.lastMs, times.at(-1))
        let lastMs = 0
        for (const span of spans) {
          assert.ok(span.firstMs >= lastMs && span.lastMs >= span.firstMs)
          lastMs = span.lastMs
        }
      }),
      { numRuns: 200 },
    )
  })
})

/** Spans that follow each other. */
const spanLists = fc
  .array(
    fc.record({
      gap: fc.nat({ max: 100_000 }),
      length: fc.oneof(fc.constant(0), fc.nat({ max: 10 * 60_000 })),
      count: fc.integer({ min: 1, max: 30 }),
      isOpen: fc.boolean(),
    }),
    { minLength: 1, maxLength: 200 },
  )
  .map((parts) => {
    let lastMs = midnight
    return parts.map(({ gap, length, count, isOpen }): Span => {
      const firstMs = lastMs + gap
      lastMs = firstMs + (count === 1 ? 0 : length)
      return { firstMs, lastMs, count, ...(isOpen && count > 1 && { isOpen }) }
    })
  })

const total = (spans: readonly Span[]) => spans.reduce((sum, { count }) => sum + count, 0)
const totalBefore = (spans: readonly Span[], ms: number) =>
  spans.reduce((sum, span) => sum + countBefore(span, ms), 0)

describe('fewer spans', () => {
  test('are as they were when there are few enough', () => {
    const { spans } = raisedAt([minutes(0), minutes(1), minutes(2)])
    assert.equal(compacted(spans, 3), spans)
  })

  test('have the same counts up to each minute, if minutes are enough', () => {
    fc.assert(
      fc.property(spanLists, (spans) => {
        const moments = spans.map(({ lastMs }): Span => ({ firstMs: lastMs, lastMs, count: 1 }))
        const busy = new Set(moments.map(({ lastMs }) => Math.floor(lastMs / 60_000))).size
        const fewer = compacted(moments, busy)
        assert.ok(fewer.length <= busy)
        for (const { lastMs } of moments) {
          const minute = Math.floor(lastMs / 60_000) * 60_000
          assert.equal(totalBefore(fewer, minute), totalBefore(moments, minute))
        }
      }),
    )
  })

  test('are never more than wanted, and have all occurrences in the same time', () => {
    fc.assert(
      fc.property(spanLists, fc.integer({ min: 1, max: 50 }), (spans, max) => {
        const fewer = compacted(spans, max)
        assert.ok(fewer.length <= max)
        assert.equal(total(fewer), total(spans))
        const ends = (list: readonly Span[]) => [
          Math.min(...list.map(({ firstMs }) => firstMs)),
          Math.max(...list.map(({ lastMs }) => lastMs)),
        ]
        assert.deepEqual(ends(fewer), ends(spans))
        assert.ok(fewer.every(({ firstMs, lastMs }) => firstMs <= lastMs))
      }),
    )
  })

  test('of a clock that was set back are in the order of time', () => {
    const at = (ms: number): Span => ({ firstMs: ms, lastMs: ms, count: 1 })
    const spans = [at(minutes(5)), at(minutes(1)), at(minutes(1) + 10)]
    assert.deepEqual(compacted(spans, 2), [
      { firstMs: minutes(1), lastMs: minutes(1) + 10, count: 2 },
      at(minutes(5)),
    ])
  })
})

describe('occurrences from a time on', () => {
  test('are those that are not before it', () => {
    fc.assert(
      fc.property(spanLists, fc.nat({ max: 100 * 60_000 }), (spans, ms) => {
        const fromMs = midnight + ms
        const later = occurrencesFrom(spans, fromMs)
        assert.equal(total(later), total(spans) - totalBefore(spans, fromMs))
        assert.equal(totalBefore(later, fromMs), 0)
        assert.ok(later.every(({ firstMs, lastMs, count }) => firstMs <= lastMs && count > 0))
      }),
    )
  })
})
