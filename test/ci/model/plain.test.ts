/** The plain model itself, against answers that were worked out by hand. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type PlainEvent, plainEvent, type Tree } from '../../nightly/model/plain-event.ts'
import {
  answer,
  type Order,
  type PlainQuery,
  type Term,
  valuesOf,
} from '../../nightly/model/plain-query.ts'

import { plainHistogram, plainSummary } from '../../nightly/model/plain-summary.ts'

const NOW_MS = Date.parse('2026-01-02T12:00:00Z')

function event(name: string, fields: Tree = {}, at: { cluster?: string } = {}): PlainEvent {
  const key = { cluster: at.cluster ?? 'local', namespace: 'shop', name }
  return plainEvent(key, name.length, { metadata: { name }, ...fields })
}

function named(events: readonly PlainEvent[], query: Partial<PlainQuery>): string {
  const whole: PlainQuery = { cluster: '*', namespace: '', terms: [], order: 'key', ...query }
  return answer(events, whole, NOW_MS)
    .map(({ key }) => key.name)
    .join(' ')
}

function terms(...texts: readonly string[]): readonly Term[] {
  return texts.map((text) => {
    const [, label = '', operator, value = ''] = /^(.*?)(!?=)(.*)$/.exec(text) ?? []
    return { label, operator: operator === '!=' ? '!=' : '=', values: valuesOf(value) }
  })
}

describe('last seen, first seen and occurrences', () => {
  const times = {
    series: { count: 4, lastObservedTime: '2026-01-01T00:00:04.000999Z' },
    deprecatedLastTimestamp: '2026-01-01T00:00:03Z',
    eventTime: '2026-01-01T00:00:02.000000Z',
    deprecatedFirstTimestamp: '2026-01-01T00:00:01Z',
    deprecatedCount: 3,
    metadata: { creationTimestamp: '2026-01-01T00:00:05Z' },
  }
  const midnight = Date.parse('2026-01-01T00:00:00Z')
  const cases: readonly (readonly [Tree, last: number, first: number, count: number])[] = [
    [times, 4_000, 1_000, 4],
    [{ ...times, series: null }, 3_000, 1_000, 3],
    [{ ...times, series: { lastObservedTime: null } }, 3_000, 1_000, 1],
    [{ ...times, deprecatedLastTimestamp: null, series: {} }, 2_000, 1_000, 1],
    [{ ...times, deprecatedFirstTimestamp: null }, 4_000, 2_000, 4],
    [{ metadata: times.metadata }, 5_000, 5_000, 1],
    [{ metadata: times.metadata, eventTime: '2026-02-30T00:00:00.000000Z' }, 5_000, 5_000, 1],
    [{ metadata: times.metadata, deprecatedCount: -2 }, 5_000, 5_000, 1],
    [{ metadata: {} }, -midnight, -midnight, 1],
  ]
  for (const [tree, last, first, count] of cases) {
    test(JSON.stringify(tree), () => {
      const made = plainEvent({ cluster: 'c', namespace: 'n', name: 'e' }, 1, tree)
      assert.deepEqual(
        [made.lastSeenMs - midnight, made.firstSeenMs - midnight, made.occurrences],
        [last, first, count],
      )
    })
  }
})

describe('filters', () => {
  const seen = (text: string): Tree => ({ deprecatedLastTimestamp: `2026-01-02T${text}Z` })
  const events = [
    event('a', { ...seen('11:40:00'), type: 'Warning', note: 'Back-off RESTARTING' }),
    event('b', {
      ...seen('11:39:59'),
      reason: 'Restarting',
      regarding: { kind: 'Pod', name: 'x' },
    }),
    event('c', { ...seen('11:50:00'), related: { kind: 'Pod', name: 'x', uid: 'u' } }),
  ]
  const cases: readonly (readonly [string, string])[] = [
    ['since=20m', 'a c'],
    ['until=20m', 'b'],
    ['since=2026-01-02T11:39:59Z', 'a b c'],
    ['until=2026-01-02T11:39:59Z', ''],
    ['since=20m0.001s', 'a c'],
    ['type=Warning', 'a'],
    ['type!=Warning', 'b c'],
    ['type=', 'b c'],
    ['text=restart', 'a b'],
    ['text!=restart', 'c'],
    ['mentions=pod/x', 'b c'],
    ['mentions=pod/X', ''],
    ['mentions=u', 'c'],
    ['mentions=pod/y*|u', 'c'],
    ['mentions!=pod/x*', 'a'],
    ['reason=Re*|none', 'b'],
    ['type!=Warning|none', 'b c'],
    ['name=x|y', 'b'],
    ['metadata.name=a|c', 'a c'],
    ['search=X', 'b c'],
    ['search=pod|off', 'a b c'],
    ['search!=restart', 'c'],
    ['search=c', 'a c'],
    ['related.kind=Pod', 'c'],
    ['involvedObject.kind=Pod', 'b'],
  ]
  for (const [text, expected] of cases) {
    test(text, () => assert.equal(named(events, { terms: terms(text) }), expected))
  }

  test('selects events for which all terms hold', () => {
    assert.equal(named(events, { terms: terms('since=20m', 'type=Warning') }), 'a')
  })
})

test('orders by key, or by time and then by key; newest is the exact reverse of oldest', () => {
  const at = (second: number): Tree => ({ eventTime: `2026-01-01T00:00:0${second}.000000Z` })
  const events = [
    event('b', at(1)),
    event('a', at(1), { cluster: 'west' }),
    event('c', at(0)),
    event('b-1', at(2)),
  ]
  const inOrder = (order: Order): string => named(events, { order })
  assert.equal(inOrder('key'), 'b b-1 c a')
  assert.equal(inOrder('oldest'), 'c b a b-1')
  assert.equal(inOrder('newest'), 'b-1 a b c')
})

test('orders groups by size, then by values, and keeps objects of two clusters apart', () => {
  const made = (name: string, reason: string, cluster = 'local'): PlainEvent =>
    event(
      name,
      { reason, deprecatedCount: 2, regarding: { kind: 'Pod', name: 'web-0' } },
      { cluster },
    )
  const events = [made('a', 'Y'), made('b', 'Y', 'west'), made('c', 'Z'), made('d', 'X')]
  const shown = plainSummary(events, ['reason']).map(({ values, ...counts }) => [
    ...values,
    counts.occurrences,
    counts.events,
    counts.objects,
  ])
  assert.deepEqual(shown, [
    ['Y', 4, 2, 2],
    ['X', 2, 1, 1],
    ['Z', 2, 1, 1],
  ])
})

describe('occurrences within a window', () => {
  const minute = (count: number): number => NOW_MS + count * 60_000
  const timeOf = (ms: number): string => new Date(ms).toISOString()
  const seen = (first: number, last: number, count: number): Tree => ({
    metadata: { name: 'a', uid: 'u' },
    type: 'Warning',
    deprecatedFirstTimestamp: timeOf(minute(first)),
    deprecatedLastTimestamp: timeOf(minute(last)),
    deprecatedCount: count,
  })
  const key = { cluster: 'local', namespace: 'shop', name: 'a' }
  /** The event after these writes. */
  const written = (...trees: readonly Tree[]): PlainEvent =>
    trees.reduce<PlainEvent | undefined>(
      (before, tree, index) => plainEvent(key, index + 1, tree, before),
      undefined,
    ) ?? event('none')
  const counts = (one: PlainEvent, ...edges: readonly number[]): string =>
    plainHistogram([one], edges.map(minute), 'type')
      .map(([count]) => `${count?.occurrences ?? 0}${count?.estimated ? '?' : ''}`)
      .join(' ')

  test('a first write is distributed from first to last', () => {
    assert.equal(counts(written(seen(0, 60, 7)), 0, 10, 20, 60, 70), '1? 1? 4? 1?')
    assert.equal(counts(written(seen(0, 60, 1)), 0, 60, 61), '0 1')
  })

  test('a raise by one is where it happened', () => {
    const one = written(seen(0, 0, 1), seen(0, 7, 2), seen(0, 8, 3), seen(0, 31, 4))
    assert.equal(counts(one, 0, 5, 10, 30, 35), '1 2 0 1')
  })

  test('a raise by more is after what was known, and may reach into several buckets', () => {
    const one = written(seen(0, 0, 1), seen(0, 12, 4))
    assert.equal(counts(one, 0, 5, 10, 15), '2? 1? 1?')
    assert.equal(counts(one, -10, 20), '4')
    const late = written(seen(0, 0, 1), seen(0, 4, 2), seen(0, 8, 4))
    assert.equal(counts(late, 0, 5, 10), '2 2?')
  })

  test('another uid or a lower count begins anew, and an earlier last time moves what was later', () => {
    const other = { ...seen(0, 20, 3), metadata: { name: 'a', uid: 'v' } }
    for (const tree of [other, seen(0, 20, 1)]) {
      const one = written(seen(0, 0, 1), seen(0, 8, 2), tree)
      assert.deepEqual(one.sightings, plainEvent(key, 1, tree).sightings)
    }
    const back = written(seen(0, 0, 1), seen(0, 8, 2), seen(0, 4, 3))
    assert.equal(counts(back, 0, 3, 5, 10), '1 2 0')
    const same = written(seen(0, 0, 1), seen(0, 8, 2), seen(0, 20, 2))
    assert.equal(counts(same, 0, 5, 10, 25), '1 1 0')
  })

  test('a summary counts what is within, and says whether it is an estimate', () => {
    const one = written(seen(0, 0, 1), seen(0, 12, 4))
    const within = (since: number, until: number): readonly unknown[] =>
      plainSummary([one], ['type'], { sinceMs: minute(since), untilMs: minute(until) }).map(
        ({ occurrences, firstMs = 0, lastMs = 0, isEstimated }) => [
          occurrences,
          (firstMs - NOW_MS) / 60_000,
          (lastMs - NOW_MS) / 60_000,
          isEstimated,
        ],
      )
    assert.deepEqual(within(0, 20), [[4, 0, 12, false]])
    assert.deepEqual(within(1, 20), [[3, 0, 12, true]])
    assert.deepEqual(within(0, 1), [[1, 0, 0, true]])
    assert.deepEqual(within(13, 20), [])
  })
})

test('puts the start of a bucket into it, and its end into the next', () => {
  const at = (ms: number): Tree => ({ type: 'Normal', eventTime: new Date(ms).toISOString() })
  const events = [event('a', at(10)), event('b', at(19)), event('c', at(20)), event('d', at(30))]
  assert.deepEqual(plainHistogram(events, [10, 20, 30], 'type'), [
    [{ name: 'Normal', occurrences: 2, events: 2 }],
    [{ name: 'Normal', occurrences: 1, events: 1 }],
  ])
})
