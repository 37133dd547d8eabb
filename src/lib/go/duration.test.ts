import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  DurationError,
  formatDuration,
  formatLongDuration,
  parseDuration,
  parseLongDuration,
} from './duration.ts'

// All code units, lone surrogates too. (The generator of fast-check takes a second to set up.)
const anyText = fc
  .array(fc.integer({ min: 0, max: 0xffff }))
  .map((codes) => String.fromCharCode(...codes))

const parsed: readonly (readonly [string, number])[] = [
  ['0', 0],
  ['+0', 0],
  ['-0', 0],
  ['0s', 0],
  ['-0s', 0],
  ['5s', 5000],
  ['+5s', 5000],
  ['-5s', -5000],
  ['1h30m', 5_400_000],
  ['1.5h', 5_400_000],
  ['1.h', 3_600_000],
  ['.5s', 500],
  ['300ms', 300],
  ['2us', 0.002],
  ['2µs', 0.002],
  ['2μs', 0.002],
  ['7ns', 0.000007],
  ['30m1h', 5_400_000],
  ['1h0m0s', 3_600_000],
  ['1.0000000001s', 1000],
]

for (const [text, ms] of parsed) {
  test(`parseDuration reads ${text} as ${ms} ms`, () => {
    assert.equal(parseDuration(text), ms)
  })
}

const refused: readonly (readonly [string, string])[] = [
  ['', '"" is not a duration: write a number and a unit, such as 300ms, 1m30s or 2h'],
  ['soon', '"soon" is not a duration: write a number and a unit, such as 300ms, 1m30s or 2h'],
  ['-', '"-" is not a duration: write a number and a unit, such as 300ms, 1m30s or 2h'],
  ['.s', '".s" is not a duration: write a number and a unit, such as 300ms, 1m30s or 2h'],
  ['1h30', '"1h30" is not a duration: write a number and a unit, such as 300ms, 1m30s or 2h'],
  ['30', '"30" has no unit: write 30s, 30m or 30ms'],
  ['1.5', '"1.5" has no unit: write 1.5s, 1.5m or 1.5ms'],
  ['1d', '"1d" counts in days: write hours, such as 24h'],
  ['5min', '"5min" has an unknown unit "min": write h, m, s, ms, us or ns, such as 1m30s'],
  ['5 s', '"5 s" has an unknown unit " s": write h, m, s, ms, us or ns, such as 1m30s'],
  ['9999999h', '"9999999h" is too long: write 2562047h or less'],
  [
    '1'.repeat(500),
    'this is not a duration: write a number and a unit, such as 300ms, 1m30s or 2h',
  ],
]

for (const [text, message] of refused) {
  test(`parseDuration rejects ${JSON.stringify(text.slice(0, 20))}`, () => {
    assert.throws(() => parseDuration(text), { name: 'DurationError', message })
  })
}

const printed: readonly (readonly [number, string])[] = [
  [0, '0s'],
  [0.000001, '1ns'],
  [0.0015, '1.5µs'],
  [1.5, '1.5ms'],
  [500, '500ms'],
  [1000, '1s'],
  [1500, '1.5s'],
  [60_000, '1m0s'],
  [90_500, '1m30.5s'],
  [3_600_000, '1h0m0s'],
  [5_400_000, '1h30m0s'],
  [-60_000, '-1m0s'],
  [360_000_000, '100h0m0s'],
]

for (const [ms, text] of printed) {
  test(`formatDuration prints ${ms} ms as ${text}`, () => {
    assert.equal(formatDuration(ms), text)
  })
}

test('parseDuration reads the output of formatDuration as the same duration', () => {
  const nanoseconds = fc.oneof(
    fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }),
    fc.maxSafeInteger().map((n) => Math.trunc(n / 8)),
  )
  fc.assert(
    fc.property(nanoseconds, (ns) => {
      assert.equal(Math.round(parseDuration(formatDuration(ns / 1e6)) * 1e6), ns === 0 ? 0 : ns)
    }),
  )
})

test('parseDuration returns a finite number or throws a DurationError for any text', () => {
  const texts = fc.oneof(
    anyText,
    fc
      .array(fc.constantFrom('+', '-', '.', '0', '7', '42', 'ns', 'us', 'ms', 's', 'm', 'h', 'd'))
      .map((pieces) => pieces.join('')),
  )
  fc.assert(
    fc.property(texts, (text) => {
      try {
        assert.ok(Number.isFinite(parseDuration(text)))
      } catch (error) {
        assert.ok(error instanceof DurationError)
      }
    }),
  )
})

const long: readonly (readonly [string, number])[] = [
  ['7d', 604_800_000],
  ['1w', 604_800_000],
  ['1w1d', 691_200_000],
  ['1d12h', 129_600_000],
  ['1.5d', 129_600_000],
  ['20m', 1_200_000],
]

for (const [text, ms] of long) {
  test(`parseLongDuration reads ${text} as ${ms} ms`, () => {
    assert.equal(parseLongDuration(text), ms)
  })
}

test('parseLongDuration names all its units when one is unknown', () => {
  assert.throws(() => parseLongDuration('2y'), {
    message: '"2y" has an unknown unit "y": write w, d, h, m, s, ms, us or ns, such as 1m30s',
  })
})

test('formatLongDuration prints a short text that reads back as the same', () => {
  const shortest: readonly (readonly [number, string])[] = [
    [604_800_000, '7d'],
    [129_600_000, '1d12h'],
    [86_460_000, '1d1m'],
    [86_400_500, '1d500ms'],
    [21_600_000, '6h'],
    [36_000_000, '10h'],
    [5_400_000, '1h30m'],
    [3_601_000, '1h0m1s'],
    [90_500, '1m30.5s'],
    [60_000, '1m'],
    [600_000, '10m'],
    [10_000, '10s'],
    [0, '0s'],
  ]
  for (const [ms, text] of shortest) {
    assert.equal(formatLongDuration(ms), text)
    assert.equal(parseLongDuration(text), ms)
  }
})
