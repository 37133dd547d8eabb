/**
 * A value that is null is one that is missing: Helm removes the default. So do values of an older chart
 * (`--reuse-values`). The schema names what is missing, unless the templates do without it.
 */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { parse } from 'yaml'
import { chart, find, render } from '../../support/chart.ts'

/** Kubernetes has defaults for them, or needs none. */
const MAY_BE_NULL = [
  'updateStrategy.rollingUpdate.maxSurge',
  'updateStrategy.rollingUpdate.maxUnavailable',
  'updateStrategy.rollingUpdate',
  'etcd.trial.resources',
  'resources',
  'podDisruptionBudget.minAvailable',
  'monitoring.dashboard.labels',
  'podSecurityContext',
  'securityContext',
  'nodeSelector',
  'tolerations',
  'affinity',
  'topologySpreadConstraints',
  ...['liveness', 'readiness', 'startup'].flatMap((probe) =>
    ['periodSeconds', 'timeoutSeconds', 'failureThreshold'].map((key) => `probes.${probe}.${key}`),
  ),
]
/** One of the two budgets must be there: the templates say so. */
const CHECKED = ['podDisruptionBudget.maxUnavailable']

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
}

test('the schema requires every value that the templates need', async () => {
  const values = parse(await readFile(join(chart, 'values.yaml'), 'utf8'))
  const schema = JSON.parse(await readFile(join(chart, 'values.schema.json'), 'utf8'))
  assert.deepEqual(optional(values, schema, '').sort(), [...MAY_BE_NULL, ...CHECKED].sort())
})

test('the others can be null', async () => {
  const flags = MAY_BE_NULL.flatMap((path) => ['--set', `${path}=null`])
  for (const set of ['trial', 'production']) {
    const manifests = await render(set, flags)
    assert.deepEqual(find(manifests, 'Deployment')['spec'].strategy, { type: 'RollingUpdate' })
  }
})

/** Paths of values that may be missing. */
function optional(values: object, { properties = {}, required = [] }: Schema, path: string) {
  return Object.entries(values).flatMap(([key, value]): string[] => {
    const schema = properties[key]
    if (schema === undefined) return []
    const at = `${path}${key}`
    const own = required.includes(key) ? [] : [at]
    const isMap = typeof value === 'object' && value !== null
    return [...own, ...(isMap ? optional(value, schema, `${at}.`) : [])]
  })
}
