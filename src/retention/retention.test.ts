import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EtcdClient } from '../etcd/client.ts'
import { silentLog } from '../lib/log/log.ts'
import type { EventStorage } from '../storage/storage.ts'
import { Totals } from './account/totals.ts'
import { RetentionPolicy } from './policy.ts'
import { Retention } from './retention.ts'

test('retention: sends no requests when nothing expires or is compacted', async () => {
  const untouchable = new Proxy({}, { get: (_, name) => assert.fail(`${String(name)} was used`) })
  const retention = new Retention({
    client: untouchable as EtcdClient,
    storage: untouchable as EventStorage,
    deletes: untouchable as EventStorage,
    prefix: '/registry',
    replica: 'a',
    policy: RetentionPolicy.uniform('never'),
    compactionIntervalMs: 0,
    log: silentLog,
  })
  const ending = new AbortController()
  const running = retention.run(ending.signal)
  // Other policies of the same kind do not change that.
  retention.replacePolicy(RetentionPolicy.uniform('never'))
  await new Promise((resolve) => setImmediate(resolve))
  ending.abort()
  await running
  assert.deepEqual(retention.status, {
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
  })
})
