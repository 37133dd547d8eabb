import { equal, throws } from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { canonicalTime, TimeSyntaxError } from './time.ts'

test('canonicalTime converts any RFC 3339 time to one form', () => {
  const micro: Readonly<Record<string, string>> = {
    '2026-01-02T03:04:05.678901Z': '2026-01-02T03:04:05.678901Z',
    '2026-01-02T03:04:05Z': '2026-01-02T03:04:05.000000Z',
    '2026-01-02T03:04:05.123456789Z': '2026-01-02T03:04:05.123456Z',
    '2026-01-02T05:04:05.5+02:00': '2026-01-02T03:04:05.500000Z',
    '2026-01-02T05:04:05,5+02:00': '2026-01-02T03:04:05.500000Z',
    '2026-01-02t03:04:05.000001z': '2026-01-02T03:04:05.000001Z',
    '2024-02-29T23:59:59-23:59': '2024-03-01T23:58:59.000000Z',
    '0050-01-01T00:00:00+01:00': '0049-12-31T23:00:00.000000Z',
    '0001-01-01T00:00:00.000001Z': '0001-01-01T00:00:00.000001Z',
    '9999-12-31T23:59:59.9999999Z': '9999-12-31T23:59:59.999999Z',
  }
  for (const [sent, printed] of Object.entries(micro)) {
    equal(canonicalTime(sent, 'microTime'), printed)
    equal(
      canonicalTime(sent, 'time'),
      sent.startsWith('0001') ? undefined : `${printed.slice(0, 19)}Z`,
    )
  }
})

test('canonicalTime returns undefined for the zero time', () => {
  equal(canonicalTime('0001-01-01T00:00:00Z', 'time'), undefined)
  equal(canonicalTime('0001-01-01T00:00:00.000000Z', 'microTime'), undefined)
  equal(canonicalTime('0001-01-01T01:00:00+01:00', 'microTime'), undefined)
})

test('canonicalTime rejects an invalid time with the message of Go', () => {
  const as = 'as "2006-01-02T15:04:05Z07:00"'
  const messages: Readonly<Record<string, string>> = {
    yesterday: `parsing time "yesterday" ${as}: cannot parse "yesterday" as "2006"`,
    '': `parsing time "" ${as}: cannot parse "" as "2006"`,
    '2026-01-02': `parsing time "2026-01-02" ${as}: cannot parse "" as "T"`,
    '2026-01-02T03:04:05': `parsing time "2026-01-02T03:04:05" ${as}: cannot parse "" as "Z07:00"`,
    '2026-02-30T03:04:05.000001Z': 'parsing time "2026-02-30T03:04:05.000001Z": day out of range',
    '2025-02-29T00:00:00Z': 'parsing time "2025-02-29T00:00:00Z": day out of range',
    '1900-02-29T00:00:00Z': 'parsing time "1900-02-29T00:00:00Z": day out of range',
    '2026-13-01T00:00:00Z': 'parsing time "2026-13-01T00:00:00Z": month out of range',
    '2026-01-01T24:00:00Z': 'parsing time "2026-01-01T24:00:00Z": hour out of range',
    '2026-01-01T00:60:00Z': 'parsing time "2026-01-01T00:60:00Z": minute out of range',
    '2026-01-01T00:00:60Z': 'parsing time "2026-01-01T00:00:60Z": second out of range',
    '9999-12-31T23:59:59-00:01': 'parsing time "9999-12-31T23:59:59-00:01": year out of range',
    '0000-01-01T00:00:00+00:01': 'parsing time "0000-01-01T00:00:00+00:01": year out of range',
    '2026-01-01T00:00:00+24:00':
      'parsing time "2026-01-01T00:00:00+24:00": time zone offset hour out of range',
  }
  for (const [text, message] of Object.entries(messages)) {
    throws(() => canonicalTime(text, 'microTime'), new TimeSyntaxError(message))
  }
  for (const text of [
    '2026-01-02T03:04:05.Z',
    '2026-01-02T03:04:05ZZ',
    '2026-01-02 03:04:05Z',
    '2026-1-2T03:04:05Z',
    '2026-01-02T03:04:05+0100',
  ]) {
    throws(() => canonicalTime(text, 'time'), TimeSyntaxError)
  }
})

test('canonicalTime returns the same UTC time as Date for any offset', () => {
  const date = fc.date({
    min: new Date('0002-01-01'),
    max: new Date('9998-01-01'),
    noInvalidDate: true,
  })
  fc.assert(
    fc.property(date, fc.integer({ min: -1439, max: 1439 }), (moment, offset) => {
      const local = new Date(moment.getTime() + offset * 60_000).toISOString().slice(0, 23)
      const size = Math.abs(offset)
      const zone = `${String(Math.floor(size / 60)).padStart(2, '0')}:${String(size % 60).padStart(2, '0')}`
      const sent = `${local}${offset < 0 ? '-' : '+'}${zone}`
      const printed = moment.toISOString()
      equal(canonicalTime(sent, 'microTime'), `${printed.slice(0, 23)}000Z`)
      equal(canonicalTime(sent, 'time'), `${printed.slice(0, 19)}Z`)
    }),
  )
})
