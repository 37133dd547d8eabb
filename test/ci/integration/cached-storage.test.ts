/**
 * The cache over a real etcd: several replicas, lost connections, compaction, watchers that fall
 * off the ring.
 */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CachedStorageOptions } from '../../../src/cache/cached-storage.ts'
import { EtcdClient } from '../../../src/etcd/client.ts'
import { silentLog } from '../../../src/lib/log/log.ts'
import { aLane } from '../../../src/lib/run-queue.fixture.ts'
import { EtcdStorage } from '../../../src/storage/etcd/etcd-storage.ts'
import { valueRequirement } from '../../../src/storage/requires.ts'
import {
  beginning,
  isAfter,
  revisionOf,
  type Version,
} from '../../../src/storage/resource-version.ts'
import type { EventStorage, StoredEvent, WatchItem } from '../../../src/storage/storage.ts'
import { CachedEventStorage } from '../../support/cached-event-storage.ts'
import { startEtcd } from '../../support/etcd.ts'
import { eventually } from '../../support/eventually.ts'
import { FaultProxy } from '../../support/fault-proxy.ts'
import { eventBody, eventKey, noteOf } from '../../support/stored-events.ts'

const { signal } = new AbortController()
const all = { cluster: undefined, namespace: undefined }

/** The storage stack of one replica. */
class Replica implements AsyncDisposable {
  readonly client: EtcdClient
  readonly inner: EtcdStorage
  readonly cached: CachedEventStorage
  readonly #end = new AbortController()
  readonly #running: Promise<void>

  /** Keys whose values are not events. */
  readonly corrupt: string[] = []

  constructor(endpoint: string, bounds?: Pick<CachedStorageOptions, 'historyBounds'>) {
    this.client = new EtcdClient({ endpoints: [endpoint], defaultTimeoutMs: 5_000 })
    this.inner = new EtcdStorage({
      client: this.client,
      prefix: '/registry',
      onCorrupt: (key) => this.corrupt.push(key.toString()),
    })
    this.cached = new CachedEventStorage({ inner: this.inner, log: silentLog, ...bounds })
    this.#running = this.cached.run(this.#end.signal)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort()
    await this.#running
    await this.inner.close()
    this.client.close()
  }
}

async function create(storage: EventStorage, name: string, note = 'x'): Promise<Version> {
  const key = eventKey('default', name)
  return (await storage.create(key, eventBody(key, note))).version
}

test('a replica reads every write that another replica has acknowledged, 10,000 times', async () => {
  await using etcd = await startEtcd()
  const [endpoint = ''] = etcd.endpoints
  await using one = new Replica(endpoint)
  await using other = new Replica(endpoint)
  await Promise.all([one.cached.synced, other.cached.synced])

  const end = new AbortController()
  const watched = new Map<string, Version>()
  const watching = (async () => {
    const watch = other.cached.watch(all, { from: beginning, signal: end.signal })
    for await (const { items } of watch) {
      for (const { stored } of items) {
        assert.ok(!watched.has(stored.key.name), 'received once')
        watched.set(stored.key.name, stored.version)
      }
    }
  })()
  let next = 0
  const caller = async () => {
    for (let n = next++; n < 10_000; n = next++) {
      const name = `e-${String(n).padStart(5, '0')}`
      const version = await create(one.cached, name, name)
      const key = eventKey('default', name)
      if (n % 2 === 0) {
        const read = await other.cached.get(key, { signal })
        assert.equal(noteOf(read), name)
      } else {
        const before = eventKey('default', `${name.slice(0, -1)}${Number(name.at(-1)) - 1}z`)
        const page = await other.cached.list(all, {
          lane: aLane(),
          after: before,
          limit: 1,
          signal,
        })
        assert.equal(page.items[0]?.key.name, name)
        assert.ok(!isAfter(version, page.version))
      }
    }
  }
  await Promise.all(Array.from({ length: 64 }, caller))
  await eventually('all are watched', () => watched.size === 10_000)
  const page = await other.cached.list(all, { lane: aLane(), limit: 10_000, signal })
  assert.equal(page.items.length, 10_000)
  for (const { key, version } of page.items) assert.equal(watched.get(key.name), version)
  const { revisionReads, catchUpSteps } = other.cached.stats()
  assert.ok(revisionReads < 9_000, `revision reads are coalesced: ${revisionReads}`)
  assert.ok(catchUpSteps < 5, 'served from memory')
  end.abort()
  await watching
})

