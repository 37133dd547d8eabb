import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { EtcdClient } from '../../../src/etcd/client.ts'
import { startEtcd } from '../../support/etcd.ts'
import { etcdctl } from '../../support/full-etcd.ts'
import { seedEvents } from '../../support/seed-events.ts'
import { Tidings } from '../../support/tidings.ts'

const COUNT = 89_000
const WATCHED_MS = 90_000
const UNREADY_MS_MAX = 30_000

describe('a mass delete', () => {
  test('a revision that deletes 89,000 events leaves a replica unready for seconds', async (t) => {
    await using etcd = await startEtcd()
    const client = new EtcdClient({ endpoints: etcd.endpoints, defaultTimeoutMs: 10_000 })
    await seedEvents(client, { count: COUNT })
    client.close()
    await using server = await Tidings.start([
      `--etcd-servers=${etcd.endpoints[0]}`,
      '--event-ttl=500h',
    ])
    await server.until('/readyz', ({ status }) => status === 200, 60_000)
    await sleep(3000)

    await etcdctl(etcd, 'del --prefix /tidings/events/')
    const deletedAt = performance.now()
    let unreadyMs = 0
    let lastAt = deletedAt
    while (performance.now() - deletedAt < WATCHED_MS) {
      const { status } = await server.ask('/readyz')
      const now = performance.now()
      if (status !== 200) unreadyMs += now - lastAt
      lastAt = now
      await sleep(100)
    }
    t.diagnostic(`not ready for ${Math.round(unreadyMs)} ms`)
    assert.ok(unreadyMs < UNREADY_MS_MAX, `not ready for ${unreadyMs} ms`)
    const { body } = await server.ask('/metrics')
    assert.match(body, /^apiserver_resource_objects\{[^}]*\} 0$/m)
  })
})
