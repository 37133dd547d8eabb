/**
 * Interleavings that a real etcd cannot be made to produce, with a store that tests drive by hand.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLog as log } from '../lib/log/log.ts'
import { aLane } from '../lib/run-queue.fixture.ts'
import type { Span } from '../lib/tracing/span.ts'
import { StorageError } from '../storage/errors.ts'
import {
  beginning,
  type Version,
  versionOfChange,
  versionOfState,
} from '../storage/resource-version.ts'
import type {
  EventKey,
  EventScope,
  FollowItem,
  FollowWatch,
  ListOptions,
  Newest,
  StoredEvent,
  StoredPage,
  WatchBatch,
} from '../storage/storage.ts'
import { CachedStorage } from './cached-storage.ts'
import type { FollowedStorage } from './followed-storage.ts'
import { madeEvent } from './memory/made-events.fixture.ts'
import { CatchUpReader } from './watch/catch-up-reader.ts'
import { History } from './watch/history.ts'

const { signal } = new AbortController()
const all = { cluster: undefined, namespace: undefined }
const tick = () => new Promise((resolve) => setImmediate(resolve))

type Outcome = { readonly batch: WatchBatch<FollowItem> } | { readonly error: Error } | 'end'

/** The watch that the cache follows; it yields what the test emits. */
class HandMadeWatch implements FollowWatch {
  readonly from: Version
  progressRequests = 0
  verified = 1
  readonly #outcomes: Outcome[] = []
  #wake: (() => void) | undefined

  constructor(from: Version) {
    this.from = from
  }

  emit(outcome: Outcome): void {
    this.#outcomes.push(outcome)
    this.#wake?.()
  }

  requestProgress(): void {
    this.progressRequests++
  }

  readonly verifyRequests: number[] = []

  verify(connection: number): void {
    this.verifyRequests.push(connection)
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<WatchBatch<FollowItem>, void, undefined> {
    for (;;) {
      const outcome = this.#outcomes.shift()
      if (outcome === undefined) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
      } else if (outcome === 'end') return
      else if ('error' in outcome) throw outcome.error
      else yield outcome.batch
    }
  }
}

class HandMadeStore implements FollowedStorage {
  events: StoredEvent[] = []
  revision = 1
  readonly revisionReads: PromiseWithResolvers<Version>[] = []
  newestConnection = 1
  readonly watches: HandMadeWatch[] = []
  /** Requested pages; they stay pending while `holdsPages`. */
  readonly pages: { readonly options: ListOptions; release(): void }[] = []
  readonly reads: string[] = []
  holdsPages = false
  pageError: Error | undefined
  pageSize = 2

  put(name: string, note = ''): StoredEvent {
    this.revision++
    const stored = madeEvent(keyOf(name), versionOfChange(this.revision, 0), { note })
    this.events = [...this.events.filter(({ key }) => key.name !== name), stored].sort((a, b) =>
      a.key.name < b.key.name ? -1 : 1,
    )
    return stored
  }

  /** Sends the put to the follower. */
  notify(stored: StoredEvent): void {
    const items = [{ type: 'put', stored } as const]
    this.watches.at(-1)?.emit({ batch: { items, version: versionOfState(this.revision) } })
  }

  async list(_scope: EventScope, options: ListOptions): Promise<StoredPage> {
    this.reads.push('list')
    const { events, revision } = this
    const gate = Promise.withResolvers<void>()
    this.pages.push({ options, release: () => gate.resolve() })
    if (this.holdsPages) await gate.promise
    if (this.pageError !== undefined) throw this.pageError
    const { after } = options
    const rest = events.filter(({ key }) => after === undefined || key.name > after.name)
    const items = rest.slice(0, Math.min(this.pageSize, options.limit))
    const version = options.at ?? versionOfState(revision)
    const remaining = rest.length - items.length
    return { items, version, more: remaining > 0, remaining, connection: this.newestConnection }
  }

  async *readAll(options: Omit<ListOptions, 'limit'>): AsyncGenerator<StoredPage> {
    let page: StoredPage | undefined
    do {
      const after = page?.items.at(-1)?.key
      page = await this.list(all, { ...options, limit: 2_000, at: page?.version, after })
      yield page
    } while (page.more)
  }