test('pages of a list show one snapshot, equal to that of etcd, during concurrent writes', async () => {
  await using etcd = await startEtcd()
  await using replica = new Replica(etcd.endpoints[0] ?? '')
  const { cached, inner } = replica
  await cached.synced
  const names = Array.from({ length: 400 }, (_, n) => `e-${String(n).padStart(3, '0')}`)
  await Promise.all(names.map((name) => create(cached, name)))
  let isOver = false
  const writer = async (seed: number) => {
    for (let n = seed; !isOver; n += 7919) {
      const key = eventKey('default', names[n % names.length] ?? '')
      if (n % 3 === 0) await cached.delete(key).catch(() => {})
      else await cached.update(key, () => eventBody(key, String(n)))
    }
  }
  const writers = Array.from({ length: 16 }, (_, n) => writer(n))
  const summary = (items: readonly StoredEvent[]) =>
    items.map(({ key, version, body }) => `${key.name}@${version} ${body}`)
  const pages = async () => {
    let page = await cached.list(all, { lane: aLane(), limit: 37, signal })
    const items = [...page.items]
    while (page.more) {
      const after = items.at(-1)?.key
      page = await cached.list(all, { lane: aLane(), limit: 37, signal, at: page.version, after })
      items.push(...page.items)
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
    const right = await inner.list(all, { lane: aLane(), limit: 1_000, signal, at: page.version })
    assert.deepEqual(summary(items), summary(right.items))
  }
  for (let round = 0; round < 10; round++) {
    await Promise.all(Array.from({ length: 5 }, pages))
  }
  isOver = true
  await Promise.all(writers)
})

test('a watch resumed at any change inside a transaction continues after that change', async () => {
  await using etcd = await startEtcd()
  await using replica = new Replica(etcd.endpoints[0] ?? '')
  await replica.cached.synced
  const { cached } = replica
  const names = Array.from({ length: 100 }, (_, n) => `e-${String(n).padStart(2, '0')}`)
  await Promise.all(names.slice(0, 66).map((name) => create(cached, name)))
  const { version: from } = await cached.list(all, { lane: aLane(), limit: 1, signal })
  // While these two are in flight, the other writes are queued, and are sent in one batch.
  const ahead = ['x', 'y'].map((name) => {
    const key = eventKey('elsewhere', name)
    return cached.create(key, eventBody(key, 'x'))
  })
  const changes = await Promise.all(
    names.map((name, n) => {
      const key = eventKey('default', name)
      if (n % 3 === 0 && n < 66) return cached.update(key, () => eventBody(key, 'two'))
      return n < 66 ? cached.delete(key) : cached.create(key, eventBody(key, 'one'))
    }),
  )
  await Promise.all(ahead)
  const expected = changes.map(({ version }) => version).sort((a, b) => (isAfter(a, b) ? 1 : -1))
  const revisions = Map.groupBy(expected, revisionOf).values()
  const together = Math.max(...[...revisions].map(({ length }) => length))
  assert.ok(together >= 90, `in one transaction: ${together}`)
  assert.deepEqual(await take(cached, from, 100), expected)
  for (const [index, version] of expected.entries()) {
    assert.deepEqual(await take(cached, version, 99 - index), expected.slice(index + 1))
  }
})

test('a cursor that falls off the ring and returns loses and repeats nothing', async () => {
  await using etcd = await startEtcd()
  const historyBounds = { changesMax: 50, bytesMax: 1e9 }
  await using replica = new Replica(etcd.endpoints[0] ?? '', { historyBounds })
  const { cached } = replica
  await cached.synced
  const from = await cached.currentVersion({ signal })
  const end = new AbortController()
  const watch = cached.watch(
    { cluster: 'local', namespace: 'default' },
    { from, signal: end.signal },
  )
  const seen: Version[] = []
  const versions: Version[] = []
  const write = async (count: number) => {
    const start = versions.length
    const made = Array.from({ length: count }, (_, n) => create(cached, `e-${start + n}`))
    versions.push(...(await Promise.all(made)))
  }
  await write(500)
  for await (const { items } of watch) {
    seen.push(...items.map(({ stored }) => stored.version))
    if (versions.length < 2_000) await write(300)
    if (seen.length === versions.length) break
  }
  assert.deepEqual(
    seen,
    versions.toSorted((a, b) => (isAfter(a, b) ? 1 : -1)),
  )
  const { catchUpSteps } = cached.stats()
  assert.ok(catchUpSteps > 0, 'the cursor was off the ring')
  const last = take(cached, seen.at(-1) ?? beginning, 1)
  await write(1)
  assert.deepEqual(await last, [versions.at(-1)])
  assert.equal(cached.stats().catchUpSteps, catchUpSteps, 'the cursor was back on the ring')
})

test('a replica that missed a compaction lists again and is correct afterwards', async () => {
  await using etcd = await startEtcd()
  const [endpoint = ''] = etcd.endpoints
  await using proxy = await FaultProxy.start(endpoint)
  await using cutOff = new Replica(`http://${proxy.address}`)
  await using writer = new Replica(endpoint)
  await Promise.all([cutOff.cached.synced, writer.cached.synced])
  for (let n = 0; n < 3_000; n += 100) {
    const names = Array.from({ length: 100 }, (_, i) => `e-${String(n + i).padStart(4, '0')}`)
    await Promise.all(names.map((name) => create(writer.cached, name, 'old')))
  }
  const first = await cutOff.cached.list(all, { lane: aLane(), limit: 1_000, signal })
  const end = new AbortController()
  const waiting = (async () => {
    const watch = cutOff.cached.watch(all, { from: first.version, signal: end.signal })
    for await (const { items } of watch) assert.deepEqual(items, [])
  })()
  const failed = assert.rejects(waiting, { kind: 'compacted' })

  proxy.set('refuse')
  const { cached } = writer
  const change = async (n: number) => {
    const key = eventKey('default', `e-${String(n).padStart(4, '0')}`)
    if (n % 3 === 0) await cached.delete(key)
    else if (n % 3 === 1) await cached.update(key, () => eventBody(key, 'new'))
  }
  await Promise.all(Array.from({ length: 3_000 }, (_, n) => change(n)))
  await Promise.all(Array.from({ length: 10 }, (_, n) => create(cached, `f-${n}`)))
  await writer.client.compact(revisionOf(await cached.currentVersion({ signal })))
  proxy.set('pass')

  await eventually(
    'the replica has listed again',
    () => cutOff.cached.stats().initializations === 2,
    20_000,
  )
  const pages = [await cutOff.cached.list(all, { lane: aLane(), limit: 5_000, signal })]
  const right = await writer.inner.list(all, { lane: aLane(), limit: 5_000, signal })
  const summary = ({ items }: (typeof pages)[number]) =>
    items.map(({ key, version, body }) => `${key.name}@${version} ${body}`)
  assert.deepEqual(summary(pages[0] ?? right), summary(right))
  assert.equal(right.items.length, 2_010)
  const uid = {
    matches: () => true,
    requires: { values: [valueRequirement('reason', '=', 'Pulling')] },
  }
  const found = await cutOff.cached.list(all, {
    lane: aLane(),
    limit: 5_000,
    signal,
    selector: uid,
  })
  assert.deepEqual(summary(found), summary(right), 'by an index')
  await failed
  // The snapshot of the first page is in memory, but it may belong to another history of etcd.
  const second = cutOff.cached.list(all, {
    lane: aLane(),
    limit: 1_000,
    signal,
    at: first.version,
    after: first.items.at(-1)?.key,
  })
  await assert.rejects(second, { kind: 'compacted' })
  end.abort()
})

/**
 * The versions of the first `count` changes after `from`. With a count of 0, waits for one change
 * that must not come.
 */
async function take(
  storage: EventStorage,
  from: Version,
  count: number,
): Promise<readonly Version[]> {
  const end = new AbortController()
  const items: WatchItem[] = []
  const watch = storage.watch(
    { cluster: 'local', namespace: 'default' },
    { from, signal: end.signal },
  )
  if (count === 0) watch.requestProgress()
  for await (const batch of watch) {
    items.push(...batch.items)
    if (items.length >= count) break
  }
  end.abort()
  return items.map(({ stored }) => stored.version)
}

test('a key overwritten by another program is removed from the cache, as it is no event in etcd', async () => {
  await using etcd = await startEtcd()
  await using replica = new Replica(etcd.endpoints[0] ?? '')
  await replica.cached.synced
  const from = await create(replica.cached, 'mine')
  const end = new AbortController()
  const seen: WatchItem[] = []
  const watching = (async () => {
    for await (const { items } of replica.cached.watch(all, { from, signal: end.signal })) {
      seen.push(...items)
    }
  })()
  const key = Buffer.from('/registry/events/local/default/mine')
  await replica.client.txn({ success: [{ type: 'put', key, value: Buffer.from('not ours') }] })
  const page = await replica.cached.list(all, { lane: aLane(), limit: 10, signal })
  assert.deepEqual(page.items, [])
  await eventually('the watcher receives the delete', () => seen.length === 1)
  assert.equal(seen[0]?.type, 'delete')
  assert.deepEqual(new Set(replica.corrupt), new Set([key.toString()]))
  end.abort()
  await watching
})

for (const count of [999, 1_000, 1_100]) {
  test(`${count} events deleted past us in one revision leave the cache, and watchers must list again`, async () => {
    await using etcd = await startEtcd()
    await using replica = new Replica(etcd.endpoints[0] ?? '')
    await replica.cached.synced
    const from = await create(replica.cached, 'first')
    const others = Array.from({ length: count - 1 }, (_, n) => create(replica.cached, `e-${n}`))
    await Promise.all(others)
    const end = new AbortController()
    const seen: WatchItem[] = []
    const watching = (async () => {
      for await (const { items } of replica.cached.watch(all, { from, signal: end.signal })) {
        seen.push(...items)
      }
    })()
    const ending = watching.then(
      () => 'the signal',
      (error: { readonly kind?: string }) => error.kind,
    )
    await eventually('the watcher has received the creates', () => seen.length >= count - 1)
    await replica.client.txn({
      success: [
        {
          type: 'delete',
          key: Buffer.from('/registry/events/'),
          rangeEnd: Buffer.from('/registry/events0'),
        },
      ],
    })
    const page = await replica.cached.list(all, { lane: aLane(), limit: 10, signal })
    assert.deepEqual(page.items, [])
    if (count <= 999) {
      await eventually('the watcher has received each delete', () => seen.length === 2 * count - 1)
      end.abort()
      assert.equal(await ending, 'the signal')
    } else {
      assert.equal(await ending, 'compacted')
    }
    await create(replica.cached, 'after')
    const again = await replica.cached.list(all, { lane: aLane(), limit: 10, signal })
    assert.deepEqual(
      again.items.map(({ key }) => key.name),
      ['after'],
    )
  })
}
