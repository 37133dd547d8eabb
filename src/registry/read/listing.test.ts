import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { aLane } from '../../lib/run-queue.fixture.ts'
import { StorageError } from '../../storage/errors.ts'
import { versionOfState } from '../../storage/resource-version.ts'
import type {
  EventPage,
  ListOptions,
  ListStretch,
  ReadStorage,
  StoredEvent,
} from '../../storage/storage.ts'
import { resourceNames } from '../storage-errors.ts'
import type { ListCursor } from './list-cursor.ts'
import { EventLister, type ListQuery } from './listing.ts'

const version = versionOfState(5)
const query: ListQuery = {
  lane: aLane(),
  scope: { cluster: 'local', namespace: 'a' },
  tokenScope: { cluster: 'local', namespace: 'a' },
  selector: undefined,
  at: undefined,
  notOlderThan: undefined,
  after: undefined,
  limit: undefined,
  signal: new AbortController().signal,
}

function stored(index: number, bytes = 0): StoredEvent {
  const key = { namespace: 'a', name: String(index).padStart(6, '0') }
  return { key, body: Buffer.alloc(bytes) } as Partial<StoredEvent> as StoredEvent
}

/** A storage with this many events, that records the options of its lists. */
function storageOf(count: number, bytes = 0) {
  const calls: ListOptions[] = []
  const list = async (_scope: unknown, options: ListOptions): Promise<EventPage> => {
    calls.push(options)
    const from = options.after === undefined ? 0 : Number(options.after.name) + 1
    const to = Math.min(count, from + options.limit)
    const items = Array.from({ length: Math.max(0, to - from) }, (_, index) =>
      stored(from + index, bytes),
    )
    return { items, version, more: to < count, remaining: count - to }
  }
  return { calls, storage: { list } as Partial<ReadStorage> as ReadStorage }
}

function listerOf(storage: ReadStorage): EventLister {
  return new EventLister(storage, resourceNames('events.k8s.io'))
}

describe('a list', () => {
  test('reports the bytes of every page that is read from the store', async () => {
    const { storage } = storageOf(600, 10)
    const fromStore: ReadStorage = {
      ...storage,
      list: async (scope, options) => ({ ...(await storage.list(scope, options)), connection: 1 }),
    }
    const read = async (from: ReadStorage): Promise<readonly number[]> => {
      const reported: number[] = []
      const onStoreRead = (bytes: number): void => void reported.push(bytes)
      const listing = await listerOf(from).list({ ...query, onStoreRead })
      for await (const _ of listing.open());
      return reported
    }
    assert.deepEqual(await read(storage), [])
    assert.deepEqual(await read(fromStore), [5000, 1000])
  })

  test('returns all events up to the limit, in pieces of at most 500', async () => {
    for (const [count, limit] of [
      [0, undefined],
      [1, 1],
      [499, undefined],
      [500, 500],
      [501, 500],
      [501, undefined],
      [10_001, 10_000],
      [10_001, 10_001],
      [10_500, 10_001],
      [11_000, 10_500],
      [1_234, 100_000],
    ] as const) {
      const { storage } = storageOf(count)
      const listing = await listerOf(storage).list({ ...query, limit })
      const sizes: number[] = []
      for await (const piece of listing.open()) sizes.push(piece.length)
      const expected = Math.min(count, limit ?? count)
      const what = `${limit} of ${count}`
      assert.equal(
        sizes.reduce((sum, size) => sum + size, 0),
        expected,
        what,
      )
      assert.ok(
        sizes.every((size) => size <= 500),
        what,
      )
      assert.equal(listing.isShort, expected <= 500, what)
      assert.equal(listing.continueToken !== undefined, expected < count, what)
      assert.equal(
        listing.remainingItemCount,
        expected < count ? count - expected : undefined,
        what,
      )
    }
  })

  test('returns smaller pieces of long events', async () => {
    const { storage } = storageOf(20, 100_000)
    const listing = await listerOf(storage).list(query)
    assert.equal(listing.isShort, false)
    const sizes: number[] = []
    for await (const piece of listing.open()) sizes.push(piece.length)
    assert.deepEqual(
      sizes,
      Array.from({ length: 10 }, () => 2),
    )
  })

  test('pieceItems limits the size of pieces', async () => {
    for (const limit of [undefined, 100, 10_500]) {
      const { storage } = storageOf(130)
      const listing = await listerOf(storage).list({ ...query, limit, pieceItems: 30 })
      const sizes: number[] = []
      for await (const piece of listing.open()) sizes.push(piece.length)
      assert.deepEqual(sizes, limit === 100 ? [30, 30, 30, 10] : [30, 30, 30, 30, 10])
      assert.equal(listing.isShort, false)
    }
  })

  test('reads every page at the version of the first', async () => {
    const { calls, storage } = storageOf(1_700)
    const listing = await listerOf(storage).list(query)
    for await (const _ of listing.open());
    assert.deepEqual(
      calls.map(({ at }) => at),
      [undefined, version, version, version],
    )
  })

  test('reads no further than its reader iterates', async () => {
    const { calls, storage } = storageOf(100_000)
    const listing = await listerOf(storage).list(query)
    for await (const _ of listing.open()) break
    assert.equal(calls.length, 1)
  })
})

