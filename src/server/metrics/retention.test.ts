import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Registry } from '@prometheus-io/client'
import { Totals } from '../../retention/account/totals.ts'
import { RetentionPolicy } from '../../retention/policy.ts'
import type { Retention, RetentionStatus } from '../../retention/retention.ts'
import { registerRetentionMetrics } from './retention.ts'

const idle: RetentionStatus = {
  isLeader: false,
  isWorkingWithoutLeader: false,
  termCount: 0,
  deleted: new Totals(),
  sweepLagMs: undefined,
  waitingCount: 0,
  compactionCount: 0,
  compactedRevision: 0,
  clockSkewMs: undefined,
  unprovedMs: 0,
}

test('a replica that does not sweep has no sweep lag series, not a lag of 0', async () => {
  const retention = { status: idle, policy: RetentionPolicy.uniform('never') }
  const registry = new Registry()
  registerRetentionMetrics(retention as Retention, registry)
  const shown = async () => {
    const text = await registry.metrics()
    const value = (name: string) => new RegExp(`^${name} (.*)$`, 'm').exec(text)?.[1]
    return [value('tidings_sweeper_role'), value('tidings_sweep_lag_seconds')]
  }
  assert.deepEqual(await shown(), ['0', undefined])
  retention.status = { ...idle, isLeader: true, sweepLagMs: 0 }
  assert.deepEqual(await shown(), ['1', '0'])
  retention.status = { ...idle, isWorkingWithoutLeader: true, sweepLagMs: 2_500 }
  assert.deepEqual(await shown(), ['1', '2.5'])
  retention.status = idle
  assert.deepEqual(await shown(), ['0', undefined])
})

test('rules and budgets of the policy in use have series before they delete anything', async () => {
  const policy = new RetentionPolicy({
    rules: [{ name: 'warnings', selector: { type: ['Warning'] }, lifetime: 1_000 }],
    lifetime: 'never',
    budgets: [
      {
        name: 'small',
        per: 'Namespace',
        cluster: undefined,
        namespace: undefined,
        events: 1,
        bytes: undefined,
      },
    ],
  })
  const retention = { status: { ...idle, deleted: new Totals() }, policy }
  const registry = new Registry()
  registerRetentionMetrics(retention as Retention, registry)
  const lines = async () =>
    (await registry.metrics()).split('\n').filter((line) => /^tidings_.*\{/.test(line))
  assert.deepEqual(await lines(), [
    'tidings_swept_events_total{rule="warnings"} 0',
    'tidings_swept_events_total{rule="default"} 0',
    'tidings_evicted_events_total{budget="small"} 0',
    `tidings_retention_policy_info{fingerprint="${policy.fingerprint}"} 1`,
  ])
  retention.status.deleted.add('evicted', 'small', 7)
  retention.status.deleted.add('expired', 'removed')
  retention.policy = RetentionPolicy.uniform(5)
  assert.deepEqual(await lines(), [
    'tidings_swept_events_total{rule="default"} 0',
    'tidings_swept_events_total{rule="removed"} 1',
    'tidings_evicted_events_total{budget="small"} 7',
    `tidings_retention_policy_info{fingerprint="${retention.policy.fingerprint}"} 1`,
  ])
})
