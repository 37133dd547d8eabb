import assert from 'node:assert/strict'
import { test } from 'node:test'
import { WatchSlots } from './watch-slots.ts'

test('gives a user no more watches than are still free, so that others always find some', () => {
  const slots = new WatchSlots(12, 6)
  const held = (user: string): number => {
    let count = 0
    while (typeof slots.enter(user) !== 'string') count += 1
    return count
  }
  assert.equal(held('ann'), 6)
  assert.equal(slots.enter('ann'), 'user-watches-full')
  assert.equal(held('bob'), 3)
  assert.equal(held('cyd'), 2)
  assert.equal(held('dan'), 1)
  assert.equal(slots.enter('eve'), 'watches-full')
})

test('gives a user any number of watches without limits', () => {
  const slots = new WatchSlots(Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY)
  for (let n = 0; n < 100; n++) assert.equal(typeof slots.enter('ann'), 'object')
  assert.equal(slots.held, 100)
})
