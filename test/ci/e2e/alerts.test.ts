/** The rules of monitoring/alerts.yaml, without a server: monitoring.test.ts has one. */
import { join } from 'node:path'
import { test } from 'node:test'
import { promtool } from '../../support/prometheus.ts'

const rules = join(import.meta.dirname, '../../../monitoring/alerts.yaml')

test('monitoring/alerts.yaml is accepted by promtool', async () => {
  await promtool(['check', 'rules', '--lint-fatal', rules])
})

test('every alert of monitoring/alerts.yaml fires when it should and only then', async () => {
  const cases = ['alerts.cases.yaml', 'alerts-of-hours.cases.yaml']
  await promtool(['test', 'rules', ...cases.map((name) => join(import.meta.dirname, name))])
})
