import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { dirname, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { etcdBinary } from '../../support/etcd.ts'
import type { EventClient } from '../../support/event-client.ts'
import { eventually } from '../../support/eventually.ts'
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

  test('a watch without a version gets the existing events, then changes, and bookmarks only if allowed', async () => {
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

  test('a watch with sendInitialEvents gets the state of its bookmark, then every change once, during writes', async (t) => {
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

  test('a watch with a label selector gets events that enter and leave, with the version of the change', async () => {
    const namespace = 'selected'
    const { metadata } = await a.list(namespace)
    using log = new WatchLog(
      await b.watch(namespace, {
        resourceVersion: metadata.resourceVersion,
        labelSelector: 'tier=front',
      }),
    )
    const label = (tier: string | null, other: string): Promise<{ metadata: object }> =>
      a.patch(namespace, 'one', {
        type: 'merge-patch',
        patch: { metadata: { labels: { tier, other } } },
      })
    await a.create(makeEvent(namespace, 'one', { labels: { tier: 'back' } }))
    const entered = await label('front', '1')
    const changed = await label('front', '2')
    const left = await label(null, '3')
    await label(null, '4')
    const returned = await label('front', '5')
    await b.delete(namespace, 'one')
    await a.create(makeEvent(namespace, 'unseen', { labels: { tier: 'back' } }))
    const born = await a.create(makeEvent(namespace, 'two', { labels: { tier: 'front' } }))

    await log.until('all of it', (frames) => frames.length >= 6)
    assert.deepEqual(log.frames.map(briefly), [
      'ADDED one',
      'MODIFIED one',
      'DELETED one',
      'ADDED one',
      'DELETED one',
      'ADDED two',
    ])
    const [first, second, third, fourth, fifth, sixth] = log.frames.map(({ object }) => object)
    assert.deepEqual(first, entered)
    assert.deepEqual(second, changed)
    assert.deepEqual(
      third,
      { ...changed, metadata: { ...changed.metadata, resourceVersion: versionIn(left) } },
      'the last matching state, with the version of the change',
    )
    assert.deepEqual(fourth, returned)
    assert.equal(fifth?.metadata.labels?.['other'], '5')
    assert.ok(Number(fifth?.metadata.resourceVersion) > Number(versionIn(returned)))
    assert.deepEqual(sixth, born)
  })

  test('a watch with a field selector gets only events that match', async () => {
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

  test('a watch with timeoutSeconds=1 ends normally, after a second', async () => {
    const startedAt = performance.now()
    using log = new WatchLog(await a.watch('brief', { resourceVersion: 1, timeoutSeconds: 1 }))
    assert.equal(await log.ended, undefined)
    const tookMs = performance.now() - startedAt
    assert.ok(tookMs >= 950 && tookMs < 3000, `ended after ${tookMs} ms`)
    assert.deepEqual(log.frames, [])
  })

  test('a watch resumed at any version gets everything after it, through either replica', async () => {
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

  test('a periodic bookmark has the current version of the watch', {
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

describe('a watch from a compacted version', () => {
  test('a watch from a compacted version gets 410 Expired as its only frame', async () => {
    await using replicas = await Replicas.start(1)
    using client = await replicas.client(0)
    const first = await client.create(makeEvent('old', 'first'))
    for (let index = 0; index < 5; index++) await client.create(makeEvent('old', `e-${index}`))
    const last = await client.create(makeEvent('old', 'last'))
    await compact(replicas, Math.floor(Number(versionIn(last)) / 1000))
    // The cache still has the changes; a replica started now does not.
    await replicas.startOne(0)
    using fresh = await replicas.client(0)
    using log = new WatchLog(await fresh.watch('old', { resourceVersion: versionIn(first) }))
    assert.equal(await log.ended, undefined)
    assert.equal(log.frames.length, 1)
    const { type, object } = log.frames[0] ?? assert.fail()
    assert.equal(type, 'ERROR')
    assert.equal(object.kind, 'Status')
    assert.equal(object.code, 410)
    assert.equal(object.reason, 'Expired')
    using alive = new WatchLog(await fresh.watch('old', { resourceVersion: versionIn(last) }))
    await fresh.create(makeEvent('old', 'after'))
    await eventually('a watch from the newest version is served', () => alive.frames.length === 1)
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

async function compact(replicas: Replicas, revision: number): Promise<void> {
  await promisify(execFile)(join(dirname(etcdBinary), 'etcdctl'), [
    `--endpoints=${replicas.etcd.endpoints.join(',')}`,
    'compact',
    String(revision),
  ])
}
