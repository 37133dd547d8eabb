/**
 * Checks that every alert of monitoring/alerts.yaml has the texts that an operator needs. That the rules
 * fire when they should is tested by test/ci/e2e/alerts.test.ts.
 */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { parse } from 'yaml'
import { anchorsOf } from './markdown.ts'

interface Rule {
  readonly alert: string
  readonly labels?: { readonly severity?: string }
  readonly annotations?: { readonly summary?: string; readonly runbook?: string }
}

interface Case {
  readonly promql_expr_test: readonly {
    readonly expr: string
    readonly exp_samples?: readonly object[]
  }[]
}

const docs = join(import.meta.dirname, '../docs')
const cases = join(import.meta.dirname, '../test/ci/e2e/alerts.cases.yaml')
const rules: readonly Rule[] = parse(
  readFileSync(join(docs, '../monitoring/alerts.yaml'), 'utf8'),
).groups.flatMap((group: { readonly rules: readonly Rule[] }) => group.rules)
const checks = (parse(readFileSync(cases, 'utf8')).tests as readonly Case[]).flatMap(
  (each) => each.promql_expr_test,
)

for (const { alert, labels, annotations } of rules) {
  test(`alert ${alert} has a severity, a summary, a section to read, and cases`, () => {
    assert.match(labels?.severity ?? '', /^(critical|warning|info)$/)
    assert.match(annotations?.summary ?? '', /\w/)
    const [page = '', anchor] = (annotations?.runbook ?? '').split('#')
    const path = join(docs, page)
    assert.ok(page !== '' && existsSync(path), `runbook: there is no docs/${page}`)
    assert.ok(
      anchorsOf(readFileSync(path, 'utf8')).includes(anchor ?? ''),
      `docs/${page} has no section ${anchor}`,
    )
    const own = checks.filter(({ expr }) => expr.includes(`alertname="${alert}"`))
    const fires = own.map(({ exp_samples }) => (exp_samples ?? []).length > 0)
    assert.ok(fires.includes(true), `${cases} has no case in which it fires`)
    assert.ok(fires.includes(false), `${cases} has no case in which it does not`)
  })
}

test('alerts are in monitoring/alerts.yaml alone', () => {
  assert.doesNotMatch(readFileSync(join(docs, 'how-to/monitor.md'), 'utf8'), /^\s*- alert:/m)
})
