import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { EventKeys } from './keys.ts'

const keys = new EventKeys('/registry')
const a = { namespace: 'ns', name: 'a' }
const text = ({ key, rangeEnd }: { key: Buffer; rangeEnd: Buffer }) => [
  key.toString(),
  rangeEnd.toString(),
]

describe('keys', () => {
  test('<prefix>/events/<namespace>/<name>, and back', () => {
    assert.equal(keys.format(a), '/registry/events/ns/a')
    assert.deepEqual(keys.parse(Buffer.from('/registry/events/ns/a')), a)
    assert.deepEqual(new EventKeys('').parse(Buffer.from('/events/ns/ä')), {
      namespace: 'ns',
      name: 'ä',
    })
  })

  test('names that cannot be part of a key are refused', () => {
    for (const name of ['', 'a/b']) {
      assert.throws(() => keys.format({ namespace: 'ns', name }), RangeError)
      assert.throws(() => keys.format({ namespace: name, name: 'a' }), RangeError)
      assert.throws(() => keys.range({ namespace: name }), RangeError)
    }
  })

  test('keys of another form are not ours', () => {
    for (const other of ['x', '/x', 'x/', 'x/y/z', '']) {
      assert.equal(keys.parse(Buffer.from(`/registry/events/${other}`)), undefined, other)
    }
  })

  test('range: all events, one namespace, and what is left after a key', () => {
    assert.deepEqual(text(keys.range({ namespace: undefined })), [
      '/registry/events/',
      '/registry/events0',
    ])
    assert.deepEqual(text(keys.range({ namespace: 'ns' })), [
      '/registry/events/ns/',
      '/registry/events/ns0',
    ])
    assert.deepEqual(text(keys.range({ namespace: 'ns' }, a)), [
      '/registry/events/ns/a\0',
      '/registry/events/ns0',
    ])
  })

  test('range: a key before the scope leaves all of it', () => {
    const [first] = text(keys.range({ namespace: 'ns' }, { namespace: 'a', name: 'z' }))
    assert.equal(first, '/registry/events/ns/')
  })
})
