import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventRow, objectPath, readObjectPath, repeatsOf } from './event-row.ts'
import { humanDuration } from './times.ts'

test('takes the times of a series from its first and last occurrence', () => {
  const row = eventRow({
    metadata: { name: 'a', namespace: 'shop', annotations: { 'tidings.dev/cluster': 'eu' } },
    eventTime: '2026-11-16T03:00:00.000000Z',
    series: { count: 12, lastObservedTime: '2026-11-16T03:10:00.500000Z' },
    reportingComponent: 'kubelet',
    type: 'Warning',
  })
  assert.equal(row.key, '/shop/a')
  assert.equal(row.count, 12)
  assert.equal(row.lastMs - row.firstMs, 600_500)
  assert.equal(row.isWarning, true)
})

test('takes the times of an old-style event from its deprecated fields', () => {
  const row = eventRow({
    firstTimestamp: '2026-11-16T03:00:00Z',
    lastTimestamp: '2026-11-16T03:05:00Z',
    count: 3,
    eventTime: null,
    source: { component: 'scheduler', host: 'node-1' },
  })
  assert.deepEqual([row.controller, row.instance, row.count], ['scheduler', 'node-1', 3])
  assert.equal(row.lastMs - row.firstMs, 300_000)
})

test('shows an empty event', () => {
  const row = eventRow({})
  assert.deepEqual([row.count, row.lastMs, row.key], [1, 0, '//'])
})

test('round-trips an object path', () => {
  for (const path of ['Pod/shop/web-0', 'Node/node-1']) {
    const name = readObjectPath(path)
    assert.ok(name)
    assert.equal(objectPath(name), path)
  }
  assert.equal(readObjectPath('0b9d3a51-uid'), undefined)
})

test('says over how long an event repeated, unless it was less than a second', () => {
  const repeats = (count: number, lastMs: number): string =>
    repeatsOf({ count, firstMs: 0, lastMs })
  assert.deepEqual(
    [repeats(1, 0), repeats(12, 0), repeats(12, 999), repeats(12, 1_000), repeats(42, 1_080_000)],
    ['', '12', '12', '12 over 1s', '42 over 18m'],
  )
})

test('formats durations like kubectl', () => {
  const seconds = (value: number): string => humanDuration(value * 1_000)
  assert.deepEqual(
    [-1, 0, 119, 120, 150, 600, 10_799, 10_800, 18_300, 172_799, 172_800, 190_800].map(seconds),
    ['0s', '0s', '119s', '2m', '2m30s', '10m', '179m', '3h', '5h5m', '47h', '2d', '2d5h'],
  )
})

test('sets the cluster only in lists of all clusters', () => {
  const event = {
    metadata: { name: 'e', annotations: { 'tidings.dev/cluster': 'prod-eu' } },
  }
  assert.equal(eventRow(event, { cluster: '*' }).cluster, 'prod-eu')
  assert.equal(eventRow(event, { cluster: 'prod-us' }).cluster, '')
  assert.equal(eventRow(event, { cluster: '' }).key, '//e')
})
