import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PerKeyQueue } from './per-key-queue.ts'

test('per-key queue: admits one caller per key, in order, with the state of the previous one', async () => {
  const queue = new PerKeyQueue<string>()
  assert.equal(queue.enter('k'), undefined)
  const second = queue.enter('k')
  const third = queue.enter('k')
  assert.equal(queue.enter('other'), undefined)
  assert.equal(queue.waiting, 2)
  queue.leave('k', 'one')
  assert.equal(await second, 'one')
  assert.equal(queue.waiting, 1)
  queue.leave('k', undefined)
  assert.equal(await third, undefined)
  queue.leave('k', 'three')
  assert.equal(queue.enter('k'), undefined)
  assert.equal(queue.waiting, 0)
})
