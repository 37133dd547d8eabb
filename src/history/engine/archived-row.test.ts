import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { fieldsIn } from '../../storage/event-fields.ts'
import { encodeTrailer } from '../../storage/trailer.ts'
import { DayNames, rowOf, UnreadableChange } from './archived-row.ts'
import type { ArchivedChange } from './protocol.ts'
import { change, counted, type TestEvent } from './written-files.fixture.ts'

const ms = (time: string): number => Date.parse(`2026-06-05T${time}Z`)
const at = (time: string): string => `2026-06-05T${time}Z`

const read = (made: ArchivedChange) => rowOf(made, new DayNames())

/** In short: times and counts. */
function spans(made: ArchivedChange): readonly (readonly unknown[])[] {
  return read(made).spans.map(({ firstMs, lastMs, count, isOpen = false }) => {
    const time = (value: number) => new Date(value).toISOString().slice(11, 19)
    return [time(firstMs), time(lastMs), count, isOpen]
  })
}

describe('rowOf: occurrences that no earlier row has', () => {
  const one = change({ event: counted(1, at('10:00:00'), at('10:00:00')) })

  test('of a new event are all', () => {
    assert.deepEqual(spans(one), [['10:00:00', '10:00:00', 1, false]])
    const five = change({ event: counted(5, at('10:00:00'), at('10:20:00')) })
    assert.deepEqual(spans(five), [['10:00:00', '10:20:00', 5, false]])
    assert.equal(read(five).isAgain, false)
  })

  test('of a new event with a trailer are those of the trailer', () => {
    const event = counted(3, at('10:00:00'), at('10:20:00'))
    const fields = fieldsIn({ metadata: {}, ...event })
    const known = [
      { firstMs: ms('10:00:00'), lastMs: ms('10:00:00'), count: 1 },
      { firstMs: ms('10:00:00'), lastMs: ms('10:20:00'), count: 2, isOpen: true as const },
    ]
    const occurrences = { spans: known, isFirstEstimated: false }
    const trailer = encodeTrailer({ occurrences }, fields)
    assert.deepEqual(spans(change({ event, trailer })), [
      ['10:00:00', '10:00:00', 1, false],
      ['10:00:00', '10:20:00', 2, true],
    ])
  })

  test('of a count that was raised by one are a moment', () => {
    const raised = change({ event: counted(2, at('10:00:00'), at('10:05:00')), previous: one })
    assert.deepEqual(spans(raised), [['10:05:00', '10:05:00', 1, false]])
    assert.equal(read(raised).isAgain, true)
  })

  test('of a count that was raised by more are the time since the last', () => {
    const raised = change({ event: counted(9, at('10:00:00'), at('10:05:00')), previous: one })
    assert.deepEqual(spans(raised), [['10:00:00', '10:05:00', 8, true]])
  })

  test('do not begin after their end when the clock of the reporter was set back', () => {
    const raised = change({ event: counted(9, at('10:00:00'), at('09:30:00')), previous: one })
    assert.deepEqual(spans(raised), [['09:30:00', '09:30:00', 8, true]])
  })

  test('of an equal count are none', () => {
    const labelled = change({ event: counted(1, at('10:00:00'), at('10:05:00')), previous: one })
    assert.deepEqual(spans(labelled), [])
    assert.equal(read(labelled).isAgain, true)
  })

  test('of a count that was lowered are all, as of a new event', () => {
    const nine = change({ event: counted(9, at('10:00:00'), at('10:05:00')) })
    const lowered = change({ event: counted(2, at('11:00:00'), at('11:05:00')), previous: nine })
    assert.deepEqual(spans(lowered), [['11:00:00', '11:05:00', 2, false]])
    assert.equal(read(lowered).isAgain, true)
  })

  test('behind a gap are those after it', () => {
    const event = counted(11, at('10:00:00'), at('10:10:00'))
    const gap = (time: string) => change({ event, previous: { unknownBeforeMs: ms(time) } })
    assert.deepEqual(spans(gap('10:04:30')), [['10:05:00', '10:10:00', 6, false]])
    assert.deepEqual(spans(gap('10:10:00')), [['10:10:00', '10:10:00', 1, false]])
    assert.deepEqual(spans(gap('10:10:01')), [])
    assert.equal(read(gap('10:04:30')).isAgain, true)
    assert.deepEqual(spans(gap('09:59:59')), [['10:00:00', '10:10:00', 11, false]])
    assert.equal(read(gap('09:59:59')).isAgain, false)
  })

  test('of an event that was created in a gap are all, also those it had before', () => {
    const { metadata, ...event } = counted(5, at('10:00:00'), at('10:20:00'))
    const created = { ...event, metadata: { ...metadata, creationTimestamp: at('10:30:00') } }
    const gap = change({ event: created, previous: { unknownBeforeMs: ms('10:25:00') } })
    assert.deepEqual(spans(gap), [['10:00:00', '10:20:00', 5, false]])
    assert.equal(read(gap).isAgain, false)
  })

  test('behind a state that cannot be read are all', () => {
    const damaged = { ...one, body: Buffer.from('{"metadata":{') }
    const event = counted(2, at('10:00:00'), at('10:05:00'))
    assert.deepEqual(spans(change({ event, previous: damaged })), [
      ['10:00:00', '10:05:00', 2, false],
    ])
  })
})

