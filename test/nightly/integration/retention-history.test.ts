import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { EtcdClient } from '../../../src/etcd/client.ts'
import { pause } from '../../../src/lib/abort.ts'
import { silentLog } from '../../../src/lib/log/log.ts'
import { aLane } from '../../../src/lib/run-queue.fixture.ts'
import { DEFAULT_RULE, RetentionPolicy } from '../../../src/retention/policy.ts'
import { Retention } from '../../../src/retention/retention.ts'
import { StorageError } from '../../../src/storage/errors.ts'
import { EtcdStorage } from '../../../src/storage/etcd/etcd-storage.ts'
import { controlKey } from '../../../src/storage/etcd/keys.ts'
import { revisionOf, type Version } from '../../../src/storage/resource-version.ts'
import { startEtcd } from '../../support/etcd.ts'
import { eventually } from '../../support/eventually.ts'
import { Replica } from '../../support/retention-replica.ts'
import { eventBody, eventKey, failure } from '../../support/stored-events.ts'

const prefix = '/registry'
const { signal } = new AbortController()

function makeStorage(client: EtcdClient, clockErrorMs = 0): EtcdStorage {
  return new EtcdStorage({
    client,
    prefix,
    now: () => Date.now() + clockErrorMs,
    onCorrupt: (key) => assert.fail(`not an event: ${key}`),
  })
}

