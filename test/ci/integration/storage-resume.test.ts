import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { aLane } from '../../../src/lib/run-queue.fixture.ts'
import { CountedWrites } from '../../../src/storage/counted-writes.ts'
import { isAfter, revisionOf, type Version } from '../../../src/storage/resource-version.ts'
import type {
  EventKey,
  EventScope,
  EventWrites,
  StoredEvent,
  WatchItem,
} from '../../../src/storage/storage.ts'
import { startEtcd } from '../../support/etcd.ts'
import { Replica } from '../../support/storage.ts'
import { eventBody, eventKey, noteOf } from '../../support/stored-events.ts'

const { signal } = new AbortController()

/** `refused`: a create of a key that exists. */
type Kind = 'create' | 'update' | 'delete' | 'refused'

/**
 * Each kind before and after each other, and several deletes in a row, also at the start and the
 * end.
 */
const pattern: readonly Kind[] = [
  ...(['delete', 'delete', 'create', 'update', 'delete', 'delete', 'delete', 'update'] as const),
  ...(['create', 'create', 'delete', 'update', 'update'] as const),
]
const kinds: readonly Kind[] = Array.from(
  { length: 100 },
  (_, index) => pattern[index % pattern.length] ?? 'delete',
)

describe('storage: resuming a watch inside a transaction', () => {
  test('delivers each later change once, in order, after any of 100 changes', () =>
    resumeEverywhere(kinds))

  test('is correct when some of the 100 operations were rejected', () =>
    resumeEverywhere(kinds.map((kind, index) => (index % 7 === 3 ? 'refused' : kind))))

  test('follow delivers the same changes with the same versions, without the previous states', async () => {
    await using etcd = await startEtcd()
    await using replica = new Replica(etcd)
    const { storage } = replica
    const from = await storage.currentVersion({ signal })
    const keys = Array.from({ length: 10 }, (_, index) => eventKey('main', `e${index}`))
    await Promise.all(keys.map((key) => storage.create(key, eventBody(key, 'x'))))
    await Promise.all(keys.map((key) => storage.delete(key)))
    const seen = await read(replica, { cluster: undefined, namespace: undefined }, from)
    const followed: [string, Version][] = []
    for await (const { items } of storage.follow({ from, signal, connectionMax: 99 })) {
      for (const item of items) {
        followed.push([item.type, item.type === 'put' ? item.stored.version : item.version])
      }
      if (followed.length >= 20) break
    }
    assert.deepEqual(
      followed,
      seen.map(({ type, stored }) => [type, stored.version]),
    )
  })

  test('a compacted previous state ends the watch: a change is never delivered without it', async () => {
    await using etcd = await startEtcd()
    await using replica = new Replica(etcd)
    const { storage, client } = replica
    const key = eventKey('main', 'a')
    await storage.create(key, eventBody(key, 'one'))
    for (const change of [
      () => storage.update(key, () => eventBody(key, 'two')),
      () => storage.delete(key),
    ]) {
      const from = await storage.currentVersion({ signal })
      const { version } = await change()
      // etcd still has this change, but not the previous state.
      await client.compact(revisionOf(version))
      await assert.rejects(read(replica, { cluster: 'local', namespace: 'main' }, from), {
        name: 'StorageError',
        kind: 'compacted',
      })
    }
  })

  test('a value that is not an event is skipped and reported, and ends no watch', async () => {
    await using etcd = await startEtcd()
    await using replica = new Replica(etcd)
    const { storage, client } = replica
    const from = await storage.currentVersion({ signal })
    const bytes = (text: string) => Buffer.from(text)
    const put = (key: string, value: string) =>
      client.txn({ success: [{ type: 'put', key: bytes(key), value: bytes(value) }] })
    await put('/registry/events/local/main/bad', 'not an event')
    await put('/registry/events/stray', '{"w":1,"i":0}\n{"metadata":{}}')
    const key = eventKey('main', 'good')
    await storage.create(key, eventBody(key, 'x'))
    await client.txn({
      success: [{ type: 'delete', key: bytes('/registry/events/local/main/bad') }],
    })
    await storage.delete(key)
    const seen = await read(replica, { cluster: undefined, namespace: undefined }, from)
    assert.deepEqual(
      seen.map(({ type, stored }) => `${type} ${stored.key.name}`),
      ['put good', 'delete good'],
    )
    await put('/registry/events/local/main/bad', '{"w":1,"i":0}\n{"metadata":{"labels":5}}')
    const page = await storage.list(
      { cluster: 'local', namespace: 'main' },
      { lane: aLane(), limit: 10, signal },
    )
    assert.deepEqual([page.items, page.more], [[], false])
    const isCorrupt = { name: 'StorageError', kind: 'corrupt' }
    const bad = eventKey('main', 'bad')
    await assert.rejects(storage.get(bad, { signal }), isCorrupt)
    await assert.rejects(
      storage.update(bad, () => eventBody(bad, 'x')),
      isCorrupt,
    )
    assert.deepEqual(
      new Set(replica.corrupt),
      new Set(['/registry/events/local/main/bad', '/registry/events/stray']),
    )
  })
})

