import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { HeavyHitters } from './heavy-hitters.ts'

const near = (actual: number | undefined, expected: number, share: number): void => {
  const message = `${actual} is not within ${share * 100} % of ${expected}`
  assert.ok(actual !== undefined && Math.abs(actual / expected - 1) <= share, message)
}

test('reports hits per second from the first seconds on, which fade within minutes', () => {
  const hitters = new HeavyHitters({ entriesMax: 8, nowMs: 0 })
  let now = 0
  for (; now < 5_000; now += 10) {
    hitters.hit('flood', now)
    if (now % 500 === 0) hitters.hit('normal', now)
  }
  const [first, second, ...others] = hitters.top(now)
  assert.deepEqual([first?.key, second?.key, others], ['flood', 'normal', []])
  near(first?.rate, 100, 0.01)
  near(second?.rate, 2, 0.1)
  near(hitters.top(now + 30_000)[0]?.rate, 8.2, 0.01)
  assert.deepEqual(hitters.top(now + 10 * 60_000), [])
})

test('reports a steady rate correctly after hours, with counts scaled down on the way', () => {
  const hitters = new HeavyHitters({ entriesMax: 2, nowMs: 0 })
  let now = 0
  for (; now < 12 * 3_600_000; now += 500) {
    hitters.hit('steady', now)
    if (now % 5_000 === 0) hitters.hit(`rare-${now}`, now)
  }
  const [first] = hitters.top(now)
  assert.equal(first?.key, 'steady')
  near(first?.rate, 2, 0.02)
})

test('retains a heavy key and never overstates its rate, whatever else is hit', () => {
  fc.assert(
    fc.property(fc.array(fc.nat({ max: 40 }), { maxLength: 600 }), (keys) => {
      const entriesMax = 5
      const hitters = new HeavyHitters({ entriesMax, nowMs: 0, takeOverChance: 1 })
      const hits = new Map<string, number>()
      for (const key of keys) {
        hitters.hit(String(key), 0)
        hits.set(String(key), (hits.get(String(key)) ?? 0) + 1)
      }
      const shown = new Map(hitters.top(0).map(({ key, rate }) => [key, rate]))
      assert.ok(shown.size <= entriesMax)
      const oneHit = 1 / (30 * (1 - Math.exp(-1 / 30)))
      for (const [key, rate] of shown) assert.ok(rate <= (hits.get(key) ?? 0) * oneHit * 1.0001)
      for (const [key, count] of hits) {
        if (count > keys.length / entriesMax) assert.ok(shown.has(key), `${key} was hit ${count}x`)
      }
    }),
  )
})

test('uses no more memory for a million names than for a few, and hides no flood', () => {
  const hitters = new HeavyHitters({ entriesMax: 256, nowMs: 0 })
  const long = 'x'.repeat(1_000)
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  const before = process.memoryUsage().heapUsed
  for (let at = 0; at < 1_000_000; at++) {
    hitters.hit(`${at}-${long}`, at / 100)
    if (at % 10 === 0) hitters.hit('flood', at / 100)
  }
  assert.equal(hitters.size, 256)
  const [first] = hitters.top(10_000)
  assert.equal(first?.key, 'flood')
  near(first?.rate, 10_000, 0.05)
  for (const { key } of hitters.top(10_000)) assert.ok(key.length <= 128)
  collect()
  const grown = process.memoryUsage().heapUsed - before
  assert.ok(grown < 1024 * 1024, `the heap grew by ${grown} bytes`)
})
