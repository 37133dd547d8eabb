/** Orders of events that a real etcd cannot be made to show, with a store that is moved by hand. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLog as log } from '../lib/log.ts'
import { StorageError } from '../storage/errors.ts'
import {
  beginning,
  type Version,
  versionOfChange,
  versionOfState,
} from '../storage/resource-version.ts'
import type {
  EventKey,
  EventPage,
  EventScope,
  FollowItem,
  FollowWatch,
  ListOptions,
  Newest,
  StoredEvent,
  WatchBatch,
} from '../storage/storage.ts'
import { Behind } from './behind.ts'
import { CachedStorage } from './cached-storage.ts'
import type { FollowedStorage } from './followed-storage.ts'
import { madeEvent } from './made-events.test.ts'

const { signal } = new AbortController()
const all = { namespace: undefined }
const turn = () => new Promise((resolve) => setImmediate(resolve))

type Outcome = { readonly batch: WatchBatch<FollowItem> } | { readonly error: Error } | 'end'

/** What is followed; says what the test makes it say. */
class HandMadeWatch implements FollowWatch {
  readonly from: Version
  progressAsked = 0
  verified = 1
  readonly #said: Outcome[] = []
  #wake: (() => void) | undefined

  constructor(from: Version) {
    this.from = from
  }

  say(outcome: Outcome): void {
    this.#said.push(outcome)
    this.#wake?.()
  }

  requestProgress(): void {
    this.progressAsked++
  }

  readonly demanded: number[] = []

