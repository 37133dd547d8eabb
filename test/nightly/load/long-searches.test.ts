/**
 * One user sends hundreds of searches at a time over 250,000 events, each of which is one request of
 * width 1. Probes, the lease of the sweeper and another user must not notice.
 *
 *   npm test -- load long-searches
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EtcdClient } from '../../../src/etcd/client.ts'
import { EventKeys } from '../../../src/storage/etcd/keys.ts'
import { prepareValue, sealValue } from '../../../src/storage/stored-form.ts'
import { HealthProbe, LimitedServer } from '../../support/limited-server.ts'
import { type LoadOrder, runLoads } from '../../support/request-load.ts'
import { eventBody, eventKey } from '../../support/stored-events.ts'

const NEW = 250_000
const OLD = 1_000
const PER_TXN = 100
const MS = 10_000
const SEARCHES = 290
/** Counts the server's own time: the machine may be busy with other things. */
const PROBE_MS_MAX = 500
const READ_MS_MAX = 1_000

const EVENTS = '/apis/events.k8s.io/v1/namespaces'
/** Old events of a namespace, among newer ones of others; and a search that reads every event. */
const ATTACKS: Readonly<Record<string, string>> = {
  'by time': `${EVENTS}/a/events?limit=1&order=newest`,
  'by label': '/apis/events.k8s.io/v1/events?limit=1&labelSelector=none%3Dsuch',
}

test('searches of one user delay neither probes nor leases nor other users', async (t) => {
  await using limited = await LimitedServer.start(['attacker', 'reader'], ['--event-ttl=240h'])
  await seed(limited)
  const { server } = limited
  const { port, ca } = server
  const order = { port, ca, ms: MS, deadlineMs: MS }
  for (const [name, path] of Object.entries(ATTACKS)) {
    const attack: LoadOrder = {
      ...order,
      id: 'attacker',
      tokens: ['attacker'],
      connections: 4,
      concurrency: SEARCHES,
      requests: [{ method: 'GET', path }],
    }
    const reads: LoadOrder = {
      ...order,
      id: 'reader',
      tokens: ['reader'],
      connections: 1,
      perSecond: 10,
      countsLate: true,
      requests: [{ method: 'GET', path: `${EVENTS}/b/events?limit=5` }],
    }
    const probe = new HealthProbe(server)
    const [searched, read] = await runLoads([attack, reads])
    const health = await probe.stop()
    t.diagnostic(JSON.stringify({ name, health, searched, read }))
    assert.ok((searched?.sent ?? 0) >= SEARCHES, 'the attack has not begun')
    assert.equal(health.failures, 0)
    assert.ok(health.ownP99Ms < PROBE_MS_MAX, `livez: p99 ${health.ownP99Ms} ms`)
    assert.equal(read?.refused, 0)
    assert.equal(read?.failed, 0)
    assert.ok((read?.p99Ms ?? Number.POSITIVE_INFINITY) < READ_MS_MAX, `reads: ${read?.p99Ms} ms`)
    const lost = server.log.filter(({ msg }) => msg.includes('lost its leader lease'))
    assert.deepEqual(lost, [])
  }
})

async function seed({ server, etcdEndpoints: endpoints }: LimitedServer): Promise<void> {
  const client = new EtcdClient({ endpoints, defaultTimeoutMs: 60_000 })
  const keys = new EventKeys('/tidings')
  const put = (namespace: string, n: number, timeMs: number) => {
    const key = eventKey(namespace, `e-${n}`)
    const eventTime = new Date(timeMs).toISOString().replace('Z', '000Z')
    const value = sealValue(
      prepareValue(eventBody(key, 'a note', { eventTime })),
      Date.now(),
      n % PER_TXN,
    )
    return { type: 'put' as const, key: Buffer.from(keys.format(key)), value }
  }
  const write = async (namespace: string, count: number, firstMs: number) => {
    for (let from = 0; from < count; from += PER_TXN) {
      const numbers = Array.from({ length: Math.min(PER_TXN, count - from) }, (_, at) => from + at)
      await client.txn({ success: numbers.map((n) => put(namespace, n, firstMs + n)) })
    }
  }
  await Promise.all([
    write('big', NEW, Date.now() - NEW),
    write('a', OLD, Date.UTC(2020, 0, 1)),
    write('b', 200, Date.now()),
  ])
  client.close()
  const isLoaded = ({ body }: { body: string }) => body.includes(`${NEW + OLD + 200}`)
  await server.until('/metrics', isLoaded, 120_000)
}
