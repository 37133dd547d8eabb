import assert from 'node:assert/strict'
import { test } from 'node:test'
import { aLane } from '../../../src/lib/run-queue.fixture.ts'
import { beginning, formatVersion, isAfter } from '../../../src/storage/resource-version.ts'
import type { EventStorage, StoredEvent } from '../../../src/storage/storage.ts'
import { served } from '../../../src/storage/stored-form.ts'
import { eventBody, eventKey, failure, noteOf } from '../../support/stored-events.ts'
import { failed, far, signal, snapshot } from './expectations.ts'

/** Contract of operations on single events. */
export function readsAndWrites(storage: () => EventStorage): void {
  test('create: the written event is read back, with the version that create returned', async () => {
    const key = eventKey('create', 'a')
    const body = eventBody(key, 'first')
    const created = await storage().create(key, body)
    assert.deepEqual(created.body, body)
    const read = await storage().get(key, { signal })
    assert.deepEqual(snapshot(read), snapshot(created))
    assert.ok(Math.abs(read.writtenAtMs - Date.now()) < 60_000, 'the time of the write')
    const whole = JSON.parse(served(read).toString())
    assert.equal(whole.metadata.resourceVersion, formatVersion(created.version))
    assert.equal(whole.note, 'first')
  })

  test('create: an existing key fails with exists and returns the current event', async () => {
    const key = eventKey('create', 'taken')
    const created = await storage().create(key, eventBody(key, 'first'))
    const error = await failed('exists', storage().create(key, eventBody(key, 'second')))
    assert.deepEqual(error.current && snapshot(error.current), snapshot(created))
    assert.equal(noteOf(await storage().get(key, { signal })), 'first')
  })

  test('get: a key without an event fails with missing', async () => {
    const error = await failed('missing', storage().get(eventKey('get', 'none'), { signal }))
    assert.deepEqual(error.key, eventKey('get', 'none'))
  })

  test('get: a future version fails with future, and a past one does not', async () => {
    const key = eventKey('get', 'fresh')
    const { version } = await storage().create(key, eventBody(key, 'x'))
    await storage().get(key, { signal, notOlderThan: version })
    await storage().get(key, { signal, notOlderThan: beginning })
    await failed('future', storage().get(key, { signal, notOlderThan: far(version) }))
  })

  test('fields: the fields of selectors are read from the stored object', async () => {
    const key = eventKey('fields', 'a')
    await storage().create(key, eventBody(key, 'x', { reason: 'Pulled', labels: { app: 'web' } }))
    const { fields } = await storage().get(key, { signal })
    assert.equal(fields.reason, 'Pulled')
    assert.deepEqual(fields.labels, { app: 'web' })
    assert.deepEqual([fields.regarding.kind, fields.regarding.fieldPath], ['Pod', ''])
  })

  test('update: the change is applied to the current event, with a later version', async () => {
    const key = eventKey('update', 'a')
    const created = await storage().create(key, eventBody(key, 'one'))
    const updated = await storage().update(key, (current) =>
      eventBody(key, `${current && noteOf(current)} two`),
    )
    assert.ok(isAfter(updated.version, created.version))
    assert.deepEqual(snapshot(await storage().get(key, { signal })), snapshot(updated))
    assert.equal(noteOf(updated), 'one two')
  })

  test('update: nothing is written when the change returns the current event', async () => {
    const key = eventKey('update', 'same')
    const created = await storage().create(key, eventBody(key, 'one'))
    for (const change of [(now?: StoredEvent) => now?.body, () => undefined]) {
      const updated = await storage().update(key, change)
      assert.equal(updated.version, created.version)
    }
    assert.equal((await storage().get(key, { signal })).version, created.version)
  })

  test('update: the change decides what happens when there is no event', async () => {
    const key = eventKey('update', 'none')
    await failed(
      'missing',
      storage().update(key, () => undefined),
    )
    const refusal = new Error('not here')
    const refuse = () => {
      throw refusal
    }
    assert.equal(await failure(storage().update(key, refuse)), refusal)
    const made = await storage().update(key, (current) => {
      assert.equal(current, undefined)
      return eventBody(key, 'made')
    })
    assert.equal(noteOf(await storage().get(key, { signal })), 'made')
    assert.equal((await storage().get(key, { signal })).version, made.version)
  })

  test('update: an error of the change is rethrown, and nothing is written', async () => {
    const key = eventKey('update', 'guarded')
    const created = await storage().create(key, eventBody(key, 'one'))
    const refusal = new Error('not this one')
    const refuse = () => {
      throw refusal
    }
    assert.equal(await failure(storage().update(key, refuse)), refusal)
    assert.equal((await storage().get(key, { signal })).version, created.version)
  })

  test('update: a change may delete the event instead', async () => {
    const key = eventKey('update', 'removed')
    const created = await storage().create(key, eventBody(key, 'one'))
    const removed = await storage().update(key, () => 'remove')
    assert.ok(isAfter(removed.version, created.version))
    assert.equal(noteOf(removed), 'one')
    await failed('missing', storage().get(key, { signal }))
    await failed(
      'missing',
      storage().update(key, () => 'remove'),
    )
  })

  test('update: of many concurrent updates none is lost', async () => {
    const key = eventKey('update', 'many')
    await storage().create(key, eventBody(key, '0'))
    const add = (current?: StoredEvent) =>
      eventBody(key, String(Number(current && noteOf(current)) + 1))
    const updated = await Promise.all(Array.from({ length: 50 }, () => storage().update(key, add)))
    assert.equal(noteOf(await storage().get(key, { signal })), '50')
    assert.equal(new Set(updated.map(({ version }) => version)).size, 50)
  })

  test('delete: the last state is returned with the version of the delete', async () => {
    const key = eventKey('delete', 'a')
    const created = await storage().create(key, eventBody(key, 'last'))
    const deleted = await storage().delete(key)
    assert.ok(isAfter(deleted.version, created.version))
    assert.deepEqual(deleted.body, created.body)
    await failed('missing', storage().get(key, { signal }))
    await failed('missing', storage().delete(key))
    await storage().create(key, eventBody(key, 'again'))
  })

  test('delete: the guard gets the current event, and can keep it', async () => {
    const key = eventKey('delete', 'guarded')
    const created = await storage().create(key, eventBody(key, 'last'))
    const refusal = new Error('keep it')
    const guard = (current: StoredEvent) => {
      assert.equal(current.version, created.version)
      throw refusal
    }
    assert.equal(await failure(storage().delete(key, guard)), refusal)
    await storage().get(key, { signal })
  })

  test('versions: currentVersion is at or after every acknowledged write', async () => {
    const key = eventKey('versions', 'a')
    const before = await storage().currentVersion({ signal })
    const { version } = await storage().create(key, eventBody(key, 'x'))
    const current = await storage().currentVersion({ signal })
    assert.ok(isAfter(version, before))
    assert.ok(isAfter(current, version))
  })

  test('reads: an aborted signal ends them with timeout', async () => {
    const aborted = AbortSignal.abort()
    await failed('timeout', storage().get(eventKey('get', 'fresh'), { signal: aborted }))
    const list = storage().list(
      { cluster: 'local', namespace: 'get' },
      { lane: aLane(), signal: aborted, limit: 1 },
    )
    await failed('timeout', list)
  })
}
