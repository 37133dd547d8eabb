import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setImmediate as tick } from 'node:timers/promises'
import {
  type Answered,
  type Call,
  type EventApiUnderTest,
  withEventApi,
} from '../../support/event-api.ts'
import { eventually } from '../../support/eventually.ts'
import { Random } from '../../support/random.ts'
import { shardOf, shardSelector } from '../../support/shards.ts'
import { type Change, changeOf } from '../../support/watch-sequence.ts'
import type { Watched } from '../../support/watched.ts'
import { makeEvent, type WatchFrame, type WireEvent } from '../../support/wire-event.ts'

/** `node test/ci/integration/events-api-watch.test.ts <seed>` repeats a run. */
const seed = Number(process.argv[2] ?? Date.now() % 2 ** 32)
const mergePatch = { 'content-type': 'application/merge-patch+json' }
const colours = ['red', 'green', 'blue'] as const
const withInitial = {
  sendInitialEvents: 'true',
  resourceVersionMatch: 'NotOlderThan',
  allowWatchBookmarks: 'true',
}

/** Which events a watcher selects: as query parameters, and as a predicate of this test. */
interface Wanted {
  readonly query: Readonly<Record<string, string>>
  wants(event: WireEvent): boolean
}

const wanteds: readonly [Wanted, ...Wanted[]] = [
  { query: {}, wants: () => true },
  { query: { labelSelector: 'colour=red' }, wants: (event) => colourOf(event) === 'red' },
  {
    query: { labelSelector: 'colour in (red,blue)' },
    wants: (event) => ['red', 'blue'].includes(colourOf(event) ?? ''),
  },
  { query: { labelSelector: '!colour' }, wants: (event) => colourOf(event) === undefined },
  {
    query: { fieldSelector: 'metadata.name=e3', labelSelector: 'colour!=green' },
    wants: (event) => event.metadata.name === 'e3' && colourOf(event) !== 'green',
  },
  {
    query: { shardSelector: shardSelector(1, 3) },
    wants: (event) => shardOf(event.metadata.uid ?? '', 3) === 1,
  },
  {
    query: { shardSelector: shardSelector(0, 2), labelSelector: 'colour' },
    wants: (event) => shardOf(event.metadata.uid ?? '', 2) === 0 && colourOf(event) !== undefined,
  },
]

