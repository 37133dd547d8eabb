import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { silentLog } from '../lib/log/log.ts'
import { aLane } from '../lib/run-queue.fixture.ts'
import { StorageError } from '../storage/errors.ts'
import type { Version } from '../storage/resource-version.ts'
import type {
  EventPage,
  EventWatch,
  ListOptions,
  StoredEvent,
  WatchItem,
} from '../storage/storage.ts'
import { StoredBody } from '../storage/stored-form.ts'
import { StorageFeed } from './due-feed.ts'
import { ExpiryQueue } from './expiry-queue.ts'

function stored(name: string, version: number, writtenAtMs: number): StoredEvent {
  return new StoredBody({
    key: { cluster: 'local', namespace: 'n', name },
    body: Buffer.from('{"metadata":{}}'),
    versionOffset: 13,
    version: version as Version,
    writtenAtMs,
  })
}

const put = (event: StoredEvent, previous?: StoredEvent): WatchItem => ({
  type: 'put',
  stored: event,
  previous,
})

type Batch = readonly WatchItem[] | StorageError

/** Lists the given pages, then delivers batches as they are pushed. */
class ScriptedStorage {
  pages: (readonly StoredEvent[])[] = [[]]
  readonly lists: ListOptions[] = []
  readonly watchedFrom: number[] = []
  readonly #batches: Batch[] = []
  #wake = () => {}

  push(batch: Batch): void {
    this.#batches.push(batch)
    this.#wake()
  }

  async list(_scope: unknown, options: ListOptions): Promise<EventPage> {
    const at = options.at === undefined ? 0 : Number(options.after?.name.split('-')[0]) + 1
    this.lists.push(options)
    return {
      items: this.pages[at] ?? [],
      version: 77 as Version,
      more: at + 1 < this.pages.length,
      remaining: undefined,
    }
  }

