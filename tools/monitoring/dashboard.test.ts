import assert from 'node:assert/strict'
import { test } from 'node:test'
import { metricsByName } from './catalogue.ts'
import { dashboard, expressionOf, ROWS } from './dashboard.ts'
import { readExpression, seriesOf } from './promql.ts'

interface Drawn {
  readonly id: number
  readonly title: string
  readonly type: string
  readonly gridPos: {
    readonly x: number
    readonly y: number
    readonly w: number
    readonly h: number
  }
}

const known = seriesOf(metricsByName().values())
const panels = ROWS.flatMap(({ panels: own }) => own)
const expressions = panels.flatMap(({ queries }) =>
  queries.map((query) => expressionOf(query, known)),
)

test('a panel with an unknown metric or label cannot be made', () => {
  const make = (expr: string) => () => expressionOf({ expr, legend: '' }, known)
  assert.throws(make('tidings_nonsense{S}'), /there is no series tidings_nonsense/)
  assert.throws(make('tidings_build_info{S,verb="GET"}'), /has no label verb/)
  assert.throws(make('sum by (verb) (tidings_build_info{S})'), /the label verb/)
  assert.match(make('up{S}')(), /^up\{job=~"\$job",instance=~"\$instance"\}$/)
})

test('every selector of every panel is limited to the chosen job and replicas', () => {
  for (const expression of expressions) {
    for (const { labels } of readExpression(expression).selectors) {
      assert.ok(labels.includes('job') && labels.includes('instance'), expression)
    }
  }
})

test('legends name only labels that the series have', () => {
  for (const { title, queries } of panels) {
    for (const { expr, legend } of queries) {
      const { selectors, grouping } = readExpression(expr)
      const labels =
        grouping.length > 0 ? grouping : selectors.flatMap(({ series }) => known.get(series) ?? [])
      const named = [...legend.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = '']) => label)
      assert.deepEqual(
        named.filter((label) => !labels.includes(label)),
        [],
        `${title}: ${legend}`,
      )
    }
  }
})

test('every metric of ours is in a panel', () => {
  const shown = new Set(
    expressions.flatMap((expression) =>
      readExpression(expression).selectors.map(({ series }) => series),
    ),
  )
  const isShown = (name: string): boolean =>
    [name, `${name}_bucket`, `${name}_sum`].some((series) => shown.has(series))
  const missing = [...metricsByName().keys()].filter(
    (name) => name.startsWith('tidings_') && !isShown(name),
  )
  assert.deepEqual(missing, [])
})

test('every panel has an id and a place of its own, a title and a description', () => {
  const drawn: readonly Drawn[] = JSON.parse(dashboard()).panels
  assert.equal(new Set(drawn.map(({ id }) => id)).size, drawn.length)
  const taken = new Set<string>()
  for (const {
    title,
    gridPos: { x, y, w, h },
  } of drawn) {
    for (let column = x; column < x + w; column++) {
      for (let line = y; line < y + h; line++) {
        assert.ok(!taken.has(`${column} ${line}`), `${title} overlaps another panel`)
        taken.add(`${column} ${line}`)
      }
    }
    assert.ok(x + w <= 24)
  }
  for (const { panels: own } of ROWS) {
    assert.equal(new Set(own.map(({ title }) => title)).size, own.length)
    for (const { title, description } of own) assert.match(description, /^\S.{10,}\.$/, title)
  }
})
