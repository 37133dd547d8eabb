import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inputTime, readInputTime, widerRange } from './range.ts'
import { axisTime, spanText } from './times.ts'

const hourMs = 3_600_000

test('an input shows and reads the same time', () => {
  const ms = Date.parse('2026-11-16T03:12:24Z')
  assert.equal(readInputTime(inputTime(ms)), ms)
  assert.ok(Number.isNaN(readInputTime('')))
})

test('a wider range has three times the length, contains the other one and ends at the latest now', () => {
  const range = { fromMs: 10 * hourMs, toMs: 12 * hourMs }
  assert.deepEqual(widerRange(range, 90 * hourMs), { fromMs: 8 * hourMs, toMs: 14 * hourMs })
  assert.deepEqual(widerRange(range, 12 * hourMs), { fromMs: 6 * hourMs, toMs: 12 * hourMs })
  assert.deepEqual(widerRange(range, 11 * hourMs), { fromMs: 6 * hourMs, toMs: 12 * hourMs })
})

test('a span is said shortly', () => {
  const at = (text: string): number => new Date(text).getTime()
  const span = (from: string, to: string): string => spanText({ fromMs: at(from), toMs: at(to) })
  assert.equal(span('2026-11-16T03:10', '2026-11-16T03:15'), '2026-11-16 03:10 to 03:15')
  assert.equal(span('2026-11-16T03:10', '2026-11-16T03:10:30'), '2026-11-16 03:10:00 to 03:10:30')
  assert.equal(span('2026-11-15T23:00', '2026-11-16T00:00'), '2026-11-15 23:00 to 2026-11-16 00:00')
})

test('an axis has days, minutes or seconds', () => {
  const ms = new Date('2026-11-16T00:00:00').getTime()
  assert.equal(axisTime(ms, 48 * hourMs), '11-16')
  assert.equal(axisTime(ms + 90_000, 48 * hourMs), '00:01')
  assert.equal(axisTime(ms + 90_000, 60_000), '00:01:30')
})
