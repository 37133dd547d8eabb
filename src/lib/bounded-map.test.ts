import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { BoundedMap } from './bounded-map.ts'

const map = () => new BoundedMap<string>(10, (key, value) => key.length + value.length)

describe('BoundedMap', () => {
  test('evicts the oldest entries, and setting an entry again makes it the newest', () => {
    const bounded = map()
    bounded.set('a', '1234')
    bounded.set('b', '1234')
    bounded.set('a', '123')
    bounded.set('c', '12')
    assert.deepEqual(
      [bounded.get('a'), bounded.get('b'), bounded.get('c')],
      ['123', undefined, '12'],
    )
    assert.deepEqual([bounded.size, bounded.bytes], [2, 7])
  })

  test('does not hold an entry that is larger than the bound', () => {
    const bounded = map()
    bounded.set('a', '12345678901')
    assert.deepEqual([bounded.size, bounded.bytes], [0, 0])
  })

  test('frees the bytes of a deleted entry', () => {
    const bounded = map()
    bounded.set('a', '1')
    bounded.delete('a')
    bounded.delete('a')
    assert.deepEqual([bounded.get('a'), bounded.bytes], [undefined, 0])
  })
})
