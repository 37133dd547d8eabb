import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { eventsGroup } from '../api/event-groups.ts'
import { labelOf } from '../api/selectors/compact-labels.ts'
import type { StatusError } from '../api/status.ts'
import { missing, StorageError, type StorageErrorKind } from '../storage/errors.ts'
import { versionOfChange } from '../storage/resource-version.ts'
import type { Change, EventKey, EventStorage, StoredEvent } from '../storage/storage.ts'
import { StoredBody } from '../storage/stored-form.ts'
import { CollectionDelete, removalSemaphore } from './collection-delete.ts'
import { EventRegistry } from './registry.ts'
import { resourceNames, statusOfStorageError } from './storage-errors.ts'

const signal = new AbortController().signal
const options = { isDryRun: false, preconditions: {} }

interface Stored {
  readonly uid?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly note?: string
  readonly revision?: number
}

function storedAs(name: string, stored: Stored = {}): StoredEvent {
  const { uid = name, labels = {}, note = '', revision = 7 } = stored
  const body = Buffer.from(JSON.stringify({ metadata: { name, uid, labels }, note }))
  const key = { cluster: 'local', namespace: 'a', name }
  const versionOffset = '{"metadata":{'.length
  return new StoredBody({
    key,
    body,
    version: versionOfChange(revision, 3),
    versionOffset,
    writtenAtMs: 0,
  })
}

/** A storage of these events; deletes of the events in `failing` fail. */
class Storage {
  readonly removed: string[] = []
  readonly failing = new Map<string, StorageErrorKind>()
  concurrencyMax = 0
  #concurrency = 0
  readonly #events: Map<string, StoredEvent>

  constructor(events: readonly StoredEvent[]) {
    this.#events = new Map(events.map((event) => [event.key.name, event]))
  }

  collectionDelete(semaphore = removalSemaphore()): CollectionDelete {
    const storage = this as Pick<EventStorage, 'update' | 'get'> as EventStorage
    return new CollectionDelete(
      new EventRegistry({ storage, writes: storage, group: eventsGroup('events.k8s.io') }),
      semaphore,
    )
  }

  async get(key: EventKey): Promise<StoredEvent> {
    const stored = this.#events.get(key.name)
    if (stored === undefined) throw missing(key)
    return stored
  }

