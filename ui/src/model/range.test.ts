import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  boundedSpan,
  inputTime,
  isLong,
  listedSpan,
  PRESETS,
  presetSince,
  readInputTime,
  readRange,
  type Span,
  type TimeRange,
  zoomed,
} from './range.ts'
import { axisTime, spanText } from './times.ts'

const hourMs = 3_600_000

test('round-trips a time through an input', () => {
  const ms = Date.parse('2026-11-16T03:12:24Z')
  assert.equal(readInputTime(inputTime(ms)), ms)
  assert.ok(Number.isNaN(readInputTime('')))
})

test('widens a span around the old one without passing now', () => {
  const span = { fromMs: 10 * hourMs, toMs: 12 * hourMs }
  const longer = (nowMs: number): object => zoomed(span, { factor: 3, nowMs })
  assert.deepEqual(longer(90 * hourMs), { fromMs: 8 * hourMs, toMs: 14 * hourMs })
  assert.deepEqual(longer(12 * hourMs), { fromMs: 6 * hourMs, toMs: 12 * hourMs })
  assert.deepEqual(longer(11 * hourMs), { fromMs: 6 * hourMs, toMs: 12 * hourMs })
})

test('offers what only history can fill separately', () => {
  assert.deepEqual(PRESETS.filter(isLong), ['30d', '90d'])
})

test('finds the longest range since a time', () => {
  const since = (hours: number): TimeRange => presetSince(0, hours * hourMs)
  assert.deepEqual(since(25), { last: '24h' })
  assert.deepEqual(since(24), { last: '24h' })
  assert.deepEqual(since(10_000), { last: '90d' })
  assert.deepEqual(since(0), { last: '15m' })
})

test('narrows a span around the pointer', () => {
  const span = { fromMs: 0, toMs: 100_000 }
  assert.deepEqual(zoomed(span, { factor: 0.5, centreMs: 30_000, nowMs: 100_000 }), {
    fromMs: 5_000,
    toMs: 55_000,
  })
})

test('keeps every zoom within the displayable range', () => {
  const nowMs = Date.parse('2026-11-16T03:12:24Z')
  for (const factor of [0.5, 2]) {
    let range: Span = { fromMs: nowMs - hourMs, toMs: nowMs }
    for (let count = 0; count < 100; count++) {
      range = boundedSpan(zoomed(range, { factor, nowMs }), nowMs)
      assert.doesNotThrow(() => new Date(range.fromMs).toISOString())
    }
    assert.equal(range.toMs - range.fromMs, factor < 1 ? 1_000 : 400 * 24 * hourMs)
  }
})

test('turns a link to any time into a displayable range', () => {
  const read = (from: string, to: string): TimeRange => readRange(new URLSearchParams({ from, to }))
  const lengthOf = (range: TimeRange): number => ('last' in range ? 0 : range.toMs - range.fromMs)
  assert.deepEqual(read('-271821-04-20T00:00:00Z', '-271821-04-20T01:00:00Z'), {
    fromMs: 0,
    toMs: 1_000,
  })
  assert.equal(lengthOf(read('-271821-04-20T00:00:00Z', '2026-01-01T00:00:00Z')), 400 * 24 * hourMs)
  assert.equal(lengthOf(read('+275760-09-12T00:00:00Z', '+275760-09-13T00:00:00Z')), 1_000)
  assert.deepEqual(read('nonsense', '2026-01-01T00:00:00Z'), { last: '1h' })
  const fromMs = Date.parse('2026-01-01T00:00:00Z')
  assert.deepEqual(read('2026-01-01T00:00:00Z', '2026-01-01T01:00:00Z'), {
    fromMs,
    toMs: fromMs + hourMs,
  })
})

test('formats a span briefly', () => {
  const at = (text: string): number => new Date(text).getTime()
  const span = (from: string, to: string): string => spanText({ fromMs: at(from), toMs: at(to) })
  assert.equal(span('2026-11-16T03:10', '2026-11-16T03:15'), '2026-11-16 03:10 to 03:15')
  assert.equal(span('2026-11-16T03:10', '2026-11-16T03:10:30'), '2026-11-16 03:10:00 to 03:10:30')
  assert.equal(span('2026-11-15T23:00', '2026-11-16T00:00'), '2026-11-15 23:00 to 2026-11-16 00:00')
})

test('labels an axis in days, minutes or seconds', () => {
  const ms = new Date('2026-11-16T00:00:00').getTime()
  assert.equal(axisTime(ms, 48 * hourMs), '11-16')
  assert.equal(axisTime(ms + 90_000, 48 * hourMs), '00:01')
  assert.equal(axisTime(ms + 90_000, 60_000), '00:01:30')
})

test('lists what is reported after a range that ends now, but nothing after a fixed one', () => {
  assert.deepEqual(listedSpan({ last: '15m' }, 900_000), { fromMs: 0 })
  const fixed = { fromMs: 1_000, toMs: 2_000 }
  assert.deepEqual(listedSpan(fixed, 900_000), fixed)
})
