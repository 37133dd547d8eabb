import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { fieldsIn } from './event-fields.ts'

const at = (minute: number) => `2026-11-16T05:${String(minute).padStart(2, '0')}:00Z`
const ms = (minute: number) => Date.parse(at(minute))

describe('event fields: times and counts', () => {
  const created = { metadata: { creationTimestamp: at(1) } }
  const timed = { ...created, eventTime: '2026-11-16T05:02:00.123456Z' }
  const old = {
    ...timed,
    deprecatedFirstTimestamp: at(3),
    deprecatedLastTimestamp: at(4),
    deprecatedCount: 7,
  }
  const series = { ...old, series: { count: 12, lastObservedTime: at(5) } }

  test('reads the time last seen from the series, or the deprecated field, the event time, the creation', () => {
    const seen = [series, old, timed, created, {}].map((event) => fieldsIn(event).lastSeenMs)
    assert.deepEqual(seen, [ms(5), ms(4), ms(2) + 123, ms(1), 0])
  })

  test('reads the time first seen from the deprecated field, or the event time, the creation', () => {
    const seen = [series, timed, created, {}].map((event) => fieldsIn(event).firstSeenMs)
    assert.deepEqual(seen, [ms(3), ms(2) + 123, ms(1), 0])
  })

  test('a time that is absent or unreadable is passed over', () => {
    assert.equal(fieldsIn({ ...old, series: { count: 2 } }).lastSeenMs, ms(4))
    assert.equal(fieldsIn({ ...old, series: { lastObservedTime: 'soon' } }).lastSeenMs, ms(4))
    assert.equal(fieldsIn({ ...old, deprecatedLastTimestamp: null }).lastSeenMs, ms(2) + 123)
  })

  test('reads occurrences from the series or the deprecated field, at least 1', () => {
    const counts = [series, old, timed, { series: { count: 0 }, deprecatedCount: 9 }]
    assert.deepEqual(
      counts.map((event) => fieldsIn(event).occurrences),
      [12, 7, 1, 1],
    )
  })
})