describe('watches', () => {
  let api: EventApiUnderTest

  withEventApi({
    // A short ring, so that some watchers fall off it.
    options: { historyBounds: { changesMax: 60, bytesMax: 1024 * 1024 } },
    begin: (started) => {
      api = started
    },
  })

  function create(namespace: string, name: string, fields = {}): Promise<Answered> {
    return api.call({ method: 'POST', at: namespace, body: makeEvent(namespace, name, fields) })
  }

  /** A random write to one of a few events. */
  async function writeOne(namespace: string, random: Random): Promise<void> {
    const name = `e${random.below(12)}`
    const at = `${namespace}/${name}`
    const colour = random.chance(0.2) ? undefined : random.pick(colours)
    const labels = colour === undefined ? {} : { colour }
    const event = makeEvent(namespace, name, { labels })
    const painted = { metadata: { labels: { colour: colour ?? null } } }
    const create: Call = { method: 'POST', at: namespace, body: event }
    const replace: Call = { method: 'PUT', at, body: event }
    const patch: Call = { method: 'PATCH', at, headers: mergePatch, body: painted }
    const remove: Call = { method: 'DELETE', at }
    const removeMany: Call = {
      method: 'DELETE',
      at: namespace,
      query: { labelSelector: 'colour=red', limit: 2 },
    }
    const oneOf = [create, create, create, replace, replace, patch, patch, patch, remove] as const
    await api.call(random.chance(0.02) ? removeMany : random.pick(oneOf))
  }

  test('every watcher gets exactly the changes it selects, from any start', async (t) => {
    t.diagnostic(`seed ${seed}`)
    const random = new Random(seed)
    const namespace = 'model'
    await using all = await api.watchFromNow(namespace)
    await using ends = new AsyncDisposableStack()
    const watchers: Begun[] = []
    const writers = Array.from({ length: 6 }, () => random.fork())
    const writes = writers.map(async (own) => {
      for (let write = 0; write < 120; write++) await writeOne(namespace, own)
    })
    let isOver = false
    const writing = Promise.all(writes).finally(() => {
      isOver = true
    })
    while (!isOver && watchers.length < 60) {
      const begun = await beginWatch(namespace, random)
      ends.use(begun.watched)
      watchers.push(begun)
      for (let ticks = random.below(40); ticks > 0; ticks--) await tick()
    }
    await writing
    const last = await create(namespace, 'last', { labels: { colour: 'red' } })
    const lastVersion = Number(last.json.metadata.resourceVersion)
    await eventually('the last change is received', () => hasReached(all, lastVersion))
    const history = all.frames
    t.diagnostic(`${history.length} changes, ${watchers.length} watchers`)
    for (const [index, { watched, wanted, from }] of watchers.entries()) {
      const received = () => checkable(watched.frames, from)
      const what = `watcher ${index}, ${JSON.stringify(wanted.query)}, seed ${seed}`
      await eventually(`${what} has received everything`, () => {
        const { version } = received()
        if (version === undefined) return false
        return received().changes.length >= owedAfter(history, version, wanted).length
      })
      const { initial, version = 0, changes } = received()
      assert.deepEqual(changes, owedAfter(history, version, wanted), what)
      if (from === undefined) assert.deepEqual(initial, stateAt(history, version, wanted), what)
      await watched[Symbol.asyncDispose]()
      await watched.ended
    }
  })

  interface Begun {
    readonly watched: Watched
    readonly wanted: Wanted
    /** Undefined when the watch begins with the initial events. */
    readonly from: number | undefined
  }

  async function beginWatch(namespace: string, random: Random): Promise<Begun> {
    const wanted = random.pick(wanteds)
    if (random.chance(0.6)) {
      const resourceVersion = random.chance(0.3) ? { resourceVersion: '0' } : {}
      const query = { ...wanted.query, ...withInitial, ...resourceVersion }
      return { watched: await api.watch(namespace, query), wanted, from: undefined }
    }
    const { json } = await api.call({ at: namespace, query: { limit: 1 } })
    const { resourceVersion } = json.metadata
    const watched = await api.watch(namespace, { ...wanted.query, resourceVersion })
    return { watched, wanted, from: Number(resourceVersion) }
  }

  test('an event that leaves a selection is sent as it last was, with the version of the change', async () => {
    const { json } = await create('leaving', 'e', { labels: { colour: 'red' } })
    const query = { labelSelector: 'colour=red', resourceVersion: json.metadata.resourceVersion }
    await using watched = await api.watch('leaving', query)
    const paint = async (colour: string): Promise<Answered> => {
      const body = { metadata: { labels: { colour } } }
      return api.call({ method: 'PATCH', at: 'leaving/e', headers: mergePatch, body })
    }
    const left = await paint('blue')
    await paint('green')
    const entered = await paint('red')
    await eventually('both are received', () => watched.frames.length === 2)
    const [gone, back] = watched.frames
    const { resourceVersion } = left.json.metadata
    assert.deepEqual(gone, {
      type: 'DELETED',
      object: { ...json, metadata: { ...json.metadata, resourceVersion } },
    })
    assert.deepEqual(back, { type: 'ADDED', object: entered.json })
  })

  test('a watch of one event, by either path, gets no other event', async () => {
    await create('single', 'e')
    await create('single', 'e2')
    const end = new AbortController()
    const { handler } = api
    const response = await handler({
      method: 'GET',
      path: '/apis/events.k8s.io/v1/watch/namespaces/single/events/e',
      query: new URLSearchParams({ timeoutSeconds: '1' }),
      headers: { authorization: 'Bearer x' },
      peer: { address: '', isLoopback: true, clientCertificate: () => undefined },
      signal: end.signal,
      body: async () => Buffer.alloc(0),
    })
    const chunks: string[] = []
    const begun = performance.now()
    for await (const chunk of response.body as AsyncIterable<Buffer>) chunks.push(chunk.toString())
    const ms = performance.now() - begun
    assert.ok(ms > 900 && ms < 3_000, `the watch ended after ${ms} ms`)
    const frames = chunks.join('').trimEnd().split('\n')
    assert.equal(frames.length, 1)
    assert.equal(JSON.parse(frames[0] ?? '').object.metadata.name, 'e')
  })

  test('a watch ends normally when its timeout is over', async () => {
    const begun = performance.now()
    await using one = await api.watch('timed', { timeoutSeconds: 1 })
    await using over = await api.watch('timed', { timeoutSeconds: -1 })
    await over.ended
    assert.ok(performance.now() - begun < 500)
    await one.ended
    assert.ok(performance.now() - begun > 900)
    assert.deepEqual([...one.frames, ...over.frames], [])
    assert.equal(api.storage.stats().watchersWaiting, 0)
  })

  test('bookmarks are sent only to watches that allow them', async () => {
    await create('marked', 'e')
    await using asked = await api.watch('marked', withInitial)
    const { allowWatchBookmarks: _bookmarks, ...noBookmarks } = withInitial
    await using unasked = await api.watch('marked', noBookmarks)
    await using plain = await api.watch('marked', { allowWatchBookmarks: true, resourceVersion: 1 })
    await eventually('both have come', () => asked.frames.length === 2)
    assert.deepEqual(
      asked.frames.map(({ type }) => type),
      ['ADDED', 'BOOKMARK'],
    )
    const metadata: Answered['json'] = asked.frames[1]?.object.metadata
    assert.equal(metadata.annotations['k8s.io/initial-events-end'], 'true')
    await create('marked', 'later')
    for (const watched of [unasked, plain]) {
      await eventually('the later watch has received it', () =>
        watched.received.includes('ADDED later'),
      )
      assert.deepEqual(watched.received, ['ADDED e', 'ADDED later'])
    }
  })

  test('a watch over all namespaces with a selector of one equals the watch of that namespace', async () => {
    const { json } = await api.call({ at: '', query: { limit: 1 } })
    const { resourceVersion } = json.metadata
    const fieldSelector = 'metadata.namespace=a'
    await using narrowed = await api.watch('', { fieldSelector, resourceVersion })
    await using impossible = await api.watch('a', {
      fieldSelector: 'metadata.namespace=b',
      resourceVersion,
    })
    await using everything = await api.watch('', { resourceVersion })
    for (const namespace of ['a', 'a-b', 'aa']) await create(namespace, 'x')
    await create('a', 'y')
    await eventually('all are received', () => everything.frames.length === 4)
    await eventually('both are received', () => narrowed.frames.length === 2)
    assert.deepEqual(narrowed.received, ['ADDED x', 'ADDED y'])
    assert.deepEqual(impossible.frames, [])
  })
})

