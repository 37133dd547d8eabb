import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { aLane } from '../../lib/run-queue.fixture.ts'
import { PairNumbers } from './pair-numbers.ts'

const { signal } = new AbortController()

test('pairs are numbered in the order in which they come, as in a map of texts', async () => {
  const number = fc.oneof(
    fc.integer({ min: 0, max: 20 }),
    fc.integer({ min: 0, max: 2 ** 32 - 1 }),
    // The same lower bits.
    fc.integer({ min: 0, max: 2 ** 12 - 1 }).map((value) => value * 2 ** 20),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(number, number), { maxLength: 400 }), async (pairs) => {
      const model = new Map<string, number>()
      const numbers = new PairNumbers()
      using slices = aLane().slices()
      for (const [first, second] of [...pairs, ...pairs]) {
        await numbers.reserve(1, { slices, signal })
        const text = `${first} ${second}`
        if (!model.has(text)) model.set(text, model.size)
        assert.equal(numbers.numberOf(first, second), model.get(text), text)
      }
      assert.equal(numbers.size, model.size)
    }),
  )
})

test('pairs that are chosen to have one hash are added as quickly as others', async () => {
  const numbers = new PairNumbers()
  using slices = aLane().slices()
  await numbers.reserve(60_000, { slices, signal })
  const startedAtMs = performance.now()
  for (let first = 0; first < 60_000; first++) {
    numbers.numberOf(first, Math.imul(first, 0x9e3779b1) >>> 0)
  }
  assert.ok(performance.now() - startedAtMs < 1_000, `${performance.now() - startedAtMs} ms`)
})

test('a million pairs stay apart, and are moved in time slices when the table grows', async () => {
  const numbers = new PairNumbers()
  using slices = aLane().slices()
  let turns = 0
  const timer = setInterval(() => turns++, 1)
  for (let at = 0; at < 1_000_000; at++) {
    if (at % 4_096 === 0) await numbers.reserve(4_096, { slices, signal })
    assert.equal(numbers.numberOf(at % 10_000, at), at)
  }
  clearInterval(timer)
  assert.equal(numbers.size, 1_000_000)
  assert.ok(turns > 0)
})
