import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ReviewCache } from './review-cache.ts'

function cacheOf(ttlMs: number, entriesMax = 10) {
  const time = { ms: 0 }
  const asked: string[] = []
  const cache = new ReviewCache<string>({
    ttlMs: () => ttlMs,
    isRefusal: (answer) => answer.includes('no'),
    entriesMax,
    clock: { now: () => time.ms },
  })
  const ask = (question: string): Promise<string> =>
    cache.answerTo(question, async () => {
      asked.push(question)
      return `answer to ${question}`
    })
  return { cache, ask, asked, time }
}

describe('ReviewCache', () => {
  test('an answer is good for its time and no longer', async () => {
    const { ask, asked, time } = cacheOf(100)
    assert.equal(await ask('a'), 'answer to a')
    time.ms = 99
    assert.equal(await ask('a'), 'answer to a')
    assert.equal(asked.length, 1)
    time.ms = 100
    await ask('a')
    assert.equal(asked.length, 2)
  })

  test('without a time, every question is asked', async () => {
    const { ask, asked } = cacheOf(0)
    await ask('a')
    await ask('a')
    assert.equal(asked.length, 2)
  })

  test('who asks while it is being asked waits for the same answer, a failure too', async () => {
    const { cache } = cacheOf(100)
    let count = 0
    const { promise, reject } = Promise.withResolvers<string>()
    const all = Array.from({ length: 100 }, () =>
      cache.answerTo('a', () => {
        count++
        return promise
      }),
    )
    reject(new Error('down'))
    const outcomes = await Promise.allSettled(all)
    assert.ok(outcomes.every(({ status }) => status === 'rejected'))
    assert.equal(count, 1)
    assert.equal(await cache.answerTo('a', async () => 'up'), 'up')
  })

  test('no more answers are kept than it says; the oldest goes', async () => {
    const { ask, asked } = cacheOf(100, 2)
    for (const question of ['a', 'b', 'c', 'b', 'a']) await ask(question)
    assert.deepEqual(asked, ['a', 'b', 'c', 'a'])
  })

  test('answers that let nobody in are kept by themselves', async () => {
    const { ask, asked } = cacheOf(100, 2)
    for (const question of ['a', 'no 1', 'no 2', 'no 3', 'a', 'no 3', 'no 1']) await ask(question)
    assert.deepEqual(asked, ['a', 'no 1', 'no 2', 'no 3', 'no 1'])
  })
})
