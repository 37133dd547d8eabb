import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { aLane } from '../../../src/lib/run-queue.fixture.ts'
import type { EventStorage } from '../../../src/storage/storage.ts'
import { eventBody, eventKey, noteOf } from '../../support/stored-events.ts'
import { failed, first, patienceMs, signal, within } from './expectations.ts'
import { lists } from './lists.ts'
import { readsAndWrites } from './reads-and-writes.ts'
import { watches } from './watches.ts'

/** An implementation with its own store. */
export interface StorageUnderTest extends AsyncDisposable {
  readonly storage: EventStorage
  /** Makes the store compact all states but the newest. */
  forgetHistory(): Promise<void>
}

/** The contract of EventStorage as tests. */
export function storageContract(
  name: string,
  makeStorage: () => Promise<StorageUnderTest>,
  options?: { readonly skip?: boolean | string },
): void {
  describe(`${name}: the contract of EventStorage`, { skip: options?.skip ?? false }, () => {
    let made: StorageUnderTest
    const storage = () => made.storage

    before(async () => {
      made = await makeStorage()
    })
    after(async () => {
      await made[Symbol.asyncDispose]()
    })

    readsAndWrites(storage)
    lists(storage)
    watches(storage)
    forgotten(() => made)
  })
}

function forgotten(made: () => StorageUnderTest): void {
  test('history: a compacted version is reported as compacted', async () => {
    const { storage } = made()
    const key = eventKey('history', 'a')
    const old = await storage.create(key, eventBody(key, 'one'))
    await storage.update(key, () => eventBody(key, 'two'))
    await storage.update(key, () => eventBody(key, 'three'))
    await made().forgetHistory()
    const scope = { cluster: 'local', namespace: 'history' }
    await failed(
      'compacted',
      storage.list(scope, { lane: aLane(), limit: 1, signal, at: old.version }),
    )
    const watch = storage.watch(scope, { from: old.version, signal })
    await failed('compacted', within(patienceMs, first(watch)))
    const page = await storage.list(scope, { lane: aLane(), limit: 1, signal })
    assert.deepEqual(page.items.map(noteOf), ['three'])
  })
}
