/**
 * Checks that every rule of monitoring/alerts.yaml asks for what exists, and that every alert has the
 * texts that an operator needs. That the rules fire when they should is tested by
 * test/ci/e2e/alerts.test.ts.
 */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { parse } from 'yaml'
import { anchorsOf } from './markdown.ts'
import { metricsByName } from './monitoring/catalogue.ts'
import { mistakesIn, readExpression, seriesOf } from './monitoring/promql.ts'

interface Rule {
  readonly expr: string
  readonly record?: string
  readonly alert?: string
  readonly labels?: { readonly severity?: string; readonly long?: string }
  readonly annotations?: {
    readonly summary?: string
    readonly description?: string
    readonly runbook_url?: string
  }
}

interface Case {
  readonly promql_expr_test: readonly {
    readonly expr: string
    readonly exp_samples?: readonly object[]
  }[]
}

const root = join(import.meta.dirname, '..')
const RUNBOOK = 'docs/runbook/alerts.md'
const CASES = ['test/ci/e2e/alerts.cases.yaml', 'test/ci/e2e/alerts-of-hours.cases.yaml']
/** A metric of ours, not one of etcd itself. */
const METRIC = /^(apiserver|etcd_request|kubernetes|nodejs|process|tidings)_\w+$/
const EXPRESSION =
  /^(?=.*[a-z]_[a-z])(?:sum|max|min|count|topk|rate|histogram_quantile)(?: by \(.*\))? ?\(.*\)$|^(?:tidings|apiserver)_\w+\{.*\}$/
const PARTS = ['Meaning', 'Users notice', 'Check', 'Fix']
const runbook = read(RUNBOOK)
const rules: readonly Rule[] = parse(read('monitoring/alerts.yaml')).groups.flatMap(
  (group: { readonly rules: readonly Rule[] }) => group.rules,
)
const alerts = rules.filter(({ alert }) => alert !== undefined)
const checks = CASES.flatMap((path) => parse(read(path)).tests as readonly Case[]).flatMap(
  (each) => each.promql_expr_test,
)
const metrics = metricsByName()
const series = new Map([
  ...seriesOf(metrics.values()),
  ...rules.flatMap(({ record }) => (record === undefined ? [] : [[record, ['job']] as const])),
])

for (const { record, alert, labels, expr } of rules) {
  const name = [record ?? alert, labels?.long].join(' ').trim()
  test(`rule ${name} uses only metrics and labels that exist, and those of one job`, () => {
    assert.deepEqual(mistakesIn(expr, series), [])
    // The chart, and an operator, replace exactly this text by the job.
    const others = readExpression(expr).selectors.filter(
      ({ matchers }) => !matchers.includes('job="tidings"'),
    )
    assert.deepEqual(others, [])
  })
}

for (const { alert = '', labels, annotations, expr } of alerts) {
  test(`alert ${alert} ${labels?.long ?? ''} has a severity, texts, a section and cases`, () => {
    assert.match(labels?.severity ?? '', /^(critical|warning|info)$/)
    assert.match(annotations?.summary ?? '', /^\S.*\.$/)
    assert.match(annotations?.description ?? '', /^\S.*\.$/)
    assert.equal(annotations?.runbook_url, `${RUNBOOK}#${alert.toLowerCase()}`)
    const window = labels?.long === undefined ? '' : `long="${labels.long}"`
    const own = checks
      .filter(({ expr: asked }) => asked.includes(`alertname="${alert}"`))
      .filter(({ expr: asked }) => asked.includes(window))
    const fires = own.map(({ exp_samples }) => (exp_samples ?? []).length > 0)
    assert.ok(fires.includes(true), 'it has no case in which it fires')
    assert.ok(fires.includes(false), 'it has no case in which it does not')
    assert.deepEqual(unknownLabels(expr, annotations), [])
  })
}

test(`${RUNBOOK} has one section with the same four parts for each alert, in their order`, () => {
  const names = [...new Set(alerts.map(({ alert = '' }) => alert))]
  const anchors = anchorsOf(runbook).slice(1)
  assert.deepEqual(
    anchors,
    names.map((name) => name.toLowerCase()),
  )
  const sections = runbook.split(/^## /m).slice(1)
  for (const section of sections) {
    const parts = [...section.matchAll(/^- \*\*([\w ]+):\*\* /gm)].map(([, part]) => part)
    assert.deepEqual(parts, PARTS, section)
  }
})

test('metrics, alerts and expressions that pages name exist', () => {
  const pages = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
  const wrong = pages
    .filter((path) => path.endsWith('.md'))
    .flatMap((page) =>
      codeIn(read(join('docs', page)))
        .flatMap(mistakesInCode)
        .map((what) => `${page}: ${what}`),
    )
  assert.deepEqual(wrong, [])
  assert.ok(codeIn(runbook).filter((code) => EXPRESSION.test(code)).length > 5)
})

test('alerts are in monitoring/alerts.yaml alone', () => {
  assert.doesNotMatch(read('docs/how-to/monitor.md'), /^\s*- alert:/m)
})

function codeIn(page: string): readonly string[] {
  return [...page.replaceAll(/\n\s+/g, ' ').matchAll(/`([^`]+)`/g)].map(([, code = '']) => code)
}

function mistakesInCode(code: string): readonly string[] {
  if (EXPRESSION.test(code)) return mistakesIn(code, series)
  const isMissing =
    (METRIC.test(code) && !metrics.has(code)) ||
    (/^Tidings[A-Z]\w+$/.test(code) && !alerts.some(({ alert }) => alert === code))
  return isMissing ? [`there is no ${code}`] : []
}

/** The labels in the texts that the alert cannot have: others than those by which it aggregates. */
function unknownLabels(expr: string, annotations: Rule['annotations']): readonly string[] {
  const used = [...JSON.stringify(annotations).matchAll(/\$labels\.(\w+)/g)].map(
    ([, label = '']) => label,
  )
  const { selectors, grouping } = readExpression(expr)
  const aggregated = /\bby \(/.test(expr) ? grouping : undefined
  const all = selectors.flatMap(({ series: name }) => series.get(name) ?? [])
  return used.filter((label) => !(aggregated ?? all).includes(label))
}

function read(path: string): string {
  return readFileSync(join(root, path), 'utf8')
}