  watch(
    _scope: unknown,
    options: { readonly from: Version; readonly signal: AbortSignal },
  ): EventWatch {
    this.watchedFrom.push(options.from)
    return { requestProgress: () => {}, [Symbol.asyncIterator]: () => this.#follow(options.signal) }
  }

  async *#follow(signal: AbortSignal) {
    signal.addEventListener('abort', () => this.#wake())
    while (!signal.aborted) {
      const batch = this.#batches.shift()
      if (batch instanceof StorageError) throw batch
      if (batch !== undefined) yield { items: batch, version: 78 as Version }
      else
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
    }
  }
}

async function settle(): Promise<void> {
  for (let tick = 0; tick < 20; tick++) await new Promise((resolve) => setImmediate(resolve))
}

function start(
  storage: ScriptedStorage,
  options?: { isUniform?: boolean; dead?: number; entriesMax?: number },
) {
  const queue = new ExpiryQueue()
  const ending = new AbortController()
  const feed = new StorageFeed({
    storage,
    lane: aLane(),
    // Events with odd versions never expire.
    dueTime: (event) => (event.version % 2 === 1 ? 'never' : event.writtenAtMs + 100),
    isUniform: () => options?.isUniform ?? true,
    deadToleratedMin: options?.dead,
    entriesMax: options?.entriesMax,
    log: silentLog,
  })
  const filled = { count: 0 }
  const running = feed.run(queue, { signal: ending.signal, onFilled: () => filled.count++ })
  const end = async () => {
    ending.abort()
    await running
  }
  return { queue, filled, end }
}

const names = (queue: ExpiryQueue) => queue.takeDue(10_000, 100).map((event) => event.key.name)

test('feed: lists all events page by page at one version, then follows them', async () => {
  const storage = new ScriptedStorage()
  storage.pages = [
    [stored('0-a', 2, 30), stored('0-b', 4, 10)],
    [stored('1-a', 6, 20), stored('1-never', 7, 5)],
  ]
  const { queue, filled, end } = start(storage)
  await settle()
  assert.equal(filled.count, 1)
  storage.push([put(stored('new', 80, 15)), put(stored('never', 81, 1))])
  await settle()
  assert.deepEqual(names(queue), ['0-b', 'new', '1-a', '0-a'])
  assert.deepEqual(
    storage.lists.map(({ at, after }) => [at, after?.name]),
    [
      [undefined, undefined],
      [77, '0-b'],
    ],
  )
  assert.deepEqual(storage.watchedFrom, [77])
  await end()
})

test('feed: does not block the event loop when events are slow to evaluate', async () => {
  const storage = new ScriptedStorage()
  storage.pages = [Array.from({ length: 300 }, (_, at) => stored(`0-${at}`, 2 * at, 10))]
  const ending = new AbortController()
  let looked = 0
  let inTurn = 0
  let mostInTurn = 0
  const feed = new StorageFeed({
    storage,
    lane: aLane(),
    dueTime: () => {
      const until = performance.now() + 0.5
      while (performance.now() < until);
      looked++
      mostInTurn = Math.max(mostInTurn, ++inTurn)
      return 10
    },
    isUniform: () => true,
    log: silentLog,
  })
  const running = feed.run(new ExpiryQueue(), { signal: ending.signal, onFilled: () => {} })
  while (looked < 300) {
    await new Promise((resolve) => setImmediate(resolve))
    inTurn = 0
  }
  ending.abort()
  await running
  // A slice of 4 ms holds 8 of them, whatever else the machine does.
  assert.ok(mostInTurn <= 20, `${mostInTurn} in one turn of the event loop`)
})

test('feed: queues an event once, however often it changes', async () => {
  const storage = new ScriptedStorage()
  const { queue, end } = start(storage)
  const first = stored('hot', 80, 10)
  storage.push([put(first)])
  for (let at = 0; at < 10; at++) storage.push([put(stored('hot', 82 + 2 * at, 20 + at), first)])
  await settle()
  const [only, ...others] = queue.takeDue(10_000, 100)
  assert.deepEqual([only?.version, only?.dueAt, others], [80, 110, []])
  await end()
})

test('feed: queues an event again when a change makes it due earlier, or due at all', async () => {
  const storage = new ScriptedStorage()
  const { queue, end } = start(storage, { isUniform: false })
  const kept = stored('kept', 81, 10)
  const long = stored('long', 82, 500)
  storage.push([put(kept), put(long)])
  storage.push([
    put(stored('kept', 84, 20), kept),
    put(stored('long', 86, 30), long),
    put(stored('long', 88, 900), long),
    put(stored('long', 89, 1), long),
  ])
  await settle()
  assert.deepEqual(names(queue), ['kept', 'long', 'long'])
  await end()
})

test('feed: lists again when the history is compacted', async () => {
  const storage = new ScriptedStorage()
  storage.pages = [[stored('0-old', 2, 10)]]
  const { queue, filled, end } = start(storage)
  await settle()
  storage.pages = [[stored('0-new', 4, 10)]]
  storage.push(new StorageError({ kind: 'compacted', message: 'gone' }))
  await settle()
  await new Promise((resolve) => setTimeout(resolve, 150))
  await settle()
  assert.deepEqual([names(queue), filled.count], [['0-new'], 2])
  assert.equal(storage.watchedFrom.length, 2)
  await end()
})

test('feed: bounds the number of entries for deleted events', async () => {
  const storage = new ScriptedStorage()
  const { queue, end } = start(storage, { dead: 100 })
  for (let at = 0; at < 300; at++) {
    const event = stored(`e${at}`, 80 + 2 * at, 10)
    storage.push([put(event)])
    storage.push([{ type: 'delete', stored: event }])
    await settle()
  }
  assert.ok(queue.size <= 102, `${queue.size} dead entries`)
  assert.ok(storage.watchedFrom.length >= 2)
  await end()
})

test('feed: retains the earliest events in a bounded queue and refills it when they are used up', async () => {
  mock.timers.enable({ apis: ['setInterval'] })
  const storage = new ScriptedStorage()
  const events = Array.from({ length: 25 }, (_, at) => stored(`0-${at}`, 2 * at, 1_000 - at))
  storage.pages = [events]
  const { queue, filled, end } = start(storage, { entriesMax: 5 })
  await settle()
  assert.ok(queue.size >= 5 && queue.size <= 10, String(queue.size))
  mock.timers.tick(1_000)
  await settle()
  assert.equal(filled.count, 1, 'they are not used up')
  const taken = names(queue)
  assert.deepEqual(taken.slice(0, 3), ['0-24', '0-23', '0-22'])
  // A changed event that the sweeper queued: due later than events beyond the horizon.
  queue.push({
    key: { cluster: 'c', namespace: 'n', name: 'x' },
    version: 4 as Version,
    dueAt: 9e9,
  })
  storage.pages = [events.filter(({ key }) => !taken.includes(key.name))]
  mock.timers.tick(1_000)
  await settle()
  assert.equal(filled.count, 2)
  assert.equal(names(queue)[0], `0-${24 - taken.length}`)
  await end()
  mock.timers.reset()
})
