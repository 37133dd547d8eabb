import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeAccount, encodeAccount, OTHER, Totals } from './totals.ts'

test('totals: counts by kind and name, and adds up', () => {
  const one = new Totals()
  assert.ok(one.isEmpty)
  one.add('expired', 'a')
  one.add('expired', 'a', 2)
  one.add('evicted', 'a', 5)
  const other = new Totals()
  other.add('expired', 'b')
  other.add('expired', 'a')
  const sum = one.plus(other)
  assert.deepEqual(Object.fromEntries(sum.of('expired')), { a: 4, b: 1 })
  assert.deepEqual([sum.get('evicted', 'a'), sum.get('evicted', 'b')], [5, 0])
  assert.deepEqual([one.get('expired', 'a'), one.isEmpty], [3, false])
})

test('totals: bounds the number of names without losing counts', () => {
  const totals = new Totals()
  for (let at = 0; at < 5_000; at++) totals.add('namespaces', `prod/n${at}`)
  totals.add('namespaces', 'prod/n0')
  const counts = totals.of('namespaces')
  assert.ok(counts.size <= 1_001)
  assert.deepEqual(
    [totals.get('namespaces', 'prod/n0'), totals.get('namespaces', OTHER)],
    [2, 4_000],
  )
  const sum = [...counts.values()].reduce((all, count) => all + count)
  assert.equal(sum, 5_001)
})

test('totals: drops unused names without losing counts', () => {
  const totals = new Totals()
  for (let at = 0; at < 999; at++) totals.add('namespaces', `prod/n${at}`, 2)
  totals.dropUnused('namespaces', () => false)
  assert.deepEqual(
    [totals.get('namespaces', 'prod/n7'), totals.hasOthers('namespaces')],
    [2, false],
  )
  totals.add('namespaces', 'prod/last')
  totals.dropUnused('namespaces', (name) => name.endsWith('7'))
  totals.add('namespaces', 'prod/new')
  assert.deepEqual(
    ['prod/n7', 'prod/n8', 'prod/new', OTHER].map((name) => totals.get('namespaces', name)),
    [2, 0, 1, 899 * 2 + 1 + 2 - 2],
  )
  assert.ok(totals.hasOthers('namespaces'))
})

test('account: is decoded as it was encoded, within 64 KiB', () => {
  const totals = new Totals()
  for (let at = 0; at < 2_000; at++) totals.add('namespaces', `cluster/namespace-${at}`, 123_456)
  totals.add('expired', 'default', 7)
  const value = encodeAccount({ replica: 'r', policy: 'p', totals })
  assert.ok(value.length < 64 * 1024, `${value.length}`)
  const entry = decodeAccount(value)
  assert.deepEqual([entry?.replica, entry?.policy], ['r', 'p'])
  assert.equal(entry?.totals.get('expired', 'default'), 7)
  assert.deepEqual(entry?.totals.of('namespaces'), totals.of('namespaces'))
})

test('account: ignores values that are not accounts and counts that are not numbers', () => {
  for (const text of ['', 'x', '[]', '7', 'null']) {
    assert.equal(decodeAccount(Buffer.from(text)), undefined, text)
  }
  const entry = decodeAccount(
    Buffer.from('{"expired":{"a":1,"b":"2","c":-1,"d":1.5,"__proto__":3},"evicted":7}'),
  )
  assert.deepEqual(entry?.totals.get('expired', 'a'), 1)
  assert.deepEqual(
    ['b', 'c', 'd'].map((name) => entry?.totals.get('expired', name)),
    [0, 0, 0],
  )
})
