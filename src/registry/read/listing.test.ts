import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { aLane } from '../../lib/run-queue.fixture.ts'
import { StorageError } from '../../storage/errors.ts'
import { versionOfState } from '../../storage/resource-version.ts'
import type {
  EventPage,
  ListOptions,
  ListPart,
  StoredEvent,
  WatchedStorage,
} from '../../storage/storage.ts'
import { resourceNames } from '../storage-errors.ts'
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
  return { calls, storage: { list } as Partial<WatchedStorage> as WatchedStorage }
}

function listerOf(storage: WatchedStorage): EventLister {
  return new EventLister(storage, resourceNames('events.k8s.io'))
}

describe('a list', () => {
  test('every page that is read from the store is reported with its bytes', async () => {
    const { storage } = storageOf(600, 10)
    const fromStore: WatchedStorage = {
      ...storage,
      list: async (scope, options) => ({ ...(await storage.list(scope, options)), connection: 1 }),
    }
    const read = async (from: WatchedStorage): Promise<readonly number[]> => {
      const reported: number[] = []
      const onStoreRead = (bytes: number): void => void reported.push(bytes)
      const { pieces } = await listerOf(from).list({ ...query, onStoreRead })
      for await (const _ of pieces);
      return reported
    }
    assert.deepEqual(await read(storage), [])
    assert.deepEqual(await read(fromStore), [5000, 1000])
  })

  test('a list has all events up to its limit, in pieces of at most 500', async () => {
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
      for await (const piece of listing.pieces) sizes.push(piece.length)
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
      assert.equal(listing.whole?.length, expected <= 500 ? expected : undefined, what)
      assert.equal(listing.continueToken !== undefined, expected < count, what)
      assert.equal(
        listing.remainingItemCount,
        expected < count ? count - expected : undefined,
        what,
      )
    }
  })

  test('a list of long events has smaller pieces', async () => {
    const { storage } = storageOf(20, 100_000)
    const listing = await listerOf(storage).list(query)
    assert.equal(listing.whole, undefined)
    const sizes: number[] = []
    for await (const piece of listing.pieces) sizes.push(piece.length)
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
      for await (const piece of listing.pieces) sizes.push(piece.length)
      assert.deepEqual(sizes, limit === 100 ? [30, 30, 30, 10] : [30, 30, 30, 30, 10])
      assert.equal(listing.whole, undefined)
    }
  })

  test('every piece is read at the version of the first', async () => {
    const { calls, storage } = storageOf(1_700)
    const { pieces } = await listerOf(storage).list(query)
    for await (const _ of pieces);
    assert.deepEqual(
      calls.map(({ at }) => at),
      [undefined, version, version, version],
    )
  })

  test('a list is read no further than its reader iterates', async () => {
    const { calls, storage } = storageOf(100_000)
    const { pieces } = await listerOf(storage).list(query)
    for await (const _ of pieces) break
    assert.equal(calls.length, 1)
  })
})

describe('a list by runs', () => {
  const recall = () => undefined
  const run = { isPast: false }
  const known = Buffer.from('known')

  /** The first two pages are available as runs: the first one is cached, the second one is read. */
  function storageWithRuns(count: number, bytes = 0) {
    const { calls, storage } = storageOf(count, bytes)
    const listRuns: WatchedStorage['listRuns'] = (_scope, { after, limit }) => {
      const from = after === undefined ? 0 : Number(after.name) + 1
      if (from >= 2 * limit) return undefined
      const events = Array.from({ length: limit }, (_, index) => stored(from + index, bytes))
      const part = from === 0 ? { known, count: limit } : { run, events, count: limit }
      return { parts: [part], last: events.at(-1)?.key, more: true }
    }
    return { calls, storage: { ...storage, listRuns } }
  }

  async function partsOf(parts: AsyncIterable<readonly ListPart[]> | undefined) {
    assert.ok(parts)
    const all: ListPart[] = []
    for await (const some of parts) all.push(...some)
    return all
  }

  test('a list has cached runs, runs that are read, and the rest as pages of that state', async () => {
    const { calls, storage } = storageWithRuns(1_700)
    const { parts } = await listerOf(storage).list({ ...query, recall })
    const all = await partsOf(parts)
    assert.deepEqual(
      all.map(({ count }) => count),
      [500, 500, 500, 200],
    )
    assert.equal(all[0]?.known, known)
    const rest = all.slice(1).map((part) => (part.known === undefined ? part : assert.fail()))
    assert.deepEqual(
      rest.map((part) => [part.run, part.events[0]?.key.name]),
      [
        [run, '000500'],
        [undefined, '001000'],
        [undefined, '001500'],
      ],
    )
    assert.deepEqual(
      calls.map(({ at }) => at),
      [undefined, version, version],
    )
  })

  test('a run that is too long to be encoded at once is split', async () => {
    const { storage } = storageWithRuns(1_000, 1_000)
    const { parts } = await listerOf(storage).list({ ...query, recall })
    const [first, ...rest] = await partsOf(parts)
    assert.equal(first?.known, known)
    assert.deepEqual(
      rest.map((part) => [part.count, part.known === undefined && part.run]),
      [
        [262, undefined],
        [238, undefined],
      ],
    )
  })

  test('only a full list with a cache is read by runs', async () => {
    const { storage } = storageWithRuns(1_700)
    const selector = { matches: () => true }
    for (const options of [{}, { recall, selector }, { recall, limit: 10_001 }]) {
      assert.equal((await listerOf(storage).list({ ...query, ...options })).parts, undefined)
    }
  })
})

describe('a list of a future version', () => {
  const failing = (currentVersion: WatchedStorage['currentVersion']): WatchedStorage => {
    const list = async () => {
      throw new StorageError({ kind: 'future', message: 'without the current version' })
    }
    return { list, currentVersion } as Partial<WatchedStorage> as WatchedStorage
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