function colourOf({ metadata }: WireEvent): string | undefined {
  return metadata.labels?.['colour']
}

function hasReached({ frames }: Watched, version: number): boolean {
  return Number(frames.at(-1)?.object.metadata.resourceVersion) >= version
}

/** The initial events, their version, and the changes after it. */
function checkable(
  frames: readonly WatchFrame[],
  from: number | undefined,
): {
  readonly initial: readonly string[]
  readonly version: number | undefined
  readonly changes: readonly Change[]
} {
  if (from !== undefined) return { initial: [], version: from, changes: frames.map(changeOf) }
  const mark = frames.findIndex(({ type }) => type === 'BOOKMARK')
  if (mark === -1) return { initial: [], version: undefined, changes: [] }
  return {
    initial: frames.slice(0, mark).map(({ type, object }) => stateText(type, object)),
    version: Number(frames[mark]?.object.metadata.resourceVersion),
    changes: frames.slice(mark + 1).map(changeOf),
  }
}

/** The initial events at a version, as a watcher with this selection gets them. */
function stateAt(history: readonly WatchFrame[], version: number, wanted: Wanted): string[] {
  return [...replayed(history, version).values()]
    .filter((event) => wanted.wants(event))
    .toSorted((one, other) => (one.metadata.name < other.metadata.name ? -1 : 1))
    .map((event) => stateText('ADDED', event))
}

function replayed(history: readonly WatchFrame[], version: number): Map<string, WireEvent> {
  const events = new Map<string, WireEvent>()
  for (const { type, object } of history) {
    if (Number(object.metadata.resourceVersion) > version) break
    if (type === 'DELETED') events.delete(object.metadata.name)
    else events.set(object.metadata.name, object)
  }
  return events
}

/** The changes after a version that a watcher with this selection must get. */
function owedAfter(history: readonly WatchFrame[], version: number, wanted: Wanted): Change[] {
  const events = replayed(history, version)
  const owed: Change[] = []
  for (const frame of history) {
    const { key, version: changed } = changeOf(frame)
    if (changed <= version) continue
    const { name } = frame.object.metadata
    const old = events.get(name)
    const wasIn = old !== undefined && wanted.wants(old)
    const isIn = frame.type !== 'DELETED' && wanted.wants(frame.object)
    if (isIn) owed.push({ type: wasIn ? 'MODIFIED' : 'ADDED', key, version: changed })
    else if (wasIn) owed.push({ type: 'DELETED', key, version: changed })
    if (frame.type === 'DELETED') events.delete(name)
    else events.set(name, frame.object)
  }
  return owed
}

function stateText(type: string, { metadata }: WireEvent): string {
  return `${type} ${metadata.name} ${metadata.resourceVersion}`
}