describe('rowOf: the day', () => {
  const dated = (last: string): TestEvent => ({ deprecatedLastTimestamp: last })
  const writtenAtMs = Date.parse('2026-06-05T12:00:00Z')
  const dateOf = (event: TestEvent) => read(change({ event, writtenAtMs })).date

  test('is that of the last time, in UTC', () => {
    assert.equal(dateOf(dated('2026-06-04T23:59:59Z')), '2026-06-04')
    assert.equal(dateOf(dated('2026-06-05T01:00:00+02:00')), '2026-06-04')
    assert.equal(dateOf(dated('2026-06-06T11:59:59Z')), '2026-06-06')
    assert.equal(dateOf(dated('2026-05-05T12:00:01Z')), '2026-05-05')
  })

  test('is that of the write if the last time is missing, or far from it', () => {
    assert.equal(dateOf({}), '2026-06-05')
    assert.equal(dateOf(dated('2026-06-06T12:00:01Z')), '2026-06-05')
    assert.equal(dateOf(dated('9999-12-31T23:59:59Z')), '2026-06-05')
    assert.equal(dateOf(dated('2026-05-05T12:00:00Z')), '2026-06-05')
    assert.equal(dateOf(dated('1970-01-01T00:00:00Z')), '2026-06-05')
    assert.equal(dateOf(dated('0001-01-01T00:00:00Z')), '2026-06-05')
  })

  test('of two days are two', () => {
    const days = new DayNames()
    const dates = ['2026-06-05T00:00:00Z', '2026-06-04T23:59:59Z', '2026-06-05T10:00:00Z'].map(
      (last) => rowOf(change({ event: dated(last), writtenAtMs }), days).date,
    )
    assert.deepEqual(dates, ['2026-06-05', '2026-06-04', '2026-06-05'])
  })
})

describe('rowOf: changes that are not events', () => {
  const wrong: readonly [what: string, body: string | Buffer][] = [
    ['nothing', ''],
    ['no JSON', '{"metadata":{"name":"x"'],
    ['no metadata', '{"reason":"x"}'],
    ['not UTF-8', Buffer.from('{"metadata":{"name":"\xff"}}', 'latin1')],
    ['a count that is no number of times', '{"metadata":{},"deprecatedCount":1e300}'],
    ['a count with a fraction', '{"metadata":{},"series":{"count":1.5}}'],
  ]
  for (const [what, body] of wrong) {
    test(what, () => {
      const made = { ...change(), body: Buffer.from(body) }
      assert.throws(() => read(made), UnreadableChange)
    })
  }

  test('a write time that is none', () => {
    for (const writtenAtMs of [-1, Number.NaN, Date.UTC(10_000, 0)]) {
      assert.throws(() => read(change({ writtenAtMs })), UnreadableChange)
    }
  })
})

test('an event without a uid has its key instead', () => {
  assert.equal(read(change()).uid, 'shop/web-0.1')
  assert.equal(read(change({ event: { metadata: { uid: 'u-1' } } })).uid, 'u-1')
})
