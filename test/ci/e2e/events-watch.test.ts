import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { EventClient } from '../../support/event-client.ts'
import { again, isFull } from '../../support/load.ts'
import { Replicas } from '../../support/replicas.ts'
import {
  changeOf,
  replay,
  sequenceFaults,
  statesOf,
  WatchLog,
} from '../../support/watch-sequence.ts'
import { makeEvent, type WatchFrame } from '../../support/wire-event.ts'

const INITIAL_END = 'k8s.io/initial-events-end'
/** Half of them on each connection, which allows 100 streams. */
const INITIAL_WATCHES = isFull ? 150 : 30
/** The server sends a bookmark by itself once a minute: too long for the short run. */
const BOOKMARK_WAIT_MS = isFull ? 75_000 : 0

describe('a watch over the wire', () => {
  let replicas: Replicas
  let a: EventClient
  let b: EventClient

  before(async () => {
    replicas = await Replicas.start(2)
    a = await replicas.client(0)
    b = await replicas.client(1)
  })
  after(async () => {
    a[Symbol.dispose]()
    b[Symbol.dispose]()
    await replicas[Symbol.asyncDispose]()
  })

  test('sends the existing events, then changes, and bookmarks only if allowed', async () => {
    const namespace = 'initial'
    await a.create(makeEvent(namespace, 'b'))
    await b.create(makeEvent(namespace, 'a'))
    using bare = new WatchLog(await a.watch(namespace))
    using marked = new WatchLog(await b.watch(namespace, { allowWatchBookmarks: true }))
    await bare.until('what is there', (frames) => frames.length >= 2)
    await marked.until('what is there', (frames) => frames.length >= 3)
    await b.create(makeEvent(namespace, 'c'))
    await bare.until('c', (frames) => frames.length >= 3)
    await marked.until('c', (frames) => frames.length >= 4)
    assert.deepEqual(bare.frames.map(briefly), ['ADDED a', 'ADDED b', 'ADDED c'])
    assert.deepEqual(marked.frames.map(briefly), ['ADDED a', 'ADDED b', 'BOOKMARK ', 'ADDED c'])
    const { object } = marked.frames[2] ?? assert.fail()
    assert.deepEqual(object.metadata.annotations, { [INITIAL_END]: 'true' })
    assert.equal(object.kind, 'Event')
    assert.ok(Number(object.metadata.resourceVersion) > 0)
  })

  test('sends the state of its initial bookmark, then every change once, during writes', async (t) => {
    const namespace = 'streamed'
    const { metadata } = await a.list(namespace)
    using reference = new WatchLog(
      await b.watch(namespace, { resourceVersion: metadata.resourceVersion }),
    )
    const writers = [a, b].map((client, id) =>
      again((round) => churn(client, namespace, `${id}-${round}`)),
    )
    const logs: WatchLog[] = []
    for (let index = 0; index < INITIAL_WATCHES; index++) {
      const watch = await (index % 2 === 0 ? a : b).watch(namespace, {
        sendInitialEvents: true,
        resourceVersionMatch: 'NotOlderThan',
        allowWatchBookmarks: true,
      })
      logs.push(new WatchLog(watch))
      await sleep(20)
    }
    await Promise.all(writers.map((writer) => writer.stop()))
    const last = await a.create(makeEvent(namespace, 'the-last'))
    const lastVersion = Number(last.metadata.resourceVersion)
    await reference.reach(lastVersion)
    for (const log of logs) {
      await log.reach(lastVersion)
      assertInitialThenLive(log, reference)
      log[Symbol.dispose]()
    }
    t.diagnostic(`${logs.length} such watches amid ${reference.frames.length} changes`)
  })

  test('sends only events that match a field selector', async () => {
    const namespace = 'fields'
    const { metadata } = await a.list(namespace)
    using log = new WatchLog(
      await b.watch(namespace, {
        resourceVersion: metadata.resourceVersion,
        fieldSelector: 'type=Warning,reason!=Boring',
      }),
    )
    await a.create(makeEvent(namespace, 'normal'))
    await a.create(makeEvent(namespace, 'boring', { type: 'Warning', reason: 'Boring' }))
    await a.create(makeEvent(namespace, 'wanted', { type: 'Warning' }))
    await a.delete(namespace, 'normal')
    await a.delete(namespace, 'wanted')
    await log.until('the end', (frames) => frames.some(({ type }) => type === 'DELETED'))
    assert.deepEqual(log.frames.map(briefly), ['ADDED wanted', 'DELETED wanted'])
  })

  test('resumes at any version, through either replica, without a gap', async () => {
    const namespace = 'resumed'
    const { metadata } = await a.list(namespace)
    const from = { resourceVersion: metadata.resourceVersion }
    using whole = new WatchLog(await a.watch(namespace, from))
    await Promise.all(
      Array.from({ length: 60 }, (_, index) =>
        (index % 2 === 0 ? a : b).create(makeEvent(namespace, `e-${index}`)),
      ),
    )
    await whole.until('all', (frames) => frames.length >= 60)
    for (const [index, { version }] of whole.changes.entries()) {
      const resumed = await (index % 2 === 0 ? b : a).watch(namespace, { resourceVersion: version })
      using log = new WatchLog(resumed)
      await log.until('the rest', (frames) => frames.length >= 59 - index)
      assert.deepEqual(sequenceFaults(whole.changes.slice(index + 1), log.changes), [])
    }
  })

  test('sends a periodic bookmark with the current version', {
    skip: isFull ? false : 'it is sent once a minute: run this file with full',
    timeout: BOOKMARK_WAIT_MS * 2,
  }, async () => {
    const { metadata } = await a.list('quiet')
    using log = new WatchLog(
      await a.watch('quiet', {
        resourceVersion: metadata.resourceVersion,
        allowWatchBookmarks: true,
      }),
    )
    const elsewhere = await b.create(makeEvent('elsewhere', 'e'))
    await log.until('a bookmark', (frames) => frames.length > 0, BOOKMARK_WAIT_MS)
    const { type, object } = log.frames[0] ?? assert.fail()
    assert.equal(type, 'BOOKMARK')
    assert.ok(Number(object.metadata.resourceVersion) >= Number(versionIn(elsewhere)))
  })
})