  async update(key: EventKey, change: Change): Promise<StoredEvent> {
    this.concurrencyMax = Math.max(this.concurrencyMax, ++this.#concurrency)
    await setImmediate()
    this.#concurrency--
    const current = this.#events.get(key.name)
    const outcome = change(current)
    const kind = this.failing.get(key.name)
    if (kind !== undefined) throw new StorageError({ kind, message: '', key, retryAfterMs: 3_000 })
    assert.ok(current !== undefined && outcome === 'remove')
    this.removed.push(key.name)
    return current
  }
}

async function* inPieces<T>(...pieces: T[]): AsyncGenerator<T> {
  yield* pieces
}

function many(count: number, stored: Stored = {}): readonly StoredEvent[] {
  return Array.from({ length: count }, (_, index) =>
    storedAs(`e-${index}`, { uid: 'u', ...stored }),
  )
}

function names(events: readonly StoredEvent[]): readonly string[] {
  return events.map(({ key }) => key.name)
}

describe('CollectionDelete', () => {
  const plain = { selector: undefined, deletion: options, signal }

  test('deletes 100 events of one collection concurrently, and 200 of all collections', async () => {
    const events = many(450)
    const storage = new Storage(events)
    await storage
      .collectionDelete()
      .remove(inPieces(events.slice(0, 300), events.slice(300)), plain)
    assert.deepEqual(storage.removed, names(events))
    assert.equal(storage.concurrencyMax, 100)

    const shared = new Storage(events)
    const semaphore = removalSemaphore()
    await Promise.all(
      [0, 100, 200, 300].map((from) =>
        shared.collectionDelete(semaphore).remove(inPieces(events.slice(from, from + 100)), plain),
      ),
    )
    assert.equal(shared.removed.length, 400)
    assert.equal(shared.concurrencyMax, 200)
  })

  test('deletes large events a few at a time', async () => {
    const events = many(20, { note: 'x'.repeat(100_000) })
    const storage = new Storage(events)
    await storage.collectionDelete().remove(inPieces(events), plain)
    assert.equal(storage.removed.length, 20)
    assert.equal(storage.concurrencyMax, 2)
  })

  test('does not delete an event that is gone, was replaced or no longer matches', async () => {
    const labels = { of: 'one' }
    const listed = ['gone', 'replaced', 'relabelled', 'changed', 'same'].map((name) =>
      storedAs(name, { labels }),
    )
    const storage = new Storage([
      storedAs('replaced', { uid: 'other', labels, revision: 8 }),
      storedAs('relabelled', { labels: { of: 'other' }, revision: 8 }),
      storedAs('changed', { labels, note: 'changed', revision: 8 }),
      storedAs('same', { labels }),
    ])
    const selector = {
      matches: ({ fields }: StoredEvent) => labelOf(fields.labels, 'of') === 'one',
    }
    await storage.collectionDelete().remove(inPieces(listed), { ...plain, selector })
    assert.deepEqual(storage.removed, ['changed', 'same'])
  })

  test('stops after the slice with a failure', async () => {
    const events = many(250)
    const storage = new Storage(events)
    storage.failing.set('e-120', 'corrupt').set('e-130', 'unavailable')
    await assert.rejects(storage.collectionDelete().remove(inPieces(events), plain), {
      reason: 'InternalError',
    })
    assert.deepEqual(storage.removed, [
      ...names(events.slice(0, 120)),
      ...names(events.slice(121, 130)),
      ...names(events.slice(131, 200)),
    ])
    storage.failing.set('e-140', 'timeout')
    await assert.rejects(storage.collectionDelete().remove(inPieces(events), plain), {
      reason: 'Timeout',
    })
  })

  test('reports whether anything was deleted, and when to retry', async () => {
    const errorOf = async (failing: string, kind: StorageErrorKind): Promise<string> => {
      const events = many(3)
      const storage = new Storage(events)
      storage.failing.set(failing, kind)
      if (failing === 'all') for (const { key } of events) storage.failing.set(key.name, kind)
      const error: StatusError = await storage
        .collectionDelete()
        .remove(inPieces(events), plain)
        .then(
          () => assert.fail(),
          (reason) => reason,
        )
      return `${error.code} ${error.message}; ${error.details?.retryAfterSeconds} s`
    }
    const partly = 'some of the events were deleted, repeat the request for the others'
    assert.equal(
      await errorOf('e-1', 'unavailable'),
      `503 the datastore cannot be reached; ${partly}; 1 s`,
    )
    assert.equal(
      await errorOf('e-1', 'overloaded'),
      `429 the datastore is overloaded; ${partly}; 3 s`,
    )
    assert.equal(
      await errorOf('all', 'unavailable'),
      '503 the datastore cannot be reached; nothing was done; 1 s',
    )
    assert.match(await errorOf('e-1', 'conflict'), /^409 .*kept changing/)
  })

  test('reports the same for an error of the list', async () => {
    const events = many(1)
    const cause = new StorageError({ kind: 'unavailable', message: '' })
    const pieces = async function* (): AsyncGenerator<readonly StoredEvent[]> {
      yield events
      throw statusOfStorageError(cause, resourceNames(''))
    }
    await assert.rejects(
      new Storage(events).collectionDelete().remove(pieces(), plain),
      /some of the events were deleted/,
    )
    await assert.rejects(
      new Storage([]).collectionDelete().remove(pieces(), plain),
      /nothing was done/,
    )
  })

  test('starts no slice after the timeout', async () => {
    const events = many(150)
    const storage = new Storage(events)
    const end = new AbortController()
    const removing = storage
      .collectionDelete()
      .remove(inPieces(events), { ...plain, signal: end.signal })
    await setImmediate()
    end.abort()
    await assert.rejects(removing, { reason: 'Timeout' })
    assert.equal(storage.removed.length, 100)
  })

  test('deletes nothing in a dry run', async () => {
    const events = many(3)
    const storage = new Storage(events)
    const deletion = { ...options, isDryRun: true }
    await storage.collectionDelete().remove(inPieces(events), { ...plain, deletion })
    assert.deepEqual(storage.removed, [])
  })
})
