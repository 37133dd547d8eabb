import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { controlKey, controlRange, EventKeys, outsideRanges } from './keys.ts'

const keys = new EventKeys('/tidings')
const a = { namespace: 'ns', name: 'a' }
const text = ({ key, rangeEnd }: { key: Buffer; rangeEnd: Buffer }) => [
  key.toString(),
  rangeEnd.toString(),
]

describe('keys', () => {
  test('a key is <prefix>/events/<namespace>/<name>, and is parsed back', () => {
    assert.equal(keys.format(a), '/tidings/events/ns/a')
    assert.deepEqual(keys.parse(Buffer.from('/tidings/events/ns/a')), a)
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

  test('parse returns undefined for keys of another form', () => {
    for (const other of ['x', '/x', 'x/', 'x/y/z', '']) {
      assert.equal(keys.parse(Buffer.from(`/tidings/events/${other}`)), undefined, other)
    }
  })

  test('range covers all events, one namespace, or the rest after a key', () => {
    assert.deepEqual(text(keys.range({ namespace: undefined })), [
      '/tidings/events/',
      '/tidings/events0',
    ])
    assert.deepEqual(text(keys.range({ namespace: 'ns' })), [
      '/tidings/events/ns/',
      '/tidings/events/ns0',
    ])
    assert.deepEqual(text(keys.range({ namespace: 'ns' }, a)), [
      '/tidings/events/ns/a\0',
      '/tidings/events/ns0',
    ])
  })

  test('range after a key before the scope is the whole scope', () => {
    const [first] = text(keys.range({ namespace: 'ns' }, { namespace: 'a', name: 'z' }))
    assert.equal(first, '/tidings/events/ns/')
  })

  test('outsideRanges covers all keys except events and control keys', () => {
    assert.equal(controlKey('/tidings', 'sweeper'), '/tidings/control/sweeper')
    const inside = ['/tidings/events/ns/a', '/tidings/control/sweeper']
    const outside = [
      '/tidings/',
      '/tidings/a',
      '/tidings/control',
      '/tidings/dogs/a',
      '/tidings/zoo',
    ]
    const beyond = ['/tidings', '/tidings0', '/tiding', '/registry/events/ns/a']
    const isIn = (key: string) => (range: { key: Buffer; rangeEnd: Buffer }) =>
      Buffer.compare(range.key, Buffer.from(key)) <= 0 &&
      Buffer.compare(Buffer.from(key), range.rangeEnd) < 0
    const ranges = outsideRanges('/tidings')
    for (const key of [...inside, ...beyond]) assert.ok(!ranges.some(isIn(key)), key)
    for (const key of outside) assert.ok(ranges.some(isIn(key)), key)
    assert.ok(isIn('/tidings/control/sweeper')(controlRange('/tidings')))
  })
})
