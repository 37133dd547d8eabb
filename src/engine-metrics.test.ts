import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Registry } from '@prometheus-io/client'
import type { AnswerForm } from './codec/answer-form.ts'
import { KeptEntries } from './codec/kept-entries.ts'
import { watchKept, watchRetention } from './engine-metrics.ts'
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
  retention.status = { ...idle, isStandingIn: true, sweepLagMs: 2_500 }
  assert.deepEqual(await shown(), ['1', '2.5'])
  retention.status = idle
  assert.deepEqual(await shown(), ['0', undefined])
})

test('metrics of kept lists: how much is kept, and how often it was of use', async () => {
  const registry = new Registry()
  const kept = new KeptEntries()
  watchKept(kept, registry)
  const form = { contentType: 'a' } as AnswerForm
  const run = { isPast: false }
  for (let list = 0; list < 2; list++) kept.add(form, run, Buffer.from('0123456789'))
  for (let list = 0; list < 3; list++) kept.find(form, run)
  const shown = (await registry.metrics()).split('\n').filter((line) => /^[^#]/.test(line))
  assert.deepEqual(shown, ['tidings_list_kept_bytes 10', 'tidings_list_kept_finds_total 3'])
})
