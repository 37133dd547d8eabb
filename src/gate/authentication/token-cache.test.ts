import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { TokenCache, tokenDigest } from './token-cache.ts'

describe('token cache', () => {
  let nowMs = 0
  const cacheOf = (entriesMax: number) =>
    new TokenCache<{ id: number }>({ entriesMax, clock: { now: () => nowMs } })

  test('remembers until the time is up', () => {
    const cache = cacheOf(10)
    cache.set('a', { id: 1 }, 100)
    nowMs += 99
    assert.deepEqual(cache.get('a'), { id: 1 })
    nowMs += 1
    assert.equal(cache.get('a'), undefined)
  })

  test('no time is no memory', () => {
    const cache = cacheOf(10)
    cache.set('a', { id: 1 }, 0)
    assert.equal(cache.get('a'), undefined)
  })

  test('the oldest makes room; to be set again makes young', () => {
    const cache = cacheOf(2)
    for (const key of ['a', 'b', 'a', 'c']) cache.set(key, { id: 1 }, 100)
    assert.deepEqual(
      ['a', 'b', 'c'].map((key) => cache.get(key) !== undefined),
      [true, false, true],
    )
  })

  test('names of strangers are names, and forgotten is forgotten', () => {
    const cache = cacheOf(2)
    assert.equal(cache.get('__proto__'), undefined)
    cache.set('a', { id: 1 }, 100)
    cache.clear()
    assert.equal(cache.get('a'), undefined)
  })

  test('a digest says nothing of the token, but tells it from all others', () => {
    assert.equal(tokenDigest('a'), 'ypeBEsobvcr6wjGzmiPcTaeG7/gUfE5yuYB3ha/uSLs=')
    assert.notEqual(tokenDigest('b'), tokenDigest('a'))
  })
})
