import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { digestOf, ExpiringCache } from './expiring-cache.ts'

describe('ExpiringCache', () => {
  let nowMs = 0
  const cacheOf = (entriesMax: number) =>
    new ExpiringCache<{ id: number }>({ entriesMax, clock: { now: () => nowMs } })

  test('returns an entry until its time is over', () => {
    const cache = cacheOf(10)
    cache.set('a', { id: 1 }, 100)
    nowMs += 99
    assert.deepEqual(cache.get('a'), { id: 1 })
    nowMs += 1
    assert.equal(cache.get('a'), undefined)
  })

  test('does not cache an entry for no time', () => {
    const cache = cacheOf(10)
    cache.set('a', { id: 1 }, 0)
    assert.equal(cache.get('a'), undefined)
  })

  test('evicts the oldest entry, and setting an entry again makes it the newest', () => {
    const cache = cacheOf(2)
    for (const key of ['a', 'b', 'a', 'c']) cache.set(key, { id: 1 }, 100)
    assert.deepEqual(
      ['a', 'b', 'c'].map((key) => cache.get(key) !== undefined),
      [true, false, true],
    )
  })

  test('deletes expired entries when another one is set', () => {
    const cache = cacheOf(10)
    for (const key of ['a', 'b', 'c']) cache.set(key, { id: 1 }, 100)
    nowMs += 50
    cache.set('d', { id: 1 }, 100)
    assert.equal(cache.size, 4)
    nowMs += 50
    cache.set('e', { id: 1 }, 100)
    assert.equal(cache.size, 2)
  })

  test('has no inherited entries, and none after it is cleared', () => {
    const cache = cacheOf(2)
    assert.equal(cache.get('__proto__'), undefined)
    cache.set('a', { id: 1 }, 100)
    cache.clear()
    assert.equal(cache.get('a'), undefined)
  })
})

test('digestOf returns different digests for different secrets', () => {
  assert.equal(digestOf('a'), 'ypeBEsobvcr6wjGzmiPcTaeG7/gUfE5yuYB3ha/uSLs=')
  assert.notEqual(digestOf('b'), digestOf('a'))
})
