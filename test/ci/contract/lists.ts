import assert from 'node:assert/strict'
import { test } from 'node:test'
import { exactly } from '../../../src/api/selectors/value-pattern.ts'
import { aLane } from '../../../src/lib/run-queue.fixture.ts'
import { valueRequirement } from '../../../src/storage/requires.ts'
import { isAfter } from '../../../src/storage/resource-version.ts'
import type { EventStorage, ListOptions, StoredEvent } from '../../../src/storage/storage.ts'
import { eventBody, eventKey, noteOf } from '../../support/stored-events.ts'
import { failed, far, names, signal } from './expectations.ts'

/** Contract of lists: many events at one version. */
export function lists(storage: () => EventStorage): void {
  const all = (options?: Partial<ListOptions>) =>
    storage().list(
      { cluster: 'local', namespace: 'list' },
      { lane: aLane(), limit: 100, signal, ...options },
    )
  const make = async (names: readonly string[]) => {
    for (const name of names) {
      const key = eventKey('list', name)
      const reason = name.startsWith('b') ? 'Failed' : 'Pulled'
      await storage().create(key, eventBody(key, name, { reason }))
    }
  }

  test('list: pages show one snapshot, in order, during concurrent writes', async () => {
    await make(['a', 'c', 'b', 'b.1', 'b-1', 'd'])
    const first = await all({ limit: 2 })
    assert.deepEqual(names(first), ['a', 'b'])
    assert.deepEqual([first.more, first.remaining], [true, 4])
    await storage().delete(eventKey('list', 'c'))
    await make(['e'])
    const second = await all({ limit: 3, at: first.version, after: eventKey('list', 'b') })
    assert.deepEqual(names(second), ['b-1', 'b.1', 'c'])
    assert.deepEqual([second.more, second.remaining], [true, 1])
    assert.equal(second.version, first.version)
    const third = await all({ limit: 3, at: first.version, after: eventKey('list', 'c') })
    assert.deepEqual([names(third), third.more, third.remaining], [['d'], false, 0])
    assert.deepEqual(names(await all()), ['a', 'b', 'b-1', 'b.1', 'd', 'e'])
  })

  test('list: a full last page has nothing after it', async () => {
    const page = await all({ limit: 6 })
    assert.deepEqual([page.items.length, page.more, page.remaining], [6, false, 0])
  })

  test('list: the key to start after need not exist', async () => {
    assert.deepEqual(names(await all({ after: eventKey('list', 'b-5') })), ['b.1', 'd', 'e'])
    assert.deepEqual(names(await all({ after: eventKey('list', 'zz') })), [])
  })

  test('list: a selector filters, and pages are still full', async () => {
    const selector = {
      matches: (stored: StoredEvent) => stored.fields.reason === 'Failed',
      requires: { values: [valueRequirement('reason', '=', 'Failed')] },
    }
    const first = await all({ selector, limit: 2 })
    assert.deepEqual(names(first), ['b', 'b-1'])
    assert.deepEqual([first.more, first.remaining], [true, undefined])
    const rest = await all({ selector, limit: 2, after: eventKey('list', 'b-1') })
    assert.deepEqual([names(rest), rest.more], [['b.1'], false])
  })

  test('list: a required name finds one event, or none', async () => {
    const named = (name: string) => ({
      matches: (stored: StoredEvent) => stored.key.name === name,
      requires: { names: exactly(name) },
    })
    const page = await all({ selector: named('b.1'), limit: 1 })
    assert.deepEqual([names(page), page.more], [['b.1'], false])
    for (const name of ['b.', 'zzz', 'a/b', '']) {
      assert.deepEqual(names(await all({ selector: named(name) })), [])
    }
    const after = eventKey('list', 'b.1')
    assert.deepEqual(names(await all({ selector: named('b.1'), after })), [])
    const everywhere = await storage().list(
      { cluster: undefined, namespace: undefined },
      { lane: aLane(), selector: named('b.1'), limit: 100, signal },
    )
    assert.deepEqual(names(everywhere), ['b.1'])
  })

  test('list: all namespaces come in the byte order of namespace/name', async () => {
    for (const namespace of ['zz', 'zz-b', 'zz.c']) {
      const key = eventKey(namespace, 'x')
      await storage().create(key, eventBody(key, 'x'))
    }
    const everything = { cluster: undefined, namespace: undefined }
    const page = await storage().list(everything, {
      lane: aLane(),
      limit: 100,
      signal,
      after: eventKey('z', 'z'),
    })
    const namespaces = page.items.map(({ key }) => key.namespace)
    assert.deepEqual(namespaces, ['zz-b', 'zz.c', 'zz'])
    const one = await storage().list(
      { cluster: 'local', namespace: 'zz' },
      { lane: aLane(), limit: 10, signal },
    )
    assert.deepEqual(names(one), ['x'])
  })

  test('list: a past version shows that past, and a future one fails', async () => {
    const key = eventKey('list-at', 'a')
    const one = await storage().create(key, eventBody(key, 'one'))
    await storage().update(key, () => eventBody(key, 'two'))
    const read = { limit: 10, signal }
    const old = await storage().list(
      { cluster: 'local', namespace: 'list-at' },
      { lane: aLane(), ...read, at: one.version },
    )
    assert.deepEqual(old.items.map(noteOf), ['one'])
    assert.ok(!isAfter(one.version, old.version))
    const again = await storage().list(
      { cluster: 'local', namespace: 'list-at' },
      { lane: aLane(), ...read, at: old.version },
    )
    assert.deepEqual(again.items.map(noteOf), ['one'])
    const future = far(one.version)
    await failed(
      'future',
      storage().list(
        { cluster: 'local', namespace: 'list-at' },
        { lane: aLane(), ...read, at: future },
      ),
    )
    const late = storage().list(
      { cluster: 'local', namespace: 'list-at' },
      { lane: aLane(), ...read, notOlderThan: future },
    )
    await failed('future', late)
    const fresh = { lane: aLane(), ...read, notOlderThan: one.version }
    const newest = await storage().list({ cluster: 'local', namespace: 'list-at' }, fresh)
    assert.deepEqual(newest.items.map(noteOf), ['two'])
  })
}