/**
 * Runs these operations in one transaction, and resumes watches of all scopes after each of its
 * changes.
 */
async function resumeEverywhere(operations: readonly Kind[]): Promise<void> {
  await using etcd = await startEtcd()
  const known = new Map<string, StoredEvent>()
  await using replica = new Replica(etcd)
  const { storage } = replica
  const writes = new CountedWrites(storage, ({ name }) => {
    const stored = known.get(name)
    return stored && { stored, connectionMax: replica.client.newestConnection }
  })
  const keys = operations.map((_, index) =>
    eventKey(index % 5 < 2 ? 'side' : 'main', `e${(index * 37) % operations.length}`),
  )
  for (const [index, key] of keys.entries()) {
    if (operations[index] === 'create') continue
    known.set(key.name, await storage.create(key, eventBody(key, 'old')))
  }
  const from = await storage.currentVersion({ signal })
  const ends = await Promise.allSettled(
    keys.map((key, index) => write(writes, key, operations[index] ?? 'create')),
  )
  const versions = ends.flatMap((end) => (end.status === 'fulfilled' ? [end.value.version] : []))
  assert.equal(
    new Set(versions.map(revisionOf)).size,
    1,
    'the operations were not in one transaction',
  )
  // One more change, so that there is one after the last resume as well.
  const last = eventKey('main', 'last')
  versions.push((await storage.create(last, eventBody(last, 'new'))).version)

  const all = await read(replica, { cluster: undefined, namespace: undefined }, from)
  assert.deepEqual(
    all.map(({ stored }) => stored.version),
    versions,
    'watchers and writers differ in a version',
  )
  assert.deepEqual(all.map(changeOf), [
    ...operations.filter((kind) => kind !== 'refused'),
    'create',
  ])
  // Versions do not depend on the scope, so a watcher may resume at a version that another scope
  // ended with.
  for (const namespace of [undefined, 'main', 'side']) {
    const isIn = ({ stored: { key } }: WatchItem) => (namespace ?? key.namespace) === key.namespace
    await Promise.all(
      all.map(async ({ stored: { version } }, index) => {
        const rest = await read(replica, { cluster: 'local', namespace }, version)
        const due = all.slice(index + 1).filter(isIn)
        assert.deepEqual(
          rest.map(summaryOf),
          due.map(summaryOf),
          `${namespace ?? 'all'}, after ${version}`,
        )
      }),
    )
  }
}

function write(writes: EventWrites, key: EventKey, kind: Kind): Promise<StoredEvent> {
  if (kind === 'update') return writes.update(key, () => eventBody(key, 'new'))
  if (kind === 'delete') return writes.delete(key)
  return writes.create(key, eventBody(key, 'new'))
}

/** What a watcher that starts after `from` receives, up to now. */
async function read(
  replica: Replica,
  scope: EventScope,
  from: Version,
): Promise<readonly WatchItem[]> {
  const { storage } = replica
  const until = await storage.currentVersion({ signal })
  const end = new AbortController()
  const watch = storage.watch(scope, { from, signal: end.signal })
  const items: WatchItem[] = []
  watch.requestProgress()
  for await (const batch of watch) {
    items.push(...batch.items)
    if (!isAfter(until, batch.version)) break
    watch.requestProgress()
  }
  end.abort()
  return items
}

/** The kind of change, from the current and the previous state. */
function changeOf(item: WatchItem): string {
  const previous = item.type === 'put' ? item.previous : item.stored
  if (previous === undefined) return 'create'
  assert.equal(noteOf(previous), 'old')
  return item.type === 'put' ? 'update' : 'delete'
}

function summaryOf({ type, stored }: WatchItem): string {
  return `${type} ${stored.key.name} ${stored.version}`
}