/** Writes three times; one event of each round stays. */
async function churn(client: EventClient, namespace: string, id: string): Promise<void> {
  await client.create(makeEvent(namespace, `gone-${id}`))
  const patch = { metadata: { labels: { round: id } } }
  await client.create(makeEvent(namespace, `stays-${id}`))
  await client.patch(namespace, `stays-${id}`, { type: 'merge-patch', patch })
  await client.delete(namespace, `gone-${id}`)
}

function assertInitialThenLive(log: WatchLog, reference: WatchLog): void {
  const endOfInitial = log.frames.findIndex(({ type }) => type === 'BOOKMARK')
  const bookmark = log.frames[endOfInitial]?.object ?? assert.fail('no bookmark')
  assert.deepEqual(bookmark.metadata.annotations, { [INITIAL_END]: 'true' })
  const version = Number(bookmark.metadata.resourceVersion)
  const initial = log.frames.slice(0, endOfInitial)
  assert.ok(initial.every(({ type }) => type === 'ADDED'))
  assert.deepEqual(
    statesOf(initial.map(({ object }) => object)),
    replay(reference.changes.filter((change) => change.version <= version)),
    `the state at ${version}`,
  )
  assert.deepEqual(
    sequenceFaults(
      reference.changes.filter((change) => change.version > version),
      log.frames.slice(endOfInitial + 1).map(changeOf),
    ),
    [],
  )
}

function briefly({ type, object }: WatchFrame): string {
  return `${type} ${object.metadata.name ?? ''}`
}

function versionIn({ metadata }: { readonly metadata: object }): string {
  return 'resourceVersion' in metadata ? String(metadata.resourceVersion) : ''
}
