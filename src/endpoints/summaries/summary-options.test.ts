import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { readTarget } from '../../gate/target.ts'
import {
  type OptionsTarget,
  readHistogramQuery,
  readSummaryQuery,
  type SummaryQuery,
} from './summary-options.ts'

const base = '/apis/tidings.dev/v1alpha1'

function targetOf(path: string, query: string): OptionsTarget {
  const target = readTarget({ method: 'GET', path, query: new URLSearchParams(query) }, 'local')
  assert.ok(target.isResource)
  if (target.fields instanceof Error) throw target.fields
  const { place } = target
  assert.ok(place)
  return { ...target, place }
}

function summaryOf(query: string, path = `${base}/eventsummaries`): SummaryQuery {
  return readSummaryQuery(targetOf(path, query))
}

function label(text: string): string {
  return new URLSearchParams({ fieldSelector: text }).toString()
}

describe('options of a summary', () => {
  test('are parameters or field labels', () => {
    const expected = { groupBy: ['reason', 'controller'], order: 'count', rateOf: undefined }
    for (const query of [
      'groupBy=reason,controller',
      'groupBy=controller,reason,reason',
      'groupBy=reason+controller',
      label('groupBy=reason+controller'),
      label('type=Warning,groupBy==reason+controller,order=count'),
      `groupBy=reason+controller&${label('groupBy=reason controller')}`,
    ]) {
      assert.deepEqual(summaryOf(query), expected, query)
    }
  })

  test('default to incidents, the newest first', () => {
    assert.deepEqual(summaryOf(''), {
      groupBy: ['namespace', 'workload', 'reason', 'pattern'],
      order: 'newest',
      rateOf: undefined,
    })
    assert.deepEqual(summaryOf('', `${base}/namespaces/shop/eventsummaries`), {
      groupBy: ['workload', 'reason', 'pattern'],
      order: 'newest',
      rateOf: undefined,
    })
    assert.equal(summaryOf('order=count').order, 'count')
  })

  test('show the rate of one field, and only the rate for users', () => {
    assert.deepEqual(summaryOf('groupBy=reason'), {
      groupBy: ['reason'],
      order: 'count',
      rateOf: 'reason',
    })
    assert.equal(summaryOf('groupBy=reason&order=rate').order, 'rate')
    assert.deepEqual(summaryOf('groupBy=user'), {
      groupBy: ['user'],
      order: 'rate',
      rateOf: 'user',
    })
    assert.equal(summaryOf('groupBy=type').rateOf, undefined)
  })

  test('add the cluster to the objects of all clusters', () => {
    const path = `/clusters/*${base}/eventsummaries`
    assert.deepEqual(summaryOf('groupBy=object', path).groupBy, ['cluster', 'object'])
    assert.deepEqual(summaryOf('groupBy=object').groupBy, ['object'])
  })

  for (const [query, message] of [
    ['groupBy=', /unknown field ""/],
    [
      'groupBy=colour',
      /unknown field "colour": write one or more of cluster, namespace, workload, type/,
    ],
    ['groupBy=user,reason', /cannot be combined/],
    ['groupBy=type&order=rate', /order=rate is possible/],
    ['order=size', /order: "size": write count or newest or rate/],
    ['groupBy=type&fieldSelector=groupBy%3Dreason', /with different values/],
    [label('groupBy!=reason'), /groupBy is an option: write groupBy=<value>/],
    [label('groupBy=reason,groupBy=type'), /groupBy is in the field selector twice/],
    [label('buckets=3'), /field label not supported: buckets/],
  ] as const) {
    test(`with ${query} are refused`, () => {
      assert.throws(() => summaryOf(query), { reason: 'BadRequest', message })
    })
  }

  test('are refused in a namespace where they would show what happens in others', () => {
    const path = `${base}/namespaces/shop/eventsummaries`
    for (const query of ['groupBy=user', 'order=rate', 'groupBy=reason&order=rate']) {
      assert.throws(() => summaryOf(query, path), { reason: 'BadRequest' }, query)
    }
  })
})

describe('options of a histogram', () => {
  const nowMs = Date.UTC(2026, 10, 16, 12)
  const histogramOf = (query: string, window: { sinceMs?: number; untilMs?: number } = {}) =>
    readHistogramQuery(targetOf(`${base}/eventhistograms`, query), {
      sinceMs: window.sinceMs,
      untilMs: window.untilMs,
      nowMs,
    })

  test('default to the last hour by type, minute by minute', () => {
    const { by, bounds } = histogramOf('')
    assert.equal(by, 'type')
    assert.equal(bounds.length, 61)
    assert.equal(bounds[0], nowMs - 3_600_000)
    assert.equal(bounds[1], nowMs - 3_540_000)
    assert.equal(bounds[60], nowMs)
  })

  test('divide any window into whole milliseconds', () => {
    const { bounds } = histogramOf('buckets=3', { sinceMs: 1000, untilMs: 2000 })
    assert.deepEqual(bounds, [1000, 1333, 1666, 2000])
    assert.deepEqual(histogramOf(label('buckets=1,by=reason'), { sinceMs: nowMs - 5 }), {
      by: 'reason',
      bounds: [nowMs - 5, nowMs],
      namesMax: undefined,
    })
    assert.equal(histogramOf('buckets=500').bounds.length, 501)
  })

  test('have a limit of names, which types and reasons need not have', () => {
    const namesMax = (query: string) => histogramOf(query).namesMax
    assert.equal(namesMax('by=type'), undefined)
    assert.equal(namesMax('by=object'), 50)
    assert.equal(namesMax('by=type&limit=1'), 1)
    assert.equal(namesMax(label('by=controller,limit=7')), 7)
    // kubectl sends it by itself.
    assert.equal(namesMax('by=reason&limit=500'), undefined)
    assert.equal(namesMax('by=namespace&limit=500'), 50)
  })

  for (const query of [
    'buckets=0',
    'buckets=501',
    'buckets=-1',
    'buckets=1e2',
    'buckets=',
    'by=x',
    'by=user',
    label('limit=51'),
    label('limit=0'),
  ]) {
    test(`with ${query} are refused`, () => {
      assert.throws(() => histogramOf(query), { reason: 'BadRequest' })
    })
  }

  test('need a non-empty window', () => {
    assert.throws(() => histogramOf('', { sinceMs: nowMs }), { reason: 'BadRequest' })
    assert.throws(() => histogramOf('', { sinceMs: nowMs, untilMs: nowMs - 1 }), {
      reason: 'BadRequest',
    })
    assert.throws(() => histogramOf('buckets=10', { sinceMs: nowMs - 9 }), { reason: 'BadRequest' })
  })
})
