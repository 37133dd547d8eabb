import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hasRate, leadsTo, seriesName, sparklines, valueText, warningsText } from './sources.ts'

test('links a value to its events and an object to its story', () => {
  assert.deepEqual(leadsTo('controller', { controller: 'kubelet' }), {
    view: 'overview',
    controller: 'kubelet',
  })
  assert.equal(leadsTo('reason', { reason: 'A|B' })?.reason, 'A\\|B')
  assert.deepEqual(leadsTo('object', { object: 'Pod/shop/web-0', cluster: 'eu' }), {
    view: 'object',
    about: 'Pod/shop/web-0',
    cluster: 'eu',
  })
  for (const reason of ['', '_other', `${'x'.repeat(200)}… aGVsbG8`]) {
    assert.equal(leadsTo('reason', { reason }), undefined, reason)
  }
  assert.equal(leadsTo('user', { user: 'sam' }), undefined)
})

test('prefixes objects with their cluster when all clusters are shown', () => {
  assert.equal(seriesName('object', { object: 'Pod/shop/web-0' }), 'Pod/shop/web-0')
  assert.equal(seriesName('object', { object: 'Pod/a/b', cluster: 'eu' }), 'eu/Pod/a/b')
  assert.equal(seriesName('reason', { reason: 'Pulled' }), 'Pulled')
})

test('describes unnamed values in words', () => {
  assert.deepEqual(['', '_other', 'kubelet'].map(valueText), ['(none)', 'all others', 'kubelet'])
})

test('has rates only for all namespaces, and not for objects', () => {
  assert.equal(hasRate('reason', { namespace: '' }), true)
  assert.equal(hasRate('reason', { namespace: 'shop' }), false)
  assert.equal(hasRate('object', { namespace: '' }), false)
})

test('rounds the share of Warnings to neither 0 nor 100', () => {
  assert.deepEqual(
    [warningsText(0, 5), warningsText(1, 900), warningsText(899, 900), warningsText(5, 5)],
    ['no Warnings', '1 % Warnings', '99 % Warnings', 'Warnings only'],
  )
})

test('has a value for each bucket, and the peak', () => {
  const found = sparklines([
    { fromMs: 0, toMs: 10, counts: new Map([['a', 3]]) },
    { fromMs: 10, toMs: 20, counts: new Map([['b', 1]]) },
    { fromMs: 20, toMs: 30, counts: new Map([['a', 7]]) },
  ])
  assert.deepEqual(found.get('a'), { values: [3, 0, 7], peak: { fromMs: 20, count: 7 } })
  assert.deepEqual(found.get('b')?.values, [0, 1, 0])
  assert.equal(found.get('c'), undefined)
})

test('draws a steady rate as a level line when the first bucket is shorter', () => {
  const steady = [5, 10, 15].map((count, index) => ({
    fromMs: [0, 5, 15][index] ?? 0,
    toMs: [5, 15, 30][index] ?? 0,
    counts: new Map([['a', count]]),
  }))
  const { values, peak } = sparklines(steady).get('a') ?? {}
  assert.deepEqual(values, [10, 10, 10])
  assert.deepEqual(peak, { fromMs: 15, count: 15 })
})