describe('a list by runs', () => {
  const runItems = 200

  /** A storage in runs of 200 events each, as long as fewer than `knownMax` events were listed. */
  function storageWithRuns(count: number, { bytes = 0, knownMax = count } = {}) {
    const { calls, storage } = storageOf(count, bytes)
    const runs: ReadStorage['runs'] = (_scope, { after, limit }) => {
      const from = after === undefined ? 0 : Number(after.name) + 1
      if (from >= knownMax) return undefined
      const end = Math.min(count, from + Math.ceil(limit / runItems) * runItems)
      const stretches: ListStretch[] = []
      for (let start = from; start < end; start += runItems) {
        const size = Math.min(runItems, end - start)
        stretches.push({ run: { isPast: false }, count: size, last: stored(start + size - 1) })
      }
      return { stretches, more: end < count }
    }
    return { calls, storage: { ...storage, runs } }
  }

  /** Reads or skips run by run; returns what it did, and the first event of each piece. */
  async function read(cursor: ListCursor, isCached: (run: number) => boolean) {
    const steps: string[] = []
    for (let index = 0; ; index++) {
      const run = cursor.nextRun()
      if (run !== undefined && isCached(index)) {
        cursor.skip(run)
        steps.push(`skip ${run.count}`)
        continue
      }
      const { events, run: read } = await cursor.read()
      if (events.length === 0) return steps
      const what = read === undefined ? 'piece' : 'run'
      steps.push(`${what} ${Number(events[0]?.key.name)}+${events.length}`)
    }
  }

  test('does not read runs that are skipped, nor the first page again', async () => {
    const { calls, storage } = storageWithRuns(1_300)
    const listing = await listerOf(storage).list(query)
    assert.deepEqual(await read(listing.open(), (index) => index === 3 || index === 6), [
      ...['run 0+200', 'run 200+200', 'run 400+200', 'skip 200', 'run 800+200', 'run 1000+200'],
      'skip 100',
    ])
    assert.deepEqual(
      calls.map(({ at, after, limit }) => [at, after?.name, limit]),
      [
        [undefined, undefined, 500],
        [version, '000399', 200],
        [version, '000799', 200],
        [version, '000999', 200],
      ],
    )
  })

  test('reads nothing but the first page when all runs are skipped', async () => {
    const { calls, storage } = storageWithRuns(1_300)
    const listing = await listerOf(storage).list(query)
    assert.equal((await read(listing.open(), () => true)).length, 7)
    assert.equal(calls.length, 1)
  })

  test('reads the rest in pages when its state has left memory', async () => {
    const { storage } = storageWithRuns(1_700, { knownMax: 600 })
    const listing = await listerOf(storage).list(query)
    assert.deepEqual(await read(listing.open(), (index) => index === 0), [
      ...['skip 200', 'run 200+200', 'run 400+200', 'piece 600+500', 'piece 1100+500'],
      'piece 1600+100',
    ])
  })

  test('does not take events from the store for a run', async () => {
    const { storage } = storageWithRuns(1_000)
    const fromStore = (isFirst: boolean): ReadStorage => ({
      ...storage,
      list: async (scope, options) => {
        const page = await storage.list(scope, options)
        return (options.after === undefined) === isFirst ? { ...page, connection: 1 } : page
      },
    })
    const steps = async (from: ReadStorage) =>
      read((await listerOf(from).list(query)).open(), () => false)
    assert.deepEqual(await steps(fromStore(true)), ['piece 0+500', 'piece 500+500'])
    assert.deepEqual(await steps(fromStore(false)), [
      ...['run 0+200', 'run 200+200', 'piece 400+200', 'piece 600+200', 'piece 800+200'],
    ])
  })

  test('splits a run that is too long to be encoded at once', async () => {
    const { calls, storage } = storageWithRuns(800, { bytes: 2_000 })
    const listing = await listerOf(storage).list(query)
    assert.deepEqual(await read(listing.open(), (index) => index === 0), [
      ...['skip 200', 'piece 200+131', 'piece 331+69', 'piece 400+131', 'piece 531+69'],
      ...['piece 600+131', 'piece 731+69'],
    ])
    assert.equal(calls.length, 3)
  })

  test('does not divide selections, pages, or lists by time', async () => {
    const { storage } = storageWithRuns(12_000)
    const selector = { matches: () => true }
    for (const options of [{ selector }, { limit: 10_001 }, { order: 'oldest' as const }]) {
      const listing = await listerOf(storage).list({ ...query, ...options })
      assert.equal(listing.open().nextRun(), undefined)
    }
  })
})

describe('a list of a future version', () => {
  const failing = (currentVersion: ReadStorage['currentVersion']): ReadStorage => {
    const list = async () => {
      throw new StorageError({ kind: 'future', message: 'without the current version' })
    }
    return { list, currentVersion } as Partial<ReadStorage> as ReadStorage
  }
  const at = versionOfState(9)

  test('the error names the current version', async () => {
    const storage = failing(async () => version)
    await assert.rejects(listerOf(storage).list({ ...query, at }), {
      reason: 'Timeout',
      message: 'Timeout: Too large resource version: 9999, current: 5999',
    })
  })

  test('the error has no current version if that cannot be read', async () => {
    const storage = failing(async () => {
      throw new StorageError({ kind: 'unavailable', message: 'gone' })
    })
    await assert.rejects(listerOf(storage).list({ ...query, at }), {
      reason: 'Timeout',
      message: 'Timeout: Too large resource version: 9999',
    })
  })
})
