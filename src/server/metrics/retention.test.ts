import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Registry } from '@prometheus-io/client'
import { Totals } from '../../retention/account/totals.ts'
import type { Retention } from '../../retention/retention.ts'
import type { RetentionStatus } from '../../retention/retention-options.ts'
import { watchRetention } from './retention.ts'

test('a replica that does not sweep has no sweep lag series, not a lag of 0', async () => {
  const idle: RetentionStatus = {
    isLeader: false,
    isWorkingWithoutLeader: false,
    termCount: 0,
    sweptCount: 0,
    deleted: new Totals(),
    sweepLagMs: undefined,
    waitingCount: 0,
    compactionCount: 0,
    compactedRevision: 0,
    clockSkewMs: undefined,
    unprovedMs: 0,
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
  retention.status = { ...idle, isWorkingWithoutLeader: true, sweepLagMs: 2_500 }
  assert.deepEqual(await shown(), ['1', '2.5'])
  retention.status = idle
  assert.deepEqual(await shown(), ['0', undefined])
})
