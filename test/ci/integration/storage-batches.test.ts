import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { aLane } from '../../../src/lib/run-queue.fixture.ts'
import { StorageError } from '../../../src/storage/errors.ts'
import type { Operation } from '../../../src/storage/etcd/batch-txn.ts'
import { GroupCommit } from '../../../src/storage/etcd/group-commit.ts'
import { revisionOf } from '../../../src/storage/resource-version.ts'
import type { StoredEvent } from '../../../src/storage/storage.ts'
import { prepareValue } from '../../../src/storage/stored-form.ts'
import { type EtcdCluster, startEtcd } from '../../support/etcd.ts'
import { Replica } from '../../support/storage.ts'
import { eventBody, eventKey, failure, noteOf } from '../../support/stored-events.ts'

const { signal } = new AbortController()

describe('storage: concurrent writes', () => {
  let etcd: EtcdCluster

  before(async () => {
    etcd = await startEtcd()
  })
  after(async () => {
    await etcd[Symbol.asyncDispose]()
  })

  test('a list of small events and then of large ones asks again for fewer at once', async () => {
    await using replica = new Replica(etcd)
    const large = 'x'.repeat(400_000)
    const keys = Array.from({ length: 2_100 }, (_, n) => eventKey('sizes', `e${n + 10_000}`))
    await Promise.all(
      keys.map((key, n) => replica.storage.create(key, eventBody(key, n < 2_000 ? 'x' : large))),
    )
    // The values after the small ones take 40 MB in one response.
    const scope = { cluster: 'local', namespace: 'sizes' }
    const page = await replica.storage.list(scope, { lane: aLane(), limit: 5_000, signal })
    assert.deepEqual(
      page.items.map(({ key }) => key.name),
      keys.map(({ name }) => name),
    )
    assert.equal(page.more, false)
  })

  test('10,000 creates from 256 callers use fewer than 1,000 revisions', async (t) => {
    await using replica = new Replica(etcd)
    const begun = await replica.revision()
    let number = 0
    const call = async () => {
      while (number < 10_000) {
        const key = eventKey('many', `e${number++}`)
        await replica.storage.create(key, eventBody(key, 'x'))
      }
    }
    await Promise.all(Array.from({ length: 256 }, call))
    const revisions = (await replica.revision()) - begun
    t.diagnostic(`${revisions} revisions`)
    assert.ok(revisions < 1_000, `${revisions} revisions`)
    const page = await replica.storage.list(
      { cluster: 'local', namespace: 'many' },
      { lane: aLane(), limit: 10_000, signal },
    )
    assert.deepEqual([page.items.length, page.more], [10_000, false])
    const versions = new Set(page.items.map(({ version }) => version))
    assert.equal(versions.size, 10_000, 'a version was given twice')
  })

  test('of 100 operations in one transaction 20 conflict: 80 are applied, and 20 return the current event', async () => {
    await using replica = new Replica(etcd)
    const { client, storage } = replica
    const names = Array.from({ length: 100 }, (_, index) => `e${index}`)
    const isConflict = (index: number) => index % 5 === 2
    const isCreate = (index: number) => index % 3 === 0
    const stored = new Map<string, StoredEvent>()
    for (const [index, name] of names.entries()) {
      if (isCreate(index) && !isConflict(index)) continue
      const key = eventKey('conflict', name)
      stored.set(name, await storage.create(key, eventBody(key, 'there')))
    }
    const operation = (name: string, index: number): Operation => {
      const there = stored.get(name)
      const seen = there === undefined || isCreate(index) ? 0 : revisionOf(there.version)
      const value = prepareValue(eventBody(eventKey('conflict', name), 'new'))
      return {
        key: `/registry/events/local/conflict/${name}`,
        expected: isConflict(index) && !isCreate(index) ? seen - 1 : seen,
        value: index % 3 === 2 ? undefined : value,
      }
    }
    const commits = new GroupCommit({ client })
    const begun = await replica.revision()
    const outcomes = await Promise.all(names.map((name, i) => commits.submit(operation(name, i))))
    assert.equal(await replica.revision(), begun + 1, 'the operations were not in one transaction')
    for (const [index, outcome] of outcomes.entries()) {
      const name = names[index] ?? ''
      assert.equal(outcome.applied, !isConflict(index), name)
      if (outcome.applied) assert.equal(revisionOf(outcome.version), begun + 1)
      else assert.equal(outcome.current?.modRevision, stored.get(name)?.version && revisionAt(name))
    }
    assert.equal(outcomes.filter(({ applied }) => !applied).length, 20)

    function revisionAt(name: string): number {
      const there = stored.get(name)
      return there === undefined ? 0 : revisionOf(there.version)
    }
  })

  test('creates of existing keys each return the current event, and the others are applied', async () => {
    await using replica = new Replica(etcd)
    const { storage } = replica
    const keys = Array.from({ length: 100 }, (_, index) => eventKey('taken', `e${index}`))
    for (const key of keys.slice(0, 20)) await storage.create(key, eventBody(key, 'theirs'))
    const begun = await replica.revision()
    const ends = await Promise.all(
      keys.map((key) =>
        storage.create(key, eventBody(key, 'ours')).then(noteOf, (error: unknown) => {
          assert.ok(error instanceof StorageError && error.kind === 'exists')
          return error.current === undefined ? 'nothing' : noteOf(error.current)
        }),
      ),
    )
    assert.deepEqual(ends, [...Array(20).fill('theirs'), ...Array(80).fill('ours')])
    assert.equal(await replica.revision(), begun + 1)
  })

  test('1,000 concurrent unconditional updates of one event all succeed, and none is lost', async (t) => {
    await using replica = new Replica(etcd)
    const key = eventKey('hot', 'one')
    await replica.storage.create(key, eventBody(key, ''))
    const begun = performance.now()
    const updated = await Promise.all(
      Array.from({ length: 1_000 }, (_, index) =>
        replica.storage.update(key, (current) =>
          eventBody(key, `${current && noteOf(current)}${index},`),
        ),
      ),
    )
    t.diagnostic(`${Math.round(performance.now() - begun)} ms`)
    assert.equal(new Set(updated.map(({ version }) => version)).size, 1_000)
    const numbers = noteOf(await replica.storage.get(key, { signal })).split(',')
    assert.deepEqual(new Set(numbers).size, 1_001, 'each number once, and the end')
    // Each result is the state right after its own change.
    for (const [index, { body }] of updated.entries()) {
      assert.ok(JSON.parse(body.toString()).note.endsWith(`${index},`))
    }
  })

  test('concurrent updates of one event by three replicas are all applied', async () => {
    await using one = new Replica(etcd)
    await using two = new Replica(etcd)
    await using three = new Replica(etcd)
    const key = eventKey('hot', 'shared')
    await one.storage.create(key, eventBody(key, '0'))
    const add = (current?: StoredEvent) =>
      eventBody(key, String(Number(current && noteOf(current)) + 1))
    const replicas = [one, two, three]
    const updates = replicas.flatMap(({ storage }) =>
      Array.from({ length: 100 }, () => storage.update(key, add)),
    )
    const updated = await Promise.all(updates)
    assert.equal(noteOf(await one.storage.get(key, { signal })), '300')
    assert.equal(new Set(updated.map(noteOf)).size, 300)
  })

  test('of many concurrent creates of one key exactly one succeeds', async () => {
    await using one = new Replica(etcd)
    await using two = new Replica(etcd)
    const key = eventKey('race', 'one')
    const ends = await Promise.allSettled(
      Array.from({ length: 100 }, (_, index) =>
        (index % 2 === 0 ? one : two).storage.create(key, eventBody(key, String(index))),
      ),
    )
    const winners = ends.filter(({ status }) => status === 'fulfilled')
    assert.equal(winners.length, 1)
  })

  test('close applies accepted writes, and rejects later ones', async () => {
    const replica = new Replica(etcd)
    const keys = Array.from({ length: 500 }, (_, index) => eventKey('drain', `e${index}`))
    const created = keys.map((key) => replica.storage.create(key, eventBody(key, 'x')))
    const closing = replica.storage.close()
    const late = eventKey('drain', 'late')
    const error = await failure(replica.storage.create(late, eventBody(late, 'x')))
    assert.ok(error instanceof StorageError && error.kind === 'unavailable')
    await closing
    await Promise.all(created)
    const page = await replica.storage.list(
      { cluster: 'local', namespace: 'drain' },
      { lane: aLane(), limit: 1_000, signal },
    )
    assert.equal(page.items.length, 500)
    replica.client.close()
  })
})