describe('retention', { concurrency: true }, () => {
  test('three replicas compact once per interval, and the last interval stays readable', async (context) => {
    const intervalMs = 3_000
    await using etcd = await startEtcd()
    const client = new EtcdClient({ ...etcd, defaultTimeoutMs: 5_000 })
    const storage = makeStorage(client)
    const replicas = [0, 1, 2].map(
      (at) =>
        new Replica({
          endpoints: etcd.endpoints,
          prefix,
          replica: `replica-${at}`,
          lifetimeMs: 3_600_000,
          compactionIntervalMs: intervalMs,
          cached: true,
          clockErrorMs: 0,
        }),
    )
    const key = eventKey('history', 'e')
    const ending = new AbortController()
    /** Every version that was written, and when. */
    const versions: { readonly version: Version; readonly at: number }[] = []
    const first = await storage.create(key, eventBody(key, 'first'))
    const writing = (async () => {
      for (let round = 0; !ending.signal.aborted; round++) {
        const { version } = await storage.update(key, () => eventBody(key, `${round}`))
        versions.push({ version, at: performance.now() })
        await pause(50, ending.signal)
      }
    })()
    const isReadable = (version: Version) =>
      storage
        .list(
          { cluster: undefined, namespace: undefined },
          { lane: aLane(), at: version, limit: 1, signal },
        )
        .then(
          () => true,
          (error) => {
            assert.ok(error instanceof StorageError && error.kind === 'compacted', String(error))
            return false
          },
        )
    /** Times of the announcements, one for each compaction. */
    const announced: number[] = []
    const announcing = (async () => {
      const watched = Buffer.from(controlKey(prefix, 'compaction'))
      const watch = client.watch({ key: watched, startRevision: 1, signal: ending.signal })
      for await (const { events } of watch) announced.push(...events.map(() => performance.now()))
    })()
    try {
      // The leader is killed between two compactions; the next one does not depend on it.
      await eventually('a first compaction', () => announced.length === 1, 20_000)
      await replicas.find((replica) => replica.isLeader)?.kill()
      await eventually('three compactions', () => announced.length >= 3, 20_000)
      await eventually(
        'the third compaction is done',
        async () => !(await isReadable(first.version)),
      )
      const gaps = announced.slice(1).map((at, index) => at - (announced[index] ?? 0))
      context.diagnostic(`gaps: ${gaps.map(Math.round)} ms`)
      assert.ok(
        gaps.every((gap) => gap >= intervalMs * 0.9),
        `${gaps}`,
      )
      assert.ok((gaps.at(-1) ?? 0) <= intervalMs * 1.5, `${gaps}`)

      const now = performance.now()
      const recent = versions.findLast(({ at }) => at < now - intervalMs * 0.9)
      assert.ok(recent !== undefined && (await isReadable(recent.version)))
      const seen: number[] = []
      const stop = new AbortController()
      for await (const { items } of storage.watch(
        { cluster: undefined, namespace: undefined },
        { from: recent.version, signal: stop.signal },
      )) {
        seen.push(...items.map(({ stored }) => revisionOf(stored.version)))
        if (seen.length > 20) stop.abort()
      }
      const error = await failure(
        (async () => {
          const watch = storage.watch(
            { cluster: undefined, namespace: undefined },
            { from: first.version, signal },
          )
          for await (const _ of watch);
        })(),
      )
      assert.ok(error instanceof StorageError && error.kind === 'compacted', String(error))
    } finally {
      ending.abort()
      await Promise.all([writing, announcing, ...replicas.map((replica) => replica.kill())])
      await storage.close()
      client.close()
    }
  })

  test('events written since the start expire on time, although the wall clock of a replica is an hour off', async (context) => {
    const hour = 3_600_000
    const lifetimeMs = 4_000
    await using etcd = await startEtcd()
    const client = new EtcdClient({ ...etcd, defaultTimeoutMs: 5_000 })
    const writers = [-hour, 0, hour].map((errorMs) => makeStorage(client, errorMs))
    const [right = assert.fail()] = writers.slice(1)
    const replica = new Replica({
      endpoints: etcd.endpoints,
      prefix,
      replica: 'ahead',
      lifetimeMs,
      compactionIntervalMs: 0,
      cached: true,
      clockErrorMs: hour,
    })
    const ending = new AbortController()
    const writtenAt = new Map<string, number>()
    const ages = new Map<string, number>()
    const observing = (async () => {
      const from = await right.currentVersion({ signal })
      const watch = right.watch(
        { cluster: undefined, namespace: undefined },
        { from, signal: ending.signal },
      )
      for await (const { items } of watch) {
        for (const { type, stored } of items) {
          const { name } = stored.key
          if (type === 'put') writtenAt.set(name, performance.now())
          else ages.set(name, performance.now() - (writtenAt.get(name) ?? 0))
        }
      }
    })()
    try {
      await eventually('it leads', () => replica.isLeader, 20_000)
      await pause(1_000)
      for (let round = 0; round < 20; round++) {
        for (const [at, writer] of writers.entries()) {
          const key = eventKey('clocks', `e-${round}-${at}`)
          await writer.create(key, eventBody(key, 'x'))
        }
        await pause(50)
      }
      await eventually('all are gone', () => ages.size === 60, lifetimeMs + 5_000)
      const sorted = [...ages.values()].sort((a, b) => a - b)
      const [least = 0, most = 0] = [sorted[0], sorted.at(-1)]
      context.diagnostic(`deleted after ${Math.round(least)} to ${Math.round(most)} ms`)
      // Without usable clocks, expiry is as exact as the notes of revisions, taken every 250 ms.
      assert.ok(least >= lifetimeMs - 500, `${least} ms`)
    } finally {
      ending.abort()
      await replica.kill()
      await observing
      await Promise.all(writers.map((writer) => writer.close()))
      client.close()
    }
  })

  test('no replica believes to lead while etcd is paused, and sweeping continues afterwards', async () => {
    const lifetimeMs = 2_000
    await using etcd = await startEtcd()
    const clients = [0, 1].map(() => new EtcdClient({ ...etcd, defaultTimeoutMs: 3_000 }))
    const storages = clients.map((client) => makeStorage(client))
    // Left there by an operator, without a lease: no obstacle to the election.
    const leaderKey = Buffer.from(controlKey(prefix, 'sweeper'))
    await clients[0]?.txn({ success: [{ type: 'put', key: leaderKey, value: Buffer.from('x') }] })
    const ending = new AbortController()
    const retentions = clients.map((client, at) => {
      const storage = storages[at] ?? assert.fail()
      return new Retention({
        client,
        storage,
        deletes: storage,
        prefix,
        replica: `replica-${at}`,
        policy: RetentionPolicy.uniform(lifetimeMs),
        compactionIntervalMs: 0,
        log: silentLog,
      })
    })
    const running = retentions.map((retention) => retention.run(ending.signal))
    const [storage = assert.fail()] = storages
    const leaders = () => retentions.filter(({ status }) => status.isLeader).length
    try {
      await eventually('one leads', () => leaders() === 1, 10_000)
      const keys = Array.from({ length: 250 }, (_, at) => eventKey('etcd', `e-${at}`))
      await Promise.all(keys.map((key) => storage.create(key, eventBody(key, 'x'))))
      etcd.member(0).pause()
      await eventually('none leads', () => leaders() === 0, 6_000)
      await pause(1_000)
      assert.equal(leaders(), 0)
      etcd.member(0).resume()
      await eventually('one leads', () => leaders() === 1, 10_000)
      await eventually(
        'all are gone',
        async () => {
          const page = await storage.list(
            { cluster: undefined, namespace: undefined },
            { lane: aLane(), limit: 1, signal },
          )
          return page.items.length === 0
        },
        10_000,
      )
      // Deletes whose result was unknown when etcd was paused are not counted, but were done.
      const swept = retentions.map(({ status }) => status.deleted.get('expired', DEFAULT_RULE))
      assert.ok(swept.reduce((sum, count) => sum + count) <= keys.length)
      assert.ok(
        retentions.every(({ status }) => status.sweepLagMs === (status.isLeader ? 0 : undefined)),
      )
    } finally {
      ending.abort()
      await Promise.all(running)
      await Promise.all(storages.map((each) => each.close()))
      for (const client of clients) client.close()
    }
  })
})
