import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { TokenCache, tokenDigest } from './token-cache.ts'

describe('token cache', () => {
  let nowMs = 0
  const cacheOf = (entriesMax: number) =>
    new TokenCache<{ id: number }>({ entriesMax, clock: { now: () => nowMs } })

  test('an entry is cached until its time is over', () => {
    const cache = cacheOf(10)
    cache.set('a', { id: 1 }, 100)
    nowMs += 99
    assert.deepEqual(cache.get('a'), { id: 1 })
    nowMs += 1
    assert.equal(cache.get('a'), undefined)
  })

  test('an entry with no time is not cached', () => {
    const cache = cacheOf(10)
    cache.set('a', { id: 1 }, 0)
    assert.equal(cache.get('a'), undefined)
  })

  test('the oldest entry is evicted, and setting an entry again makes it the newest', () => {
    const cache = cacheOf(2)
    for (const key of ['a', 'b', 'a', 'c']) cache.set(key, { id: 1 }, 100)
    assert.deepEqual(
      ['a', 'b', 'c'].map((key) => cache.get(key) !== undefined),
      [true, false, true],
    )
  })

  test('entries whose time is over are deleted by the next one', () => {
    const cache = cacheOf(10)
    for (const key of ['a', 'b', 'c']) cache.set(key, { id: 1 }, 100)
    nowMs += 50
    cache.set('d', { id: 1 }, 100)
    assert.equal(cache.size, 4)
    nowMs += 50
    cache.set('e', { id: 1 }, 100)
    assert.equal(cache.size, 2)
  })

  test('an inherited property is not an entry, and a cleared cache is empty', () => {
    const cache = cacheOf(2)
    assert.equal(cache.get('__proto__'), undefined)
    cache.set('a', { id: 1 }, 100)
    cache.clear()
    assert.equal(cache.get('a'), undefined)
  })

  test('different tokens have different digests', () => {
    assert.equal(tokenDigest('a'), 'ypeBEsobvcr6wjGzmiPcTaeG7/gUfE5yuYB3ha/uSLs=')
    assert.notEqual(tokenDigest('b'), tokenDigest('a'))
  })
})
