import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { EtcdClient } from '../../../src/etcd/client.ts'
import { EtcdStorage } from '../../../src/storage/etcd/etcd-storage.ts'
import { startEtcd } from '../../support/etcd.ts'
import { eventually } from '../../support/eventually.ts'
import { Tidings } from '../../support/tidings.ts'

/** The value of a series at `/metrics`; undefined when there is none. */
async function metric(server: Tidings, series: string): Promise<number | undefined> {
  const { body } = await server.ask('/metrics')
  const line = body.split('\n').find((text) => text.startsWith(`${series} `))
  return line === undefined ? undefined : Number(line.slice(series.length + 1))
}

const PATIENCE_MS = 15_000
const OBJECTS = 'apiserver_resource_objects{group="events.k8s.io",resource="events"}'

describe('the engine of a running server', () => {
  test('the engine follows etcd, also through an outage, and sweeps expired events', async () => {
    await using etcd = await startEtcd()
    await using server = await Tidings.start([
      `--etcd-servers=${etcd.endpoints[0]}`,
      '--event-ttl=12s',
    ])
    await server.until('/readyz', ({ status }) => status === 200, 10_000)
    const client = new EtcdClient({ endpoints: etcd.endpoints, defaultTimeoutMs: 5000 })
    const storage = new EtcdStorage({ client, prefix: '/tidings', onCorrupt: () => {} })
    const create = (name: string): Promise<unknown> =>
      storage.create(
        { cluster: 'local', namespace: 'default', name },
        Buffer.from(JSON.stringify({ metadata: { name, namespace: 'default' } })),
      )
    try {
      await Promise.all(Array.from({ length: 50 }, (_, index) => create(`before-${index}`)))
      await eventually(
        '50 objects followed',
        async () => (await metric(server, OBJECTS)) === 50,
        PATIENCE_MS,
      )

      await etcd.member(0).kill()
      await server.until('/readyz', ({ status }) => status === 500, 5000)
      await etcd.member(0).start()
      await create('after')
      await eventually(
        'the follower caught up',
        async () => (await metric(server, OBJECTS)) === 51,
        PATIENCE_MS,
      )
      await server.until('/readyz', ({ status }) => status === 200, 5000)

      assert.equal(await metric(server, 'tidings_sweeper_role'), 1)
      await eventually(
        'all are swept',
        async () => (await metric(server, OBJECTS)) === 0,
        PATIENCE_MS,
      )
      assert.ok(((await metric(server, 'tidings_swept_events_total{rule="default"}')) ?? 0) >= 50)
      const { count } = await client.range({
        // After the mark by which replicas recognise the history.
        key: Buffer.from('/tidings/events/\0'),
        rangeEnd: Buffer.from('/tidings/events0'),
        countOnly: true,
      })
      assert.equal(count, 0)
    } finally {
      await storage.close()
      client.close()
    }
  })

  test('/metrics has the series that dashboards need, and clients cannot add more', async () => {
    await using etcd = await startEtcd()
    await using server = await Tidings.start([`--etcd-servers=${etcd.endpoints[0]}`])
    await server.until('/readyz', ({ status }) => status === 200, 10_000)
    for (const name of [
      'etcd_request_duration_seconds_count{operation="range",group="events.k8s.io",resource="events"}',
      OBJECTS,
      'apiserver_watch_cache_resource_version{group="events.k8s.io",resource="events"}',
      'apiserver_watch_cache_initializations_total{group="events.k8s.io",resource="events"}',
      'apiserver_watch_cache_initialization_duration_seconds_count{group="events.k8s.io",resource="events"}',
      'tidings_waiting_writes',
      'tidings_follower_lag_seconds',
      'tidings_list_kept_bytes',
      'tidings_list_kept_finds_total',
      'process_resident_memory_bytes',
      'nodejs_eventloop_lag_seconds',
    ]) {
      assert.notEqual(await metric(server, name), undefined, name)
    }
    const seriesCount = async (): Promise<number> =>
      (await server.ask('/metrics')).body.split('\n').length
    // The first 404 creates its series.
    await server.ask('/unknown')
    const before = await seriesCount()
    for (let index = 0; index < 200; index++) await server.ask(`/unknown-${index}`)
    const after = await seriesCount()
    assert.ok(after - before < 50, `${before} lines, then ${after}: clients must not make series`)
  })
})
