import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { StatusReason } from '../../api/status.ts'
import { targetOf } from '../../gate/target.fixture.ts'
import { readTarget } from '../../gate/target.ts'
import { Distribution, type RequestSeries, RequestTallies } from './request-tallies.ts'

const EVENTS = '/apis/events.k8s.io/v1'

const rootOf = (path: string): string => (path.startsWith('/livez') ? '/livez' : '')

function tallied(...requests: readonly string[]): readonly RequestSeries[] {
  const tallies = new RequestTallies(['events.k8s.io/v1/events'], rootOf)
  for (const line of requests) {
    const [method = '', target = ''] = line.split(' ')
    const [path = '', query] = target.split('?')
    const attributes = readTarget({ method, path, query: new URLSearchParams(query) }, 'local')
    tallies.ended(attributes, { status: 200, bytes: 10 }, { ms: 1, isLong: false })
  }
  return [...tallies.series()]
}

const labels = (line: string): string => Object.values(tallied(line)[0]?.labels ?? {}).join('|')

describe('RequestTallies', () => {
  test('labels are those of a Kubernetes API server', () => {
    const cases: readonly [string, string][] = [
      [`GET ${EVENTS}/events`, 'LIST|events.k8s.io|v1|events||cluster'],
      [`GET ${EVENTS}/namespaces/a/events`, 'LIST|events.k8s.io|v1|events||namespace'],
      [`GET ${EVENTS}/namespaces/a/events?watch=1`, 'WATCH|events.k8s.io|v1|events||namespace'],
      [`POST ${EVENTS}/namespaces/a/events`, 'POST|events.k8s.io|v1|events||resource'],
      [`PUT ${EVENTS}/namespaces/a/events/b`, 'PUT|events.k8s.io|v1|events||resource'],
      [
        `DELETE ${EVENTS}/namespaces/a/events`,
        'DELETECOLLECTION|events.k8s.io|v1|events||namespace',
      ],
    ]
    for (const [line, expected] of cases) {
      const [series] = tallied(line)
      assert.ok(series)
      const { verb, group, version, resource, subresource, scope } = series.labels
      const found = [verb, group, version, resource, subresource, scope].join('|')
      assert.equal(found, expected, line)
    }
  })

  test('clients cannot create series with unknown values', () => {
    const made = tallied(
      ...Array.from({ length: 50 }, (_, at) => `GET /apis/group-${at}/v1/things-${at}`),
      ...Array.from({ length: 50 }, (_, at) => `VERB${at} /path-${at}`),
      ...Array.from({ length: 50 }, (_, at) => `GET ${EVENTS}/namespaces/n${at}/events/x/sub${at}`),
      ...Array.from({ length: 50 }, (_, at) => `GET /livez/check-${at}`),
      'GET /apis/__proto__/v1/constructor',
    )
    assert.equal(made.length, 4)
    assert.match(labels('GET /livez/ping'), /\/livez/)
  })

  test('a response is counted with its code, duration and size', () => {
    const tallies = new RequestTallies([], rootOf)
    const attributes = targetOf('/livez')
    tallies.ended(attributes, { status: 200, bytes: 500 }, { ms: 3, isLong: false })
    tallies.ended(attributes, { status: 429, bytes: 5000 }, { ms: 700, isLong: false })
    tallies.ended(attributes, { status: 0, bytes: 0 }, { ms: 9, isLong: false })
    const [series] = tallies.series()
    assert.deepEqual(
      [...(series?.codes ?? [])],
      [
        [200, 1],
        [429, 1],
      ],
    )
    assert.deepEqual(series?.sizes.counts.slice(0, 2), [1, 1])
    assert.equal(series?.durations.counts[0], 1)
    assert.equal(series?.aborted, 1)
  })

  test('counts only failed writes of events, by verb and reason', () => {
    const tallies = new RequestTallies(['events.k8s.io/v1/events'], rootOf)
    const failed = (method: string, path: string, reason: StatusReason): void => {
      const query = new URLSearchParams()
      tallies.failed(readTarget({ method, path, query }, 'local'), reason)
    }
    failed('POST', `${EVENTS}/namespaces/a/events`, 'Invalid')
    failed('POST', '/api/v1/namespaces/a/events', 'Invalid')
    failed('POST', `${EVENTS}/namespaces/a/events`, 'TooManyRequests')
    failed('DELETE', `${EVENTS}/namespaces/a/events`, 'Timeout')
    failed('GET', `${EVENTS}/namespaces/a/events`, 'Forbidden')
    failed('POST', '/apis/x/v1/namespaces/a/things', 'NotFound')
    failed('POST', '/nope', 'NotFound')
    const counted = [...tallies.refusedWrites()].flatMap(({ verb, reasons }) =>
      [...reasons].map(([reason, count]) => `${verb} ${reason} ${count}`),
    )
    assert.deepEqual(counted, [
      'POST Invalid 2',
      'POST TooManyRequests 1',
      'DELETECOLLECTION Timeout 1',
    ])
    failed('POST', '/clusters/east/api/v1/namespaces/a/events', 'ServiceUnavailable')
    assert.deepEqual(
      ['local', 'east', 'west'].map((name) => tallies.refusedIn(name)),
      [1, 1, 0],
    )
  })

  test('counts refused writes for a limited number of clusters', () => {
    const tallies = new RequestTallies([], rootOf)
    for (let n = 0; n < 300; n++) {
      const path = `/clusters/c${n}/api/v1/namespaces/a/events`
      const target = readTarget({ method: 'POST', path, query: new URLSearchParams() }, 'local')
      tallies.failed(target, 'TooManyRequests')
    }
    assert.deepEqual([tallies.refusedIn('c255'), tallies.refusedIn('c256')], [1, undefined])
  })

  test('a long-running response is counted while it lasts', () => {
    const tallies = new RequestTallies([], rootOf)
    const attributes = targetOf('/x')
    tallies.begun(attributes)
    const [series] = tallies.series()
    assert.equal(series?.longRunning, 1)
    tallies.ended(attributes, { status: 200, bytes: 0 }, { ms: 1, isLong: true })
    assert.equal(series?.longRunning, 0)
  })
})

test('the list of a watch is measured in the buckets of Kubernetes 1.37', () => {
  const tallies = new RequestTallies(['events.k8s.io/v1/events'], rootOf)
  const watch = targetOf(`GET ${EVENTS}/events?watch=true`)
  tallies.begun(watch)
  assert.equal([...tallies.series()][0]?.watchLists, undefined)
  tallies.listed(watch, 1100)
  tallies.listed(watch, 70_000)
  const { bounds, counts, sum } = [...tallies.series()][0]?.watchLists ?? new Distribution([])
  assert.deepEqual(bounds, [
    ...[0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60],
    ...[90, 120, 180, 300],
  ])
  assert.deepEqual([counts[7], counts[21], sum], [1, 1, 71.1])
})

test('Distribution: a value equal to a bound is in the bucket below it', () => {
  const found = new Distribution([1, 2])
  for (const value of [0, 1, 1.5, 2, 3]) found.add(value)
  assert.deepEqual([found.counts, found.sum], [[2, 2, 1], 7.5])
})
