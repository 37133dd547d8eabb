import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ReviewCache } from './review-cache.ts'

function cacheOf(ttlMs: number, entriesMax = 10) {
  const time = { ms: 0 }
  const sent: string[] = []
  const cache = new ReviewCache<string>({
    ttlMs: () => ttlMs,
    isRefusal: (result) => result.includes('no'),
    entriesMax,
    clock: { now: () => time.ms },
  })
  const resultOf = (review: string): Promise<string> =>
    cache.resultOf(review, async () => {
      sent.push(review)
      return `result of ${review}`
    })
  return { cache, resultOf, sent, time }
}

describe('ReviewCache', () => {
  test('a result is cached for its TTL and no longer', async () => {
    const { resultOf, sent, time } = cacheOf(100)
    assert.equal(await resultOf('a'), 'result of a')
    time.ms = 99
    assert.equal(await resultOf('a'), 'result of a')
    assert.equal(sent.length, 1)
    time.ms = 100
    await resultOf('a')
    assert.equal(sent.length, 2)
  })

  test('a TTL of 0 caches nothing', async () => {
    const { resultOf, sent } = cacheOf(0)
    await resultOf('a')
    await resultOf('a')
    assert.equal(sent.length, 2)
  })

  test('concurrent calls share one request, also when it fails', async () => {
    const { cache } = cacheOf(100)
    let count = 0
    const { promise, reject } = Promise.withResolvers<string>()
    const all = Array.from({ length: 100 }, () =>
      cache.resultOf('a', () => {
        count++
        return promise
      }),
    )
    reject(new Error('down'))
    const outcomes = await Promise.allSettled(all)
    assert.ok(outcomes.every(({ status }) => status === 'rejected'))
    assert.equal(count, 1)
    assert.equal(await cache.resultOf('a', async () => 'up'), 'up')
  })

  test('the oldest entry is evicted when the cache is full', async () => {
    const { resultOf, sent } = cacheOf(100, 2)
    for (const review of ['a', 'b', 'c', 'b', 'a']) await resultOf(review)
    assert.deepEqual(sent, ['a', 'b', 'c', 'a'])
  })

  test('refusals do not evict other results', async () => {
    const { resultOf, sent } = cacheOf(100, 2)
    for (const review of ['a', 'no 1', 'no 2', 'no 3', 'a', 'no 3', 'no 1']) await resultOf(review)
    assert.deepEqual(sent, ['a', 'no 1', 'no 2', 'no 3', 'no 1'])
  })
})
