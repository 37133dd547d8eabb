/**
 * Fills an etcd with events of a made cluster, spread over the last days; see
 * test/support/made-cluster.ts. The server then needs `--event-ttl` of more than these days.
 *
 *   node bench/seed.ts http://127.0.0.1:2379                  1,000,000 events of 7 days
 *   node bench/seed.ts http://127.0.0.1:2379 100000 2         100,000 events of 2 days
 *   node bench/seed.ts http://127.0.0.1:2379 100000 2 east,west   of two clusters
 *
 * A million events need `--quota-backend-bytes` of at least 4 GiB.
 */
import { EtcdClient } from '../src/etcd/client.ts'
import { seedEvents } from '../test/support/seed-events.ts'

const dayMs = 24 * 3_600_000
const [endpoint, count = '1000000', days = '7', clusters = 'local'] = process.argv.slice(2)
if (endpoint === undefined) throw new Error('which etcd? for instance http://127.0.0.1:2379')
const client = new EtcdClient({ endpoints: [endpoint], defaultTimeoutMs: 60_000 })
const began = performance.now()
await seedEvents(client, {
  count: Number(count),
  spanMs: Number(days) * dayMs,
  clusters: clusters.split(','),
})
client.close()
const seconds = (performance.now() - began) / 1000
process.stdout.write(`wrote ${count} events in ${seconds.toFixed(1)} s\n`)
