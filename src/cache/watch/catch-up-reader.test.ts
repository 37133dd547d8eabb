import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { aLane } from '../../lib/run-queue.fixture.ts'
import { RunQueue } from '../../lib/run-queue.ts'
import { allEvents } from '../../storage/event-scope.ts'
import { beginning, type Version, versionOfState } from '../../storage/resource-version.ts'
import type { WatchBatch } from '../../storage/storage.ts'
import { madePut } from '../memory/made-events.fixture.ts'
import { CatchUpReader, type CatchUpReaderOptions, stepsMax } from './catch-up-reader.ts'
import { History } from './history.ts'

test(`a catch-up reader reads at most ${stepsMax} steps at a time, even when one begins as another ends`, async () => {
  let open = 0
  let most = 0
  const ends: (() => void)[] = []
  const store = {
    watch: () => {
      most = Math.max(most, ++open)
      const ended = new Promise<void>((resolve) => ends.push(resolve))
      return {
        connection: 1,
        requestProgress: () => {},
        async *[Symbol.asyncIterator]() {
          await ended
          open--
          yield { items: [], version: versionOfState(2) }
        },
      }
    },
  } as unknown as CatchUpReaderOptions['store']
  const history = new History({ changesMax: 1, bytesMax: 1 }, versionOfState(1))
  const reader = new CatchUpReader({
    history,
    store,
    isSameHistory: async () => true,
    lane: aLane(),
  })
  const step = {
    scope: allEvents,
    from: beginning,
    signal: new AbortController().signal,
  }
  const reads: Promise<unknown>[] = []
  const read = (): void => {
    // A watcher starts its next step as soon as it has the one before.
    reads.push(reader.read(step).then(() => void (reads.length < 100 && read())))
  }
  for (let index = 0; index < stepsMax + 4; index++) read()
  while (ends.length > 0 || open > 0) {
    ends.shift()?.()
    for (let tick = 0; tick < 20; tick++) await undefined
  }
  await Promise.all(reads)
  assert.equal(reader.steps, 100)
  assert.equal(most, stepsMax)
})

const noStore = {
  watch: () => assert.fail('the store was read'),
} as unknown as CatchUpReaderOptions['store']

function longHistory(revisions: number): History {
  const history = new History({ changesMax: 20_000, bytesMax: 1e9, promptMax: 10 }, beginning)
  for (let revision = 1; revision <= revisions; revision++) {
    history.append([madePut('a', revision)], versionOfState(revision))
  }
  return history
}

test('a catch-up reader reads changes of the ring without the store', async () => {
  const history = longHistory(1_000)
  const reader = new CatchUpReader({
    history,
    store: noStore,
    isSameHistory: async () => true,
    lane: aLane(),
  })
  const { signal } = new AbortController()
  const versions: Version[] = []
  for (let from: Version = beginning; from !== history.version; ) {
    const batch = await reader.read({ scope: allEvents, from, signal })
    assert.ok(batch)
    versions.push(...batch.items.map(({ stored }) => stored.version))
    from = batch.version
  }
  assert.equal(versions.length, 1_000)
  assert.deepEqual(
    versions,
    versions.toSorted((a, b) => a - b),
  )
  const elsewhere = { cluster: 'local', namespace: 'b' }
  const none = await reader.read({ scope: elsewhere, from: beginning, signal })
  assert.deepEqual(none, { items: [], version: history.version })
})

test('many watchers that are far behind share the time of each event-loop turn', async () => {
  const history = longHistory(1_000)
  const reader = new CatchUpReader({
    history,
    store: noStore,
    isSameHistory: async () => true,
    lane: aLane(),
  })
  const { signal } = new AbortController()
  let isDone = false
  let turns = 0
  const count = (): void => {
    turns++
    if (!isDone) setImmediate(count)
  }
  setImmediate(count)
  const handle = (batch: WatchBatch | undefined): void => {
    // Takes as long as a selector that parses every change of the batch.
    const until = performance.now() + 2
    while (performance.now() < until);
    assert.equal(batch?.items.length, 50)
  }
  const read = () => reader.read({ scope: allEvents, from: beginning, signal }).then(handle)
  await Promise.all(Array.from({ length: 40 }, read))
  isDone = true
  // Slices begin while less than 8 ms of a turn are used.
  assert.ok(turns >= 8, `${turns} turns of the event loop in 80 ms of work`)
})