  async get(key: EventKey): Promise<StoredEvent> {
    this.reads.push('get')
    const stored = this.events.find((event) => event.key.name === key.name)
    if (stored === undefined) throw new StorageError({ kind: 'missing', message: 'none' })
    return stored
  }

  follow(options: { readonly from: Version; readonly signal: AbortSignal }): HandMadeWatch {
    const watch = new HandMadeWatch(options.from)
    options.signal.addEventListener('abort', () => watch.emit('end'))
    this.watches.push(watch)
    return watch
  }

  async connected(): Promise<number> {
    return this.newestConnection
  }

  async mark(): Promise<void> {}

  async newest(): Promise<Newest> {
    return { version: await this.currentVersion(), connection: this.newestConnection }
  }

  currentVersion(): Promise<Version> {
    const request = Promise.withResolvers<Version>()
    this.revisionReads.push(request)
    return request.promise
  }

  watch(): never {
    throw new StorageError({ kind: 'compacted', message: 'gone' })
  }

  create(): never {
    throw new Error('not implemented')
  }

  update(): never {
    throw new Error('not implemented')
  }

  delete(): never {
    throw new Error('not implemented')
  }
}

function keyOf(name: string): EventKey {
  return { cluster: 'local', namespace: 'x', name }
}

async function synced(store: HandMadeStore, onReread?: () => void): Promise<CachedStorage> {
  const cached = new CachedStorage({ inner: store, log, onReread })
  void cached.run(signal)
  await cached.synced
  await tick()
  store.reads.length = 0
  return cached
}

const respond = (store: HandMadeStore, index: number) =>
  store.revisionReads[index]?.resolve(versionOfState(store.revision))

test('reads: a read waits until memory has the version of the store, and requests progress', async () => {
  const store = new HandMadeStore()
  const cached = await synced(store)
  const stored = store.put('a', 'new')
  const reading = cached.get(keyOf('a'), { signal })
  respond(store, 0)
  await tick()
  assert.equal(store.watches[0]?.progressRequests, 1)
  store.notify(stored)
  const read = await reading
  assert.deepEqual([read.version, read.body.toString()], [stored.version, stored.body.toString()])
  assert.deepEqual(store.reads, [], 'nothing was read from the store')
})

test('reads: a trace has a span for a wait for memory only if there was one', async () => {
  const store = new HandMadeStore()
  const cached = await synced(store)
  const spans: string[] = []
  const record = (name: string): Span => ({
    context: undefined,
    child: (part) => record(part),
    shared: () => undefined,
    set: () => {},
    link: () => {},
    end: () => spans.push(name),
  })
  const stored = store.put('a', 'new')
  const waiting = cached.get(keyOf('a'), { signal, span: record('') })
  respond(store, 0)
  await tick()
  store.notify(stored)
  await waiting
  assert.deepEqual(spans.splice(0), ['newest version', 'wait for the cache'])
  const fresh = cached.get(keyOf('a'), { signal, span: record('') })
  await tick()
  respond(store, 1)
  await fresh
  assert.deepEqual(spans, ['newest version'])
})

test('reads: progress that falls short of the version is followed by another request', async () => {
  const store = new HandMadeStore()
  const cached = await synced(store)
  const first = store.put('a')
  const second = store.put('b')
  const reading = cached.get(keyOf('b'), { signal })
  respond(store, 0)
  await tick()
  const [watch] = store.watches
  watch?.emit({ batch: { items: [], version: versionOfState(store.revision - 1) } })
  await tick()
  await tick()
  assert.equal(watch?.progressRequests, 2)
  const items = [first, second].map((stored) => ({ type: 'put', stored }) as const)
  watch?.emit({ batch: { items, version: versionOfState(store.revision) } })
  assert.equal((await reading).version, second.version)
})

test('reads: a read never uses the response to a request that was sent before the read', async () => {
  const store = new HandMadeStore()
  const cached = await synced(store)
  const early = cached.list(all, { lane: aLane(), limit: 10, signal })
  await tick()
  const old = versionOfState(store.revision)
  // A write is acknowledged. Only now comes the second read; the first response is in flight.
  const stored = store.put('a')
  const late = cached.list(all, { lane: aLane(), limit: 10, signal })
  store.revisionReads[0]?.resolve(old)
  assert.equal((await early).items.length, 0)
  await tick()
  assert.equal(store.revisionReads.length, 2)
  respond(store, 1)
  await tick()
  store.notify(stored)
  assert.equal((await late).items.length, 1)
})

