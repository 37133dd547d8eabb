import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { BoundedMap } from './bounded-map.ts'

const GROUP_BYTES = 400
const ENTRY_BYTES = 100

/** Has space for this many entries in so many groups. */
const map = (entries: number, groups = 1) =>
  new BoundedMap<string>(groups * GROUP_BYTES + (entries + 0.9) * ENTRY_BYTES, (_key, value) =>
    value === 'huge' ? 1_000_000 : ENTRY_BYTES,
  )

describe('BoundedMap', () => {
  test('evicts the oldest entries, and setting an entry again makes it the newest', () => {
    const bounded = map(2)
    bounded.set('g', 'a', '1')
    bounded.set('g', 'b', '1')
    bounded.set('g', 'a', '2')
    bounded.set('g', 'c', '1')
    const values = ['a', 'b', 'c'].map((key) => bounded.get('g', key))
    assert.deepEqual(values, ['2', undefined, '1'])
    const bytes = GROUP_BYTES + 2 * ENTRY_BYTES
    assert.deepEqual([bounded.size, bounded.bytes, bounded.evicted], [2, bytes, 1])
  })

  test('evicts from the largest group', () => {
    const bounded = map(5, 2)
    bounded.set('small', 'a', '1')
    for (const key of ['a', 'b', 'c', 'd', 'e', 'f']) bounded.set('large', key, '1')
    assert.equal(bounded.get('small', 'a'), '1')
    const left = ['a', 'b', 'c', 'd', 'e', 'f'].filter((key) => bounded.get('large', key))
    assert.deepEqual(left, ['c', 'd', 'e', 'f'])
    assert.deepEqual([bounded.size, bounded.evicted], [5, 2])
  })

  test('counts what groups take', () => {
    const bounded = map(3, 3)
    for (const group of ['a', 'b', 'c', 'd', 'e', 'f']) bounded.set(group, 'key', '1')
    assert.equal(bounded.size, 3)
    assert.equal(bounded.bytes, 3 * (GROUP_BYTES + ENTRY_BYTES))
  })

  test('does not hold an entry that is larger than the bound', () => {
    const bounded = map(5)
    bounded.set('g', 'a', 'huge')
    assert.deepEqual([bounded.size, bounded.bytes], [0, 0])
  })

  test('frees the bytes of a deleted entry', () => {
    const bounded = map(5)
    bounded.set('g', 'a', '1')
    bounded.delete('g', 'a')
    bounded.delete('g', 'a')
    bounded.delete('h', 'a')
    assert.deepEqual([bounded.get('g', 'a'), bounded.bytes, bounded.size], [undefined, 0, 0])
    assert.equal(bounded.evicted, 0)
  })
})