  verify(connection: number): void {
    this.demanded.push(connection)
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<WatchBatch<FollowItem>, void, undefined> {
    for (;;) {
      const outcome = this.#said.shift()
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
  readonly questions: PromiseWithResolvers<Version>[] = []
  newestConnection = 1
  readonly watches: HandMadeWatch[] = []
  /** Of pages that were asked for; they stay open while `holdsPages`. */
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

  /** Tells the follower of an event that was put. */
  tell(stored: StoredEvent): void {
    const items = [{ type: 'put', stored } as const]
    this.watches.at(-1)?.say({ batch: { items, version: versionOfState(this.revision) } })
  }

  async list(
    _scope: EventScope,
    options: ListOptions,
  ): Promise<EventPage & { connection: number }> {
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

  async get(key: EventKey): Promise<StoredEvent> {
    this.reads.push('get')
    const stored = this.events.find((event) => event.key.name === key.name)
    if (stored === undefined) throw new StorageError({ kind: 'missing', message: 'none' })
    return stored
  }

  follow(options: { readonly from: Version; readonly signal: AbortSignal }): HandMadeWatch {
    const watch = new HandMadeWatch(options.from)
    options.signal.addEventListener('abort', () => watch.say('end'))
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
    const question = Promise.withResolvers<Version>()
    this.questions.push(question)
    return question.promise
  }

  watch(): never {
    throw new StorageError({ kind: 'compacted', message: 'gone' })
  }

  create(): never {
    throw new Error('not made for it')
  }

  update(): never {
    throw new Error('not made for it')
  }

  delete(): never {
    throw new Error('not made for it')
  }
}

function keyOf(name: string): EventKey {
  return { namespace: 'x', name }
}

async function synced(store: HandMadeStore, onReread?: () => void): Promise<CachedStorage> {
  const cached = new CachedStorage({ inner: store, log, onReread })
  void cached.run(signal)
  await cached.synced
  await turn()
  store.reads.length = 0
  return cached
}

const answer = (store: HandMadeStore, index: number) =>
  store.questions[index]?.resolve(versionOfState(store.revision))

test('reads: wait until memory has what the store had, and ask for progress meanwhile', async () => {
  const store = new HandMadeStore()
  const cached = await synced(store)
  const stored = store.put('a', 'new')
  const reading = cached.get(keyOf('a'), { signal })
  answer(store, 0)
  await turn()
  assert.equal(store.watches[0]?.progressAsked, 1)
  store.tell(stored)
  const read = await reading
  assert.deepEqual([read.version, read.body.toString()], [stored.version, stored.body.toString()])
  assert.deepEqual(store.reads, [], 'the store itself was not asked')
})

test('reads: news that does not reach far enough is followed by another question', async () => {
  const store = new HandMadeStore()
  const cached = await synced(store)
  const first = store.put('a')
  const second = store.put('b')
  const reading = cached.get(keyOf('b'), { signal })
  answer(store, 0)
  await turn()
  const [watch] = store.watches
  watch?.say({ batch: { items: [], version: versionOfState(store.revision - 1) } })
  await turn()
  await turn()
  assert.equal(watch?.progressAsked, 2)
  const items = [first, second].map((stored) => ({ type: 'put', stored }) as const)
  watch?.say({ batch: { items, version: versionOfState(store.revision) } })
  assert.equal((await reading).version, second.version)
})

test('reads: one that came after a question was put does not take its answer', async () => {
  const store = new HandMadeStore()
  const cached = await synced(store)
  const early = cached.list(all, { limit: 10, signal })
  await turn()
  const old = versionOfState(store.revision)
  // The write is answered; only now does the second reader come, and the first answer is on its way.
  const stored = store.put('a')
  const late = cached.list(all, { limit: 10, signal })
  store.questions[0]?.resolve(old)
  assert.equal((await early).items.length, 0)
  await turn()
  assert.equal(store.questions.length, 2)
  answer(store, 1)
  await turn()
  store.tell(stored)
  assert.equal((await late).items.length, 1)
})

test('reads: with a version that memory has nobody is asked', async () => {
  const store = new HandMadeStore()
  const { version } = store.put('a')
  const cached = await synced(store)
  await cached.get(keyOf('a'), { signal, notOlderThan: version })
  await cached.list(all, { limit: 1, signal, notOlderThan: beginning })
  assert.deepEqual([store.questions.length, store.reads], [0, []])
})

test('reads: a version that memory has not is waited for once the store has it', async () => {
  const store = new HandMadeStore()
  const cached = await synced(store)
  const stored = store.put('a')
  const reading = cached.get(keyOf('a'), { signal, notOlderThan: stored.version })
  answer(store, 0)
  await turn()
  store.tell(stored)
  assert.equal((await reading).version, stored.version)
  const future = cached.get(keyOf('a'), { signal, notOlderThan: versionOfState(99) })
  answer(store, 1)
  await assert.rejects(future, { kind: 'future', version: versionOfState(store.revision) })
})

test('reads: go through to the store until everything has been read', async () => {
  const store = new HandMadeStore()
  store.put('a')
  store.holdsPages = true
  const cached = new CachedStorage({ inner: store, log })
  void cached.run(signal)
  await turn()
  assert.equal(cached.hasSynced, false)
  await cached.get(keyOf('a'), { signal })
  assert.deepEqual(store.reads, ['list', 'get'])
  store.pages[0]?.release()
  await cached.synced
  assert.equal(cached.hasSynced, true)
})

test('reads: while everything is read again they go through, and wait no longer', async () => {
  const store = new HandMadeStore()
  for (const name of ['a', 'b', 'c', 'd', 'e']) store.put(name, 'old')
  let rereads = 0
  const cached = await synced(store, () => void rereads++)
  store.events = store.events.filter(({ key }) => key.name !== 'b' && key.name !== 'e')
  store.put('c', 'new')
  store.holdsPages = true
  const waiting = cached.get(keyOf('c'), { signal })
  answer(store, 0)
  await turn()
  store.watches[0]?.say({ error: new StorageError({ kind: 'compacted', message: 'gone' }) })
  assert.equal(JSON.parse((await waiting).body.toString()).note, 'new')
  assert.equal(cached.hasSynced, false)
  assert.deepEqual(store.reads, ['get'])
  await until(() => store.reads.includes('list'))
  store.holdsPages = false
  for (const page of store.pages) page.release()
  await until(() => cached.hasSynced)
  const page = await cached.list(all, { limit: 10, signal, notOlderThan: beginning })
  const found = page.items.map(({ key, body }) => `${key.name} ${JSON.parse(body.toString()).note}`)
  assert.deepEqual(found, ['a old', 'c new', 'd old'])
  assert.deepEqual([cached.stats().initializations, rereads], [2, 1])
})

test('following: goes on from the last version after any failure but lost history', async () => {
  const store = new HandMadeStore()
  const cached = await synced(store)
  const stored = store.put('a')
  store.tell(stored)
  await turn()
  store.watches[0]?.say({ error: new StorageError({ kind: 'unavailable', message: 'away' }) })
  await until(() => store.watches.length === 2)
  assert.equal(store.watches[1]?.from, versionOfState(store.revision))
  assert.deepEqual([cached.hasSynced, cached.stats().initializations], [true, 1])
})

test('loading: all pages are of the version of the first; lost history starts it over', async () => {
  const store = new HandMadeStore()
  for (const name of ['a', 'b', 'c', 'd', 'e']) store.put(name)
  const version = versionOfState(store.revision)
  const cached = new CachedStorage({ inner: store, log })
  store.holdsPages = true
  void cached.run(signal)
  await turn()
  store.put('z')
  store.pages[0]?.release()
  await until(() => store.pages.length === 2)
  store.pageError = new StorageError({ kind: 'compacted', message: 'gone' })
  store.pages[1]?.release()
  assert.equal(store.pages[1]?.options.at, version)
  await turn()
  store.pageError = undefined
  store.holdsPages = false
  for (const page of store.pages) page.release()
  await cached.synced
  assert.equal(cached.count, 6)
})

async function until(holds: () => boolean): Promise<void> {
  for (let turns = 0; !holds(); turns++) {
    if (turns > 2_000) assert.fail('it does not come true')
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
}

test('lists: a page is of one state, whatever arrives while it is being asked for', async () => {
  // A batch may be taken in between any two steps of a list: every step gets its turn.
  for (let steps = 0; steps < 60; steps++) {
    const store = new HandMadeStore()
    const cached = await synced(store)
    for (let n = 0; n < 40; n++) store.tell(store.put('a', `${n}`))
    for (let step = 0; step < steps; step++) await Promise.resolve()
    const page = await cached.list(all, { limit: 10, signal, notOlderThan: beginning })
    for (const { version } of page.items) {
      assert.ok(version <= page.version, `after ${steps} steps: ${version} in ${page.version}`)
    }
  }
})

test('a store that goes back in time ends the following, as nothing remembered holds', async () => {
  const store = new HandMadeStore()
  for (let n = 0; n < 10; n++) store.put(`e-${n}`)
  const cached = new CachedStorage({ inner: store, log })
  const running = cached.run(signal)
  const ended = assert.rejects(running, /went back from revision 11 to 3: was it restored/)
  await cached.synced
  const watch = cached.watch(all, { from: versionOfState(11), signal })[Symbol.asyncIterator]()
  const told = assert.rejects(watch.next(), { kind: 'compacted' })
  const reading = cached.get(keyOf('e-1'), { signal })
  store.questions[0]?.resolve(versionOfState(3))
  await reading
  await told
  assert.equal(cached.hasSynced, false)
  await ended
})

test('reads: an answer over a connection that is not verified is not answered from memory', async () => {
  const store = new HandMadeStore()
  store.put('a', 'memory')
  const cached = await synced(store)
  const [watch] = store.watches
  // etcd was restored: the same revision, and another event under the same version.
  store.newestConnection = 2
  store.revision--
  store.put('a', 'restored')
  const reading = cached.get(keyOf('a'), { signal })
  answer(store, 0)
  await turn()
  assert.deepEqual(watch?.demanded, [2], 'the watch has to be verified over a later connection')
  watch?.say({ batch: { items: [], version: versionOfState(store.revision) } })
  await turn()
  Object.assign(watch ?? {}, { verified: 2 })
  watch?.say({ batch: { items: [], version: versionOfState(store.revision) } })
  // The watch says that it is the same history, which in this test it is not: so memory answers.
  assert.equal(JSON.parse((await reading).body.toString()).note, 'memory')
  assert.deepEqual(store.reads, [])
})

test('recall: nothing is believed while it is not known whether it is of this history', async () => {
  const store = new HandMadeStore()
  store.put('a')
  const cached = await synced(store)
  assert.ok(cached.recall(keyOf('a')))
  Object.assign(store.watches[0] ?? {}, { verified: 0 })
  assert.equal(cached.recall(keyOf('a')), undefined)
  assert.equal(await cached.isOfHistory(1, { signal, waitMsMax: 1 }), false)
})

test('loading: a page over a connection that was made meanwhile starts it over', async () => {
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

test('loading: the same version with another body is another event, after a restore', async () => {
  const store = new HandMadeStore()
  store.put('a', 'first')
  const cached = await synced(store)
  store.revision--
  store.put('a', 'second')
  store.watches[0]?.say({ error: new StorageError({ kind: 'compacted', message: 'gone' }) })
  await until(() => cached.stats().initializations === 2)
  const found = await cached.get(keyOf('a'), { signal, notOlderThan: beginning })
  assert.equal(JSON.parse(found.body.toString()).note, 'second')
})

test('verifying: a later connection is not of this history until the watch has proven it', async () => {
  const store = new HandMadeStore()
  const cached = await synced(store)
  const [watch] = store.watches
  assert.equal(cached.isVerifiedFor(1), true)
  assert.equal(cached.isVerifiedFor(2), false)
  assert.deepEqual(watch?.demanded, [2])
  Object.assign(watch ?? {}, { verified: 2 })
  assert.equal(cached.isVerifiedFor(2), true)
})

test('following: a bug while the history is marked ends it, and is not taken for an outage', async () => {
  const store = new HandMadeStore()
  const bug = new TypeError('a bug')
  store.mark = () => Promise.reject(bug)
  const end = new AbortController()
  const running = new CachedStorage({ inner: store, log }).run(end.signal)
  const timer = setTimeout(() => end.abort(), 1_000)
  await assert.rejects(running, bug)
  clearTimeout(timer)
})

test('behind: what was read is verified for the connection that it came over', async () => {
  const batch = { items: [], version: versionOfState(9) }
  const demanded: number[] = []
  const behind = new Behind({
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
      demanded.push(connection)
      return true
    },
  })
  const step = { scope: all, from: versionOfState(1), until: versionOfState(9), signal }
  assert.equal(await behind.read(step), batch)
  assert.deepEqual(demanded, [3])
})
