import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Registry } from '@prometheus-io/client'
import { watchRetention } from './engine-metrics.ts'
import type { Retention, RetentionStatus } from './retention/retention.ts'

test('retention metrics: a replica that does not sweep shows no lag at all, not one of 0', async () => {
  const idle: RetentionStatus = {
    isLeader: false,
    isStandingIn: false,
    termCount: 0,
    sweptCount: 0,
    sweepLagMs: undefined,
    waitingCount: 0,
    compactionCount: 0,
    compactedRevision: 0,
  }
  const retention = { status: idle }
  const registry = new Registry()
  watchRetention(retention as Retention, registry)
  const shown = async () => {
    const text = await registry.metrics()
    const value = (name: string) => new RegExp(`^${name} (.*)$`, 'm').exec(text)?.[1]
    return [value('tidings_sweeper_role'), value('tidings_sweep_lag_seconds')]
  }
  assert.deepEqual(await shown(), ['0', undefined])
  retention.status = { ...idle, isLeader: true, sweepLagMs: 0 }
  assert.deepEqual(await shown(), ['1', '0'])
  retention.status = { ...idle, isStandingIn: true, sweepLagMs: 2_500 }
  assert.deepEqual(await shown(), ['1', '2.5'])
  retention.status = idle
  assert.deepEqual(await shown(), ['0', undefined])
})
