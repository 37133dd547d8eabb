import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Log, silentLog } from '../../lib/log/log.ts'
import type { StoredEvent } from '../../storage/storage.ts'
import type { RetentionBudget } from '../policy.ts'
import { EvictionLog } from './eviction-log.ts'

const unlimited = { cluster: undefined, namespace: undefined, events: 1, bytes: undefined }
const small: RetentionBudget = { name: 'small', per: 'Namespace', ...unlimited }
const whole: RetentionBudget = { name: 'whole', per: 'Cluster', ...unlimited }

function event(cluster: string, namespace: string, type = 'Normal') {
  const fields = { type } as StoredEvent['fields']
  return { key: { cluster, namespace, name: 'e' }, fields } satisfies Partial<StoredEvent>
}

function start() {
  const lines: unknown[] = []
  const log: Log = { ...silentLog, info: (msg, fields) => lines.push({ msg, ...fields }) }
  const clock = { at: 0, now: () => clock.at }
  const evictions = new EvictionLog(clock, log)
  const written = () => lines.splice(0)
  return { clock, evictions, written }
}

const msg = 'Events evicted for a budget'

test('eviction log: writes the first line immediately, then one a minute with all evictions', () => {
  const { clock, evictions, written } = start()
  evictions.write()
  assert.deepEqual(written(), [])
  evictions.count(event('c', 'n'), small)
  evictions.write()
  const where = { msg, budget: 'small', cluster: 'c' }
  assert.deepEqual(written(), [{ ...where, namespace: 'n', namespaces: 1, events: 1, warnings: 0 }])
  for (clock.at = 200; clock.at < 59_000; clock.at += 1_000) {
    evictions.count(event('c', 'n'), small)
    evictions.count(event('c', 'm', 'Warning'), small)
    evictions.count(event('c', 'm'), small)
    evictions.write()
  }
  assert.deepEqual(written(), [])
  clock.at = 60_000
  evictions.write()
  assert.deepEqual(written(), [
    { ...where, namespace: 'm', namespaces: 2, events: 177, warnings: 59 },
  ])
  clock.at = 300_000
  evictions.write()
  assert.deepEqual(written(), [])
})

test('eviction log: writes a line per budget and cluster, and all of them at the end', () => {
  const { evictions, written } = start()
  evictions.count(event('c', 'n'), whole)
  evictions.count(event('d', 'n'), whole)
  evictions.write()
  assert.deepEqual(written(), [
    { msg, budget: 'whole', cluster: 'c', namespace: 'n', namespaces: 1, events: 1, warnings: 0 },
    { msg, budget: 'whole', cluster: 'd', namespace: 'n', namespaces: 1, events: 1, warnings: 0 },
  ])
  evictions.count(event('d', 'n', 'Warning'), whole)
  evictions.write({ isEnd: true })
  assert.deepEqual(written(), [
    { msg, budget: 'whole', cluster: 'd', namespace: 'n', namespaces: 1, events: 1, warnings: 1 },
  ])
})
