import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Backoff } from './backoff.ts'

test('backoff: doubles up to its maximum and starts over after a reset', () => {
  const backoff = new Backoff({ firstMs: 100, mostMs: 500, random: () => 1 })
  assert.deepEqual(
    [1, 2, 3, 4, 5].map(() => Math.round(backoff.next())),
    [100, 200, 400, 500, 500],
  )
  backoff.reset()
  assert.equal(Math.round(backoff.next()), 100)
})

test('backoff: never pauses for less than 80 % of its step', () => {
  const backoff = new Backoff({ firstMs: 100, mostMs: 100, random: () => 0 })
  assert.equal(backoff.next(), 80)
})
