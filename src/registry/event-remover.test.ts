import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { labelOf } from '../api/compact-labels.ts'
import { eventsGroup } from '../api/event-groups.ts'
import type { StatusError } from '../api/status.ts'
import { missing, StorageError, type StorageErrorKind } from '../storage/errors.ts'
import { versionOfChange } from '../storage/resource-version.ts'
import type { Change, EventKey, EventStorage, StoredEvent } from '../storage/storage.ts'
import { StoredBody } from '../storage/stored-form.ts'
import { EventRemover, removalTurns } from './event-remover.ts'
import { EventRegistry } from './registry.ts'
import { resourceNames, statusOfStorageError } from './storage-errors.ts'

const signal = new AbortController().signal
const inEarnest = { isDryRun: false, preconditions: {} }

interface Stored {
  readonly uid?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly note?: string
  readonly revision?: number
}

function storedAs(name: string, stored: Stored = {}): StoredEvent {
  const { uid = name, labels = {}, note = '', revision = 7 } = stored
  const body = Buffer.from(JSON.stringify({ metadata: { name, uid, labels }, note }))
  const key = { namespace: 'a', name }
  const versionOffset = '{"metadata":{'.length
  return new StoredBody({
    key,
    body,
    version: versionOfChange(revision, 3),
    versionOffset,
    writtenAtMs: 0,
  })
}

/** Events that are there, and fail to go as they are told. */
class Storage {
  readonly removed: string[] = []
  readonly failing = new Map<string, StorageErrorKind>()
  underWayMost = 0
  #underWay = 0
  readonly #events: Map<string, StoredEvent>

  constructor(events: readonly StoredEvent[]) {
    this.#events = new Map(events.map((event) => [event.key.name, event]))
  }

  remover(turns = removalTurns()): EventRemover {
    const storage = this as Pick<EventStorage, 'update' | 'get'> as EventStorage
    return new EventRemover(
      new EventRegistry({ storage, group: eventsGroup('events.k8s.io') }),
      turns,
    )
  }

  async get(key: EventKey): Promise<StoredEvent> {
    const stored = this.#events.get(key.name)
    if (stored === undefined) throw missing(key)
    return stored
  }

  async update(key: EventKey, change: Change): Promise<StoredEvent> {
    this.underWayMost = Math.max(this.underWayMost, ++this.#underWay)
    await setImmediate()
    this.#underWay--
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

describe('removing many', () => {
  const plain = { selector: undefined, deletion: inEarnest, signal }

  test('a hundred are under way at once, of all collections two hundred', async () => {
    const events = many(450)
    const storage = new Storage(events)
    await storage.remover().remove(inPieces(events.slice(0, 300), events.slice(300)), plain)
    assert.deepEqual(storage.removed, names(events))
    assert.equal(storage.underWayMost, 100)

    const shared = new Storage(events)
    const turns = removalTurns()
    await Promise.all(
      [0, 100, 200, 300].map((from) =>
        shared.remover(turns).remove(inPieces(events.slice(from, from + 100)), plain),
      ),
    )
    assert.equal(shared.removed.length, 400)
    assert.equal(shared.underWayMost, 200)
  })

  test('large ones go a few at a time', async () => {
    const events = many(20, { note: 'x'.repeat(100_000) })
    const storage = new Storage(events)
    await storage.remover().remove(inPieces(events), plain)
    assert.equal(storage.removed.length, 20)
    assert.equal(storage.underWayMost, 2)
  })

  test('what is gone, is another event by now, or is not chosen any more stays as it is', async () => {
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
    await storage.remover().remove(inPieces(listed), { ...plain, selector })
    assert.deepEqual(storage.removed, ['changed', 'same'])
  })

  test('it stops at the slice in which one fails', async () => {
    const events = many(250)
    const storage = new Storage(events)
    storage.failing.set('e-120', 'corrupt').set('e-130', 'unavailable')
    await assert.rejects(storage.remover().remove(inPieces(events), plain), {
      reason: 'InternalError',
    })
    assert.deepEqual(storage.removed, [
      ...names(events.slice(0, 120)),
      ...names(events.slice(121, 130)),
      ...names(events.slice(131, 200)),
    ])
    storage.failing.set('e-140', 'timeout')
    await assert.rejects(storage.remover().remove(inPieces(events), plain), { reason: 'Timeout' })
  })

  test('a refusal says whether anything was done, and when to come back', async () => {
    const told = async (failing: string, kind: StorageErrorKind): Promise<string> => {
      const events = many(3)
      const storage = new Storage(events)
      storage.failing.set(failing, kind)
      if (failing === 'all') for (const { key } of events) storage.failing.set(key.name, kind)
      const error: StatusError = await storage
        .remover()
        .remove(inPieces(events), plain)
        .then(
          () => assert.fail(),
          (reason) => reason,
        )
      return `${error.code} ${error.message}; ${error.details?.retryAfterSeconds} s`
    }
    const partly = 'some of the events were deleted, repeat the request for the others'
    assert.equal(
      await told('e-1', 'unavailable'),
      `503 the datastore cannot be reached; ${partly}; 1 s`,
    )
    assert.equal(
      await told('e-1', 'overloaded'),
      `429 the datastore has more to do than it can; ${partly}; 3 s`,
    )
    assert.equal(
      await told('all', 'unavailable'),
      '503 the datastore cannot be reached; nothing was done; 1 s',
    )
    assert.match(await told('e-1', 'conflict'), /^409 .*kept changing/)
  })

  test('a list that breaks off half way is told of in the same words', async () => {
    const events = many(1)
    const cause = new StorageError({ kind: 'unavailable', message: '' })
    const pieces = async function* (): AsyncGenerator<readonly StoredEvent[]> {
      yield events
      throw statusOfStorageError(cause, resourceNames(''))
    }
    await assert.rejects(
      new Storage(events).remover().remove(pieces(), plain),
      /some of the events were deleted/,
    )
    await assert.rejects(new Storage([]).remover().remove(pieces(), plain), /nothing was done/)
  })

  test('nothing begins when time is up', async () => {
    const events = many(150)
    const storage = new Storage(events)
    const end = new AbortController()
    const removing = storage.remover().remove(inPieces(events), { ...plain, signal: end.signal })
    await setImmediate()
    end.abort()
    await assert.rejects(removing, { reason: 'Timeout' })
    assert.equal(storage.removed.length, 100)
  })

  test('a dry run removes nothing', async () => {
    const events = many(3)
    const storage = new Storage(events)
    const deletion = { ...inEarnest, isDryRun: true }
    await storage.remover().remove(inPieces(events), { ...plain, deletion })
    assert.deepEqual(storage.removed, [])
  })
})
