import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bytesText, counted, isNewer, percentOf } from './numbers.ts'

test('adds a noun to counts', () => {
  assert.deepEqual(
    [0, 1, 12_412].map((count) => counted(count, 'event')),
    ['0 events', '1 event', '12,412 events'],
  )
})

test('uses the largest unit with at least one whole', () => {
  assert.deepEqual([0, 1_000, 1_024, 87_766_000, 200 * 1_048_576, 1_023 * 1_024].map(bytesText), [
    '0 bytes',
    '1000 bytes',
    '1 KiB',
    '83.7 MiB',
    '200 MiB',
    '1023 KiB',
  ])
})

test('returns 0 or 100 only for nothing or everything', () => {
  assert.deepEqual(
    [
      percentOf(0, 10),
      percentOf(1, 1_000),
      percentOf(1, 3),
      percentOf(999, 1_000),
      percentOf(9, 9),
    ],
    [0, 1, 33, 99, 100],
  )
  assert.equal(percentOf(3, 0), 0)
})

test('compares versions as integers of any length', () => {
  assert.equal(isNewer('1000', '999'), true)
  assert.equal(isNewer('999', '1000'), false)
  assert.equal(isNewer('90071992547409931999', '90071992547409930999'), true)
  assert.equal(isNewer('5', '5'), false)
})
