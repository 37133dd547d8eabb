import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { BoundedMap } from './bounded-map.ts'

const map = () => new BoundedMap<string>(10, (key, value) => key.length + value.length)

describe('BoundedMap', () => {
  test('evicts the oldest entries, and setting an entry again makes it the newest', () => {
    const bounded = map()
    bounded.set('g', 'a', '1234')
    bounded.set('g', 'b', '1234')
    bounded.set('g', 'a', '123')
    bounded.set('g', 'c', '12')
    const values = ['a', 'b', 'c'].map((key) => bounded.get('g', key))
    assert.deepEqual(values, ['123', undefined, '12'])
    assert.deepEqual([bounded.size, bounded.bytes, bounded.evicted], [2, 7, 1])
  })

  test('evicts from the largest group', () => {
    const bounded = map()
    bounded.set('small', 'a', '1')
    for (const key of ['a', 'b', 'c', 'd', 'e', 'f']) bounded.set('large', key, '1')
    assert.equal(bounded.get('small', 'a'), '1')
    const left = ['a', 'b', 'c', 'd', 'e', 'f'].filter((key) => bounded.get('large', key))
    assert.deepEqual(left, ['c', 'd', 'e', 'f'])
    assert.deepEqual([bounded.size, bounded.bytes], [5, 10])
  })

  test('does not hold an entry that is larger than the bound', () => {
    const bounded = map()
    bounded.set('g', 'a', '12345678901')
    assert.deepEqual([bounded.size, bounded.bytes], [0, 0])
  })

  test('frees the bytes of a deleted entry', () => {
    const bounded = map()
    bounded.set('g', 'a', '1')
    bounded.delete('g', 'a')
    bounded.delete('g', 'a')
    bounded.delete('h', 'a')
    assert.deepEqual([bounded.get('g', 'a'), bounded.bytes, bounded.size], [undefined, 0, 0])
    assert.equal(bounded.evicted, 0)
  })
})
