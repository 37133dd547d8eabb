import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ObjectPairs } from './object-pairs.ts'

test('a pair is new once, as in a set of texts', () => {
  const group = fc.integer({ min: 0, max: 9_999 })
  const object = fc.oneof(
    fc.integer({ min: 0, max: 20 }),
    fc.maxSafeInteger().map((value) => Math.abs(value)),
    // The same lower and upper bits.
    fc.integer({ min: 0, max: 2 ** 20 }).map((value) => value * 2 ** 32),
  )
  fc.assert(
    fc.property(fc.array(fc.tuple(group, object), { maxLength: 400 }), (pairs) => {
      const model = new Set<string>()
      const set = new ObjectPairs()
      for (const [one, other] of [...pairs, ...pairs]) {
        const text = `${one} ${other}`
        assert.equal(set.add(one, other), !model.has(text), text)
        model.add(text)
      }
    }),
  )
})

test('objects that are chosen to have one hash are added as quickly as others', () => {
  const set = new ObjectPairs()
  const startedAtMs = performance.now()
  for (let high = 0; high < 60_000; high++) {
    set.add(0, high * 2 ** 32 + (Math.imul(high, 0x9e3779b1) >>> 0))
  }
  assert.ok(performance.now() - startedAtMs < 1_000, `${performance.now() - startedAtMs} ms`)
})

test('a million pairs stay apart', () => {
  const set = new ObjectPairs()
  let added = 0
  for (let at = 0; at < 1_000_000; at++) if (set.add(at % 10_000, at * 8_191)) added++
  assert.equal(added, 1_000_000)
})