test('writes are reported while memory follows the store, and not while it is loaded', async () => {
  const store = new HandMadeStore()
  store.put('a')
  const written: string[] = []
  const onWritten = ({ key }: StoredEvent, atMs: number): void => {
    written.push(`${key.name} ${atMs > 0}`)
  }
  const cached = new CachedStorage({ inner: store, log, onWritten })
  void cached.run(signal)
  await cached.synced
  await tick()
  assert.deepEqual([cached.count, written], [1, []])
  store.notify(store.put('b'))
  store.notify(store.put('b', 'again'))
  while (written.length < 2) await tick()
  assert.deepEqual(written, ['b true', 'b true'])
})

test('reads: a read at a version that memory has sends no request', async () => {
  const store = new HandMadeStore()
  const { version } = store.put('a')
  const cached = await synced(store)
  await cached.get(keyOf('a'), { signal, notOlderThan: version })
  await cached.list(all, { lane: aLane(), limit: 1, signal, notOlderThan: beginning })
  assert.deepEqual([store.revisionReads.length, store.reads], [0, []])
})

test('reads: a read at a newer version waits for memory if the store has that version', async () => {
  const store = new HandMadeStore()
  const cached = await synced(store)
  const stored = store.put('a')
  const reading = cached.get(keyOf('a'), { signal, notOlderThan: stored.version })
  respond(store, 0)
  await tick()
  store.notify(stored)
  assert.equal((await reading).version, stored.version)
  const future = cached.get(keyOf('a'), { signal, notOlderThan: versionOfState(99) })
  respond(store, 1)
  await assert.rejects(future, { kind: 'future', version: versionOfState(store.revision) })
})

test('reads: reads go to the store until everything is loaded', async () => {
  const store = new HandMadeStore()
  store.put('a')
  store.holdsPages = true
  const cached = new CachedStorage({ inner: store, log })
  void cached.run(signal)
  await tick()
  assert.equal(cached.hasSynced, false)
  await cached.get(keyOf('a'), { signal })
  assert.deepEqual(store.reads, ['list', 'get'])
  store.pages[0]?.release()
  await cached.synced
  assert.equal(cached.hasSynced, true)
})

test('reads: a reload ends waits, and reads go to the store meanwhile', async () => {
  const store = new HandMadeStore()
  for (const name of ['a', 'b', 'c', 'd', 'e']) store.put(name, 'old')
  let rereads = 0
  const cached = await synced(store, () => void rereads++)
  store.events = store.events.filter(({ key }) => key.name !== 'b' && key.name !== 'e')
  store.put('c', 'new')
  store.holdsPages = true
  const waiting = cached.get(keyOf('c'), { signal })
  respond(store, 0)
  await tick()
  store.watches[0]?.emit({ error: new StorageError({ kind: 'compacted', message: 'gone' }) })
  assert.equal(JSON.parse((await waiting).body.toString()).note, 'new')
  assert.equal(cached.hasSynced, false)
  assert.deepEqual(store.reads, ['get'])
  await until(() => store.reads.includes('list'))
  store.holdsPages = false
  for (const page of store.pages) page.release()
  await until(() => cached.hasSynced)
  const page = await cached.list(all, { lane: aLane(), limit: 10, signal, notOlderThan: beginning })
  const found = page.items.map(({ key, body }) => `${key.name} ${JSON.parse(body.toString()).note}`)
  assert.deepEqual(found, ['a old', 'c new', 'd old'])
  assert.deepEqual([cached.stats().initializations, rereads], [2, 1])
})

test('following: the watch resumes after the last version unless the history is compacted', async () => {
  const store = new HandMadeStore()
  const cached = await synced(store)
  const stored = store.put('a')
  store.notify(stored)
  await tick()
  store.watches[0]?.emit({ error: new StorageError({ kind: 'unavailable', message: 'away' }) })
  await until(() => store.watches.length === 2)
  assert.equal(store.watches[1]?.from, versionOfState(store.revision))
  assert.deepEqual([cached.hasSynced, cached.stats().initializations], [true, 1])
})

