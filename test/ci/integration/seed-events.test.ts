import assert from 'node:assert/strict'
import { test } from 'node:test'
import { aLane } from '../../../src/lib/run-queue.fixture.ts'
import { allEvents } from '../../../src/storage/event-scope.ts'
import { startEtcd } from '../../support/etcd.ts'
import { seedEvents } from '../../support/seed-events.ts'
import { prefix, Replica } from '../../support/storage.ts'

test('seeded events are events as the server stores them', async () => {
  await using etcd = await startEtcd()
  await using replica = new Replica(etcd)
  const untilMs = Date.parse('2026-03-01T12:00:00Z')
  const spanMs = 24 * 3_600_000

  const clusters = ['local', 'east']
  await seedEvents(replica.client, { count: 1_000, prefix, untilMs, spanMs, clusters })

  const { signal } = new AbortController()
  const { items: events } = await replica.storage.list(allEvents, {
    lane: aLane(),
    limit: 2_000,
    signal,
  })
  assert.equal(events.length, 1_000)
  assert.deepEqual(replica.corrupt, [])
  assert.deepEqual([...new Set(events.map(({ key }) => key.cluster))], ['east', 'local'])
  const times = events.map(({ fields }) => fields.lastSeenMs)
  assert.ok(times.every((ms) => ms >= untilMs - spanMs && ms <= untilMs))
  const warnings = events.filter(({ fields }) => fields.type === 'Warning').length
  const series = events.filter(({ fields }) => fields.occurrences > 1).length
  assert.ok(warnings > 100 && warnings < 200, `${warnings} Warnings`)
  assert.ok(series > 50 && series < 150, `${series} series`)
})
