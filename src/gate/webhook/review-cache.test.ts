import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ReviewCache } from './review-cache.ts'

interface Result {
  readonly text: string
}

function cacheOf(ttlMs: number, entriesMax = 10) {
  const time = { ms: 0 }
  const sent: string[] = []
  const cache = new ReviewCache<Result>({
    ttlMs: () => ttlMs,
    isRefusal: ({ text }) => text.includes('no'),
    entriesMax,
    clock: { now: () => time.ms },
  })
  const resultOf = async (review: string): Promise<string> => {
    const { text } = await cache.resultOf(review, async () => {
      sent.push(review)
      return { text: `result of ${review}` }
    })
    return text
  }
  return { cache, resultOf, sent, time }
}

describe('ReviewCache', () => {
  test('caches a result for its TTL and no longer', async () => {
    const { resultOf, sent, time } = cacheOf(100)
    assert.equal(await resultOf('a'), 'result of a')
    time.ms = 99
    assert.equal(await resultOf('a'), 'result of a')
    assert.equal(sent.length, 1)
    time.ms = 100
    await resultOf('a')
    assert.equal(sent.length, 2)
  })

  test('caches nothing with a TTL of 0', async () => {
    const { resultOf, sent } = cacheOf(0)
    await resultOf('a')
    await resultOf('a')
    assert.equal(sent.length, 2)
  })

  test('shares one request among concurrent calls, even if it fails', async () => {
    const { cache } = cacheOf(100)
    let count = 0
    const { promise, reject } = Promise.withResolvers<Result>()
    const all = Array.from({ length: 100 }, async () =>
      cache.resultOf('a', () => {
        count++
        return promise
      }),
    )
    reject(new Error('down'))
    const outcomes = await Promise.allSettled(all)
    assert.ok(outcomes.every(({ status }) => status === 'rejected'))
    assert.equal(count, 1)
    assert.deepEqual(await cache.resultOf('a', async () => ({ text: 'up' })), { text: 'up' })
  })

  test('evicts the oldest entry when it is full', async () => {
    const { resultOf, sent } = cacheOf(100, 2)
    for (const review of ['a', 'b', 'c', 'b', 'a']) await resultOf(review)
    assert.deepEqual(sent, ['a', 'b', 'c', 'a'])
  })

  test('does not evict permissions for refusals', async () => {
    const { resultOf, sent } = cacheOf(100, 2)
    for (const review of ['a', 'no 1', 'no 2', 'no 3', 'a', 'no 3', 'no 1']) await resultOf(review)
    assert.deepEqual(sent, ['a', 'no 1', 'no 2', 'no 3', 'no 1'])
  })
})