test('loading: all pages are read at the version of the first; a compaction restarts the load', async () => {
  const store = new HandMadeStore()
  for (const name of ['a', 'b', 'c', 'd', 'e']) store.put(name)
  const version = versionOfState(store.revision)
  const cached = new CachedStorage({ inner: store, log })
  store.holdsPages = true
  void cached.run(signal)
  await tick()
  store.put('z')
  store.pages[0]?.release()
  await until(() => store.pages.length === 2)
  store.pageError = new StorageError({ kind: 'compacted', message: 'gone' })
  store.pages[1]?.release()
  assert.equal(store.pages[1]?.options.at, version)
  await tick()
  store.pageError = undefined
  store.holdsPages = false
  for (const page of store.pages) page.release()
  await cached.synced
  assert.equal(cached.count, 6)
})

async function until(holds: () => boolean): Promise<void> {
  for (let attempts = 0; !holds(); attempts++) {
    if (attempts > 2_000) assert.fail('the condition was not met in time')
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
}

test('lists: a page shows one state, whatever arrives during the read', async () => {
  // A batch may be applied between any two microtasks of a list: tries each of them.
  for (let steps = 0; steps < 60; steps++) {
    const store = new HandMadeStore()
    const cached = await synced(store)
    for (let n = 0; n < 40; n++) store.notify(store.put('a', `${n}`))
    for (let step = 0; step < steps; step++) await Promise.resolve()
    const page = await cached.list(all, {
      lane: aLane(),
      limit: 10,
      signal,
      notOlderThan: beginning,
    })
    for (const { version } of page.items) {
      assert.ok(version <= page.version, `after ${steps} steps: ${version} in ${page.version}`)
    }
  }
})

test('a store that goes back to an earlier version ends the cache', async () => {
  const store = new HandMadeStore()
  for (let n = 0; n < 10; n++) store.put(`e-${n}`)
  const cached = new CachedStorage({ inner: store, log })
  const running = cached.run(signal)
  const ended = assert.rejects(running, /went back from revision 11 to 3: was it restored/)
  await cached.synced
  const watch = cached.watch(all, { from: versionOfState(11), signal })[Symbol.asyncIterator]()
  const watchEnded = assert.rejects(watch.next(), { kind: 'compacted' })
  const reading = cached.get(keyOf('e-1'), { signal })
  store.revisionReads[0]?.resolve(versionOfState(3))
  await reading
  await watchEnded
  assert.equal(cached.hasSynced, false)
  await ended
})

test('reads: a read is not served from memory before the connection is verified', async () => {
  const store = new HandMadeStore()
  store.put('a', 'memory')
  const cached = await synced(store)
  const [watch] = store.watches
  // etcd was restored: the same revision, and another event under the same version.
  store.newestConnection = 2
  store.revision--
  store.put('a', 'restored')
  const reading = cached.get(keyOf('a'), { signal })
  respond(store, 0)
  await tick()
  assert.deepEqual(watch?.verifyRequests, [2], 'the new connection has to be verified')
  watch?.emit({ batch: { items: [], version: versionOfState(store.revision) } })
  await tick()
  Object.assign(watch ?? {}, { verified: 2 })
  watch?.emit({ batch: { items: [], version: versionOfState(store.revision) } })
  // The watch claims that the history is the same, which is false in this test: so memory serves
  // it.
  assert.equal(JSON.parse((await reading).body.toString()).note, 'memory')
  assert.deepEqual(store.reads, [])
})

test('recall: returns nothing while the history of memory is not verified', async () => {
  const store = new HandMadeStore()
  store.put('a')
  const cached = await synced(store)
  assert.ok(cached.recall(keyOf('a')))
  Object.assign(store.watches[0] ?? {}, { verified: 0 })
  assert.equal(cached.recall(keyOf('a')), undefined)
  assert.equal(await cached.isOfHistory(1, { signal, waitMsMax: 1 }), false)
})

test('loading: a page over a newer connection restarts the load', async () => {
  const store = new HandMadeStore()
  for (const name of ['a', 'b', 'c']) store.put(name)
  store.holdsPages = true
  const cached = new CachedStorage({ inner: store, log })
  void cached.run(signal)
  await until(() => store.pages.length === 1)
  store.newestConnection = 2
  store.holdsPages = false
  store.pages[0]?.release()
  await cached.synced
  assert.ok(store.pages.filter(({ options }) => options.at === undefined).length > 1)
})

test('loading: an event with the same version and another body is replaced, as after a restore', async () => {
  const store = new HandMadeStore()
  store.put('a', 'first')
  const cached = await synced(store)
  store.revision--
  store.put('a', 'second')
  store.watches[0]?.emit({ error: new StorageError({ kind: 'compacted', message: 'gone' }) })
  await until(() => cached.stats().initializations === 2)
  const found = await cached.get(keyOf('a'), { signal, notOlderThan: beginning })
  assert.equal(JSON.parse(found.body.toString()).note, 'second')
})

test('verifying: a later connection counts only after the watch has verified it', async () => {
  const store = new HandMadeStore()
  const cached = await synced(store)
  const [watch] = store.watches
  assert.equal(cached.isVerifiedFor(1), true)
  assert.equal(cached.isVerifiedFor(2), false)
  assert.deepEqual(watch?.verifyRequests, [2])
  Object.assign(watch ?? {}, { verified: 2 })
  assert.equal(cached.isVerifiedFor(2), true)
})

test('following: a bug in marking the history ends the cache instead of being retried', async () => {
  const store = new HandMadeStore()
  const bug = new TypeError('a bug')
  store.mark = () => Promise.reject(bug)
  const end = new AbortController()
  const running = new CachedStorage({ inner: store, log }).run(end.signal)
  const timer = setTimeout(() => end.abort(), 1_000)
  await assert.rejects(running, bug)
  clearTimeout(timer)
})

test('catch-up: a batch is verified for the connection that it came over', async () => {
  const batch = { items: [], version: versionOfState(9) }
  const verified: number[] = []
  const reader = new CatchUpReader({
    history: new History({ changesMax: 1, bytesMax: 1 }, versionOfState(9)),
    lane: aLane(),
    store: {
      watch: () => ({
        connection: 3,
        requestProgress: () => {},
        async *[Symbol.asyncIterator]() {
          yield batch
        },
      }),
    },
    isSameHistory: async (connection) => {
      verified.push(connection)
      return true
    },
  })
  const step = { scope: all, from: versionOfState(1), signal }
  assert.equal(await reader.read(step), batch)
  assert.deepEqual(verified, [3])
})

test('load: events beyond their limit are not loaded, even after an interrupted first load', async () => {
  for (const isInterrupted of [false, true]) {
    const store = new HandMadeStore()
    for (const name of ['a', 'b', 'c', 'd']) store.put(name, 'x'.repeat(1_000))
    store.holdsPages = true
    const ending = new AbortController()
    const cached = new CachedStorage({ inner: store, log, loadBytesMax: 5_000 })
    const running = cached.run(ending.signal)
    await tick()
    store.pages[0]?.release()
    if (isInterrupted) {
      while (cached.count < 2) await tick()
      store.pageError = new StorageError({ kind: 'timeout', message: 'none' })
      store.pages[1]?.release()
      await tick()
      store.pageError = undefined
    }
    store.holdsPages = false
    store.pages[1]?.release()
    await cached.listed
    assert.ok((cached.excess?.bytes ?? 0) > 5_000)
    assert.deepEqual([cached.count, cached.hasSynced], [0, false])
    ending.abort()
    await running
  }
})

test('load: a reload is not bounded', async () => {
  const store = new HandMadeStore()
  store.put('a')
  const cached = new CachedStorage({ inner: store, log, loadBytesMax: 3_500 })
  void cached.run(signal)
  await cached.synced
  await tick()
  for (const name of ['a', 'b', 'c', 'd']) store.put(name, 'x'.repeat(1_000))
  const error = new StorageError({ kind: 'compacted', message: 'gone' })
  store.watches.at(-1)?.emit({ error })
  while (cached.count < 4) await new Promise((resolve) => setTimeout(resolve, 10))
  assert.equal(cached.excess, undefined)
})
