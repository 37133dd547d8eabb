import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { StoredEvent } from '../storage/storage.ts'
import { EVERY_CLUSTER, isCopiedLate, TopSources } from './top-sources.ts'

interface Written {
  readonly cluster?: string
  readonly namespace?: string
  readonly controller?: string
  readonly component?: string
  readonly reason?: string
}

/** Has fresh strings, like an event from etcd. */
function written(of: Written): Pick<StoredEvent, 'key' | 'fields'> {
  const { cluster = 'local', namespace = 'shop', reason = 'Started' } = of
  const { controller = '', component = '' } = of
  return JSON.parse(
    JSON.stringify({
      key: { cluster, namespace, name: 'web.1' },
      fields: { reportingController: controller, sourceComponent: component, reason },
    }),
  )
}

test('ranks a flooding controller among 200 first within five seconds, in its cluster only', () => {
  const clock = { ms: 0, now: () => clock.ms }
  const sources = new TopSources(clock)
  const tick = (): void => {
    for (let at = 0; at < 20; at++) {
      const controller = `controller-${(clock.ms / 10 + at) % 200}`
      sources.changed(written({ controller, namespace: `ns-${at}` }), clock.ms)
    }
    clock.ms += 100
  }
  while (clock.ms < 60_000) tick()
  while (clock.ms < 65_000) {
    for (let at = 0; at < 10; at++) {
      const flood = { component: 'loop', namespace: 'bad', reason: 'BackOff' }
      sources.changed(written(flood), clock.ms)
    }
    tick()
  }
  const [first, second] = sources.top('controller', 'local')
  assert.equal(first?.value, 'loop')
  assert.ok((first?.rate ?? 0) > 10 && (second?.rate ?? 0) < 2, JSON.stringify([first, second]))
  assert.equal(sources.top('namespace', 'local')[0]?.value, 'bad')
  assert.deepEqual(
    sources.top('reason', 'local').map(({ value }) => value),
    ['Started', 'BackOff'],
  )
  assert.deepEqual(sources.top('controller', 'other'), [])
  assert.deepEqual(sources.top('controller', EVERY_CLUSTER), sources.top('controller', 'local'))
})

test('separates the rates of clusters and sums them over all', () => {
  const clock = { now: () => 5_000 }
  const sources = new TopSources(clock)
  sources.changed(written({ cluster: 'a', controller: 'kubelet' }), 5_000)
  sources.changed(written({ cluster: 'b', controller: 'kubelet' }), 5_000)
  sources.changed(written({ cluster: 'b', controller: 'scheduler' }), 5_000)
  sources.wrote('alice', 'a')
  const values = (dimension: 'controller' | 'user', cluster: string) =>
    sources.top(dimension, cluster).map(({ value }) => value)
  assert.deepEqual(values('controller', 'a'), ['kubelet'])
  assert.deepEqual(values('controller', 'b'), ['kubelet', 'scheduler'])
  assert.deepEqual([values('user', 'a'), values('user', 'b')], [['alice'], []])
  const [first, second] = sources.top('controller', EVERY_CLUSTER)
  assert.equal(first?.rate, 2 * (second?.rate ?? 0))
  assert.deepEqual(values('user', EVERY_CLUSTER), ['alice'])
})

test('does not show events without a controller as a controller without a name', () => {
  const sources = new TopSources({ now: () => 0 })
  sources.changed(written({}), 0)
  assert.deepEqual(sources.top('controller', 'local'), [])
})

test('bounds the clusters, and drops those that stopped writing', () => {
  const clock = { ms: 0, now: () => clock.ms }
  const sources = new TopSources(clock)
  const write = (cluster: string) => sources.changed(written({ cluster }), clock.ms)
  for (let at = 0; at < 1_000; at++) write(`cluster-${at}`)
  const has = (cluster: string) => sources.top('namespace', cluster).length === 1
  assert.deepEqual([has('cluster-0'), has('cluster-63'), has('cluster-64')], [true, true, false])
  const rateOf = (cluster: string) => sources.top('namespace', cluster)[0]?.rate ?? 0
  const every = rateOf(EVERY_CLUSTER) / rateOf('cluster-0')
  assert.ok(Math.abs(every - 1_000) < 1e-6, String(every))
  clock.ms = 30 * 60_000
  write('cluster-64')
  assert.deepEqual([has('cluster-0'), has('cluster-64')], [false, true])
})

test('counts a change in about a microsecond', (t) => {
  const sources = new TopSources()
  const batch = 500
  const runs: number[] = []
  for (let run = 0; run < 200; run++) {
    const events = Array.from({ length: batch }, (_, at) =>
      written({ namespace: `ns-${at % 100}`, controller: `controller-${at % 200}` }),
    )
    const begunAt = performance.now()
    for (const event of events) sources.changed(event, begunAt)
    runs.push(((performance.now() - begunAt) * 1000) / batch)
  }
  const median = runs.sort((one, other) => one - other)[runs.length / 2] ?? Number.NaN
  t.diagnostic(`${median.toFixed(2)} µs for a change`)
  // The figure is well below 1; a busy machine that runs other tests may take longer.
  assert.ok(median < 5, `${median} µs`)
})

test('gives a cluster beyond the first 64 its own rates once there is space', () => {
  const clock = { ms: 0, now: () => clock.ms }
  const sources = new TopSources(clock)
  for (let at = 0; at < 64; at++) sources.changed(written({ cluster: `c-${at}` }), clock.ms)
  const late = () => sources.changed(written({ cluster: 'late' }), clock.ms)
  late()
  assert.deepEqual(sources.top('reason', 'late'), [])
  // The first ones have stopped. Only the late one writes, again and again.
  for (; clock.ms < 10 * 60_000; clock.ms += 1_000) late()
  assert.equal(sources.top('reason', 'late')[0]?.value, 'Started')
})

test('what a mirror copies more than a minute late does not happen now', () => {
  const writtenAtMs = Date.UTC(2026, 10, 17)
  const copied = (lastSeenMs: number) =>
    isCopiedLate({ fields: { lastSeenMs } as StoredEvent['fields'], writtenAtMs })
  assert.equal(copied(writtenAtMs - 3_600_000), true)
  assert.equal(copied(writtenAtMs - 59_000), false)
  assert.equal(copied(writtenAtMs + 5_000), false)
  // Without a time it may have happened now.
  assert.equal(copied(0), false)
})
