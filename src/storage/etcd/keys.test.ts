import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  clusterOfMirrorKey,
  controlKey,
  controlKind,
  controlName,
  controlRange,
  EventKeys,
  mirrorKey,
  mirrorRange,
  outsideRanges,
} from './keys.ts'

const keys = new EventKeys('/tidings')
const a = { cluster: 'local', namespace: 'ns', name: 'a' }
const text = ({ key, rangeEnd }: { key: Buffer; rangeEnd: Buffer }) => [
  key.toString(),
  rangeEnd.toString(),
]

describe('keys', () => {
  test('a key is <prefix>/events/<cluster>/<namespace>/<name>, and is parsed back', () => {
    assert.equal(keys.format(a), '/tidings/events/local/ns/a')
    assert.deepEqual(keys.parse(Buffer.from('/tidings/events/local/ns/a')), a)
    assert.deepEqual(new EventKeys('').parse(Buffer.from('/events/local/ns/ä')), {
      cluster: 'local',
      namespace: 'ns',
      name: 'ä',
    })
  })

  test('names that cannot be part of a key are refused', () => {
    for (const name of ['', 'a/b']) {
      assert.throws(() => keys.format({ cluster: 'local', namespace: 'ns', name }), RangeError)
      assert.throws(() => keys.format({ cluster: 'local', namespace: name, name: 'a' }), RangeError)
      assert.throws(() => keys.format({ cluster: name, namespace: 'ns', name: 'a' }), RangeError)
      assert.throws(() => keys.range({ cluster: name, namespace: undefined }), RangeError)
      assert.throws(() => keys.range({ cluster: 'local', namespace: name }), RangeError)
    }
  })

  test('parse returns undefined for keys of another form', () => {
    for (const other of ['x', '/x', 'x/', 'x/y', 'x/y/', 'x//z', '/y/z', 'w/x/y/z', '']) {
      assert.equal(keys.parse(Buffer.from(`/tidings/events/${other}`)), undefined, other)
    }
  })

  test('range covers all events, one cluster, one namespace, or the rest after a key', () => {
    assert.deepEqual(text(keys.range({ cluster: undefined, namespace: undefined })), [
      '/tidings/events/',
      '/tidings/events0',
    ])
    assert.deepEqual(text(keys.range({ cluster: 'local', namespace: undefined })), [
      '/tidings/events/local/',
      '/tidings/events/local0',
    ])
    assert.deepEqual(text(keys.range({ cluster: 'local', namespace: 'ns' })), [
      '/tidings/events/local/ns/',
      '/tidings/events/local/ns0',
    ])
    assert.deepEqual(text(keys.range({ cluster: 'local', namespace: 'ns' }, a)), [
      '/tidings/events/local/ns/a\0',
      '/tidings/events/local/ns0',
    ])
  })

  test('range after a key before the scope is the whole scope', () => {
    const [first] = text(
      keys.range(
        { cluster: 'local', namespace: 'ns' },
        { cluster: 'local', namespace: 'a', name: 'z' },
      ),
    )
    assert.equal(first, '/tidings/events/local/ns/')
  })

  test('outsideRanges covers all keys except events and control keys', () => {
    assert.equal(controlKey('/tidings', 'sweeper'), '/tidings/control/sweeper')
    const inside = ['/tidings/events/local/ns/a', '/tidings/control/sweeper']
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
    const control = controlRange('/tidings')
    const names = ['ages', 'mirror-leaders/a', 'mirrors/a', 'sweeper', 'zz', '\u{10ffff}']
    for (const name of names) assert.ok(isIn(`/tidings/control/${name}`)(control), name)
    for (const key of ['/tidings/control', ...outside]) assert.ok(!isIn(key)(control), key)
  })

  test('control keys of later versions are a name, or a folder and a name', () => {
    const nameOf = (name: string) =>
      controlName('/tidings', Buffer.from(`/tidings/control/${name}`))
    for (const name of ['sweeper', 'audit-state', 'mirrors/prod-eu', 'shards/eu.example.org']) {
      assert.equal(nameOf(name), name)
    }
    for (const name of ['', 'Pods', 'pods/', '/a', 'pods/default/web-0', 'a b', 'x/\u0000']) {
      assert.equal(nameOf(name), undefined, name)
    }
  })

  test('control keys are known by their name, those of mirrors by their folder', () => {
    for (const name of ['sweeper', 'compaction', 'ages', 'account']) {
      assert.equal(controlKind(name), name)
      assert.equal(controlKind(`${name}/a`), undefined)
    }
    assert.equal(controlKind('mirrors/a'), 'mirrors')
    assert.equal(controlKind('mirror-leaders/a'), 'mirror-leaders')
    for (const name of ['mirrors', 'mirror-leaders', 'shards/a', 'constructor']) {
      assert.equal(controlKind(name), undefined)
    }
  })

  test('the records of mirrors are in one range, and their keys name the cluster', () => {
    const key = Buffer.from(mirrorKey('/tidings', 'prod-eu'))
    const { key: first, rangeEnd } = mirrorRange('/tidings')
    assert.ok(Buffer.compare(first, key) < 0 && Buffer.compare(key, rangeEnd) < 0)
    assert.equal(clusterOfMirrorKey('/tidings', key), 'prod-eu')
  })
})
