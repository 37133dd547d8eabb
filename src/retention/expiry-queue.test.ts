import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Version } from '../storage/resource-version.ts'
import { type DueEvent, ExpiryQueue } from './expiry-queue.ts'

function due(dueAt: number, name = String(dueAt)): DueEvent {
  return { key: { cluster: 'local', namespace: 'n', name }, version: (dueAt * 7) as Version, dueAt }
}

test('expiry queue: returns entries in order, each once, and never early', () => {
  const step = fc.oneof(
    fc.record({ put: fc.integer({ min: 0, max: 50 }) }),
    fc.record({ now: fc.integer({ min: 0, max: 60 }), max: fc.integer({ min: 1, max: 5 }) }),
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const queue = new ExpiryQueue()
      const model: number[] = []
      for (const each of steps) {
        if ('put' in each) {
          queue.push(due(each.put))
          model.push(each.put)
        } else {
          model.sort((a, b) => a - b)
          const count = Math.min(each.max, model.filter((dueAt) => dueAt <= each.now).length)
          const expected = model.splice(0, count).map((dueAt) => due(dueAt))
          assert.deepEqual(queue.takeDue(each.now, each.max), expected)
        }
        assert.equal(queue.size, model.length)
        assert.equal(queue.firstDueAt, model.length === 0 ? undefined : Math.min(...model))
      }
    }),
  )
})

test('expiry queue: grows and shrinks with its entries, and is empty when cleared', () => {
  const queue = new ExpiryQueue()
  const count = 50_000
  for (let at = 0; at < count; at++) queue.push(due((at * 7919) % count))
  const taken = queue.takeDue(count, count - 10)
  assert.ok(taken.every((event, at) => event.dueAt === at && event.key.name === String(at)))
  assert.ok(taken.every((event) => event.version === event.dueAt * 7))
  assert.equal(queue.size, 10)
  queue.clear()
  assert.deepEqual([queue.size, queue.firstDueAt, queue.takeDue(count, 1)], [0, undefined, []])
  queue.push(due(3))
  assert.deepEqual(queue.takeDue(3, 5), [due(3)])
})
