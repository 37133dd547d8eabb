import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mistakesIn, readExpression, seriesOf } from './promql.ts'

const known = seriesOf([
  { name: 'requests_total', type: 'counter', labels: ['code'], help: '' },
  { name: 'seconds', type: 'histogram', labels: ['verb'], help: '' },
])

test('an expression of known series and labels has no mistakes', () => {
  for (const expression of [
    'up{job="a"} == 0',
    'sum by (job, code) (rate(requests_total{code=~"5..",job="x y{z}"}[5m])) / 2e3 > 0.1',
    'histogram_quantile(0.99, sum by (le) (rate(seconds_bucket{verb="GET"}[$__rate_interval])))',
    'rate(seconds_sum[5m]) / on (verb) group_left rate(seconds_count[5m]) or 0 * up',
    'time() - requests_total',
  ]) {
    assert.deepEqual(mistakesIn(expression, known), [], expression)
  }
})

test('unknown series, labels of selectors and labels of groups are found', () => {
  for (const [expression, mistake] of [
    ['rate(request_total[5m])', 'there is no series request_total'],
    ['seconds > 1', 'there is no series seconds'],
    ['seconds_sum{le="1"}', 'seconds_sum has no label le'],
    ['up{code="200"}', 'up has no label code'],
    ['sum by (verb) (requests_total)', 'no series of the expression has the label verb'],
    ['summ(up)', 'there is no series summ'],
  ] as const) {
    assert.deepEqual(mistakesIn(expression, known), [mistake], expression)
  }
})

test('the matchers of every selector are read', () => {
  const { selectors, grouping } = readExpression('max by (code) (a{x="1",y!~"2"}) > on (z) b')
  assert.deepEqual(selectors, [
    { series: 'a', labels: ['x', 'y'], matchers: '{x="1",y!~"2"}' },
    { series: 'b', labels: [], matchers: '' },
  ])
  assert.deepEqual(grouping, ['code', 'z'])
})
