import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isFinal, retryDelayMs } from './retries.ts'

test('delays double up to half a minute, and half of each is random', () => {
  const counts = [1, 2, 3, 5, 6, 50]
  const delays = (random: number): readonly number[] =>
    counts.map((count) => retryDelayMs({ count }, () => random))
  assert.deepEqual(delays(0), [500, 1_000, 2_000, 8_000, 15_000, 15_000])
  assert.deepEqual(delays(1), [1_000, 2_000, 4_000, 16_000, 30_000, 30_000])
})

test('never retries earlier than Retry-After', () => {
  const delay = (retryAfterSeconds: number, random: number): number =>
    retryDelayMs({ count: 1, retryAfterSeconds }, () => random)
  assert.deepEqual([delay(7, 0), delay(7, 1)], [7_000, 7_500])
  assert.equal(delay(86_400, 0), 120_000)
})

test('treats only errors that a retry cannot fix as final', () => {
  assert.deepEqual(
    [0, 400, 401, 403, 404, 408, 410, 429, 500, 503, 504].filter(isFinal),
    [400, 401, 403, 404],
  )
})