test('a watcher waits for one step of each other owner, and not for all steps of one', async () => {
  const history = longHistory(100)
  const reader = new CatchUpReader({
    history,
    store: noStore,
    isSameHistory: async () => true,
    lane: aLane(),
  })
  const { signal } = new AbortController()
  const order: string[] = []
  const queue = new RunQueue()
  const read = async (owner: string): Promise<void> => {
    const lane = queue.userLane(owner)
    await reader.read({ scope: allEvents, from: beginning, signal, lane })
    order.push(owner)
  }
  await Promise.all([...Array.from({ length: 50 }, () => read('ann')), read('bob'), read('eve')])
  assert.deepEqual(order.slice(0, 4).toSorted(), ['ann', 'ann', 'bob', 'eve'])
  assert.equal(order.length, 52)
})

test('a step whose changes are evicted while it waits, and one that is aborted, return nothing', async () => {
  const history = longHistory(100)
  const reader = new CatchUpReader({
    history,
    store: noStore,
    isSameHistory: async () => true,
    lane: aLane(),
  })
  const end = new AbortController()
  const { signal } = new AbortController()
  const first = reader.read({ scope: allEvents, from: beginning, signal })
  const aborted = reader.read({ scope: allEvents, from: beginning, signal: end.signal })
  end.abort()
  assert.equal((await first)?.items.length, 50)
  const evicted = reader.read({ scope: allEvents, from: beginning, signal })
  for (let revision = 101; revision <= 20_050; revision++) {
    history.append([madePut('a', revision)], versionOfState(revision))
  }
  assert.deepEqual([await aborted, await evicted], [undefined, undefined])
})

test('a step from the store that ends in another history returns nothing', async () => {
  const history = new History({ changesMax: 1, bytesMax: 1 }, versionOfState(9))
  const store = {
    watch: () => ({
      connection: 1,
      requestProgress: () => {},
      async *[Symbol.asyncIterator]() {
        history.restart(versionOfState(9))
        yield { items: [madePut('a', 5)], version: versionOfState(5) }
      },
    }),
  } as unknown as CatchUpReaderOptions['store']
  const reader = new CatchUpReader({
    history,
    store,
    isSameHistory: async () => true,
    lane: aLane(),
  })
  const { signal } = new AbortController()
  assert.equal(await reader.read({ scope: allEvents, from: beginning, signal }), undefined)
})

test('a read of the ring that fails rejects only its step', async () => {
  const history = longHistory(100)
  const reader = new CatchUpReader({
    history,
    store: noStore,
    isSameHistory: async () => true,
    lane: aLane(),
  })
  const { signal } = new AbortController()
  const step = { scope: allEvents, from: beginning, signal }
  const bug = new Error('a bug')
  const read = mock.method(history, 'read', () => {
    throw bug
  })
  await assert.rejects(reader.read(step), bug)
  read.mock.restore()
  assert.equal((await reader.read(step))?.items.length, 50)
})

test('a step that waited while the history restarted returns nothing', async () => {
  const history = longHistory(100)
  const reader = new CatchUpReader({
    history,
    store: noStore,
    isSameHistory: async () => true,
    lane: aLane(),
  })
  const { signal } = new AbortController()
  const step = { scope: allEvents, from: beginning, signal }
  const reads = [reader.read(step), reader.read(step)]
  history.restart(beginning)
  assert.deepEqual(
    (await Promise.all(reads)).map((batch) => batch?.items.length),
    [undefined, undefined],
  )
})
