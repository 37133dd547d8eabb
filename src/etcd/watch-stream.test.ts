import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, mock, test } from 'node:test'
import { FakeStream, fakeMembers, settle } from './fake-members.fixture.ts'
import { encodeWatchCreate } from './protocol/control-messages.ts'
import type { WatchMessage } from './protocol/hot-messages.ts'
import type { KeyValue, WatchEvent } from './protocol/protocol.ts'
import { WatchStream } from './watch-stream.ts'

// Tests what a watch does when etcd sends changes without their previous values.

const key = Buffer.from('a')
const created = message({ created: true })

function message(some: Partial<WatchMessage>): WatchMessage {
  const none = { revision: 20, compactRevision: 0, cancelReason: '', events: [] }
  return { ...none, created: false, canceled: false, fragment: false, ...some }
}

function kvOf(modRevision: number): KeyValue {
  const value = Buffer.from(String(modRevision))
  return { key, value, createRevision: 1, modRevision, version: modRevision, lease: 0n }
}

/** An update of the key, which changes with each revision. */
function update(revision: number): WatchEvent {
  return { type: 'put', kv: kvOf(revision), prevKv: kvOf(revision - 1) }
}

function lacking(revision: number): WatchEvent {
  return { ...update(revision), prevKv: undefined }
}

/** Watches from revision 10 on. */
function setUp() {
  const { members, streams } = fakeMembers(() => new FakeStream<WatchMessage>())
  const ending = new AbortController()
  const watch = new WatchStream({
    request: { key, startRevision: 10, prevKv: true, signal: ending.signal },
    members,
    closing: new AbortController().signal,
  })
  const seen: WatchEvent[] = []
  const follow = async () => {
    for await (const { events } of watch) seen.push(...events)
  }
  const ended = follow()
  ended.catch(() => {})
  /** Sends on the newest stream; when the watch leaves it, it has opened the next one at the end. */
  const send = async (...messages: readonly WatchMessage[]) => {
    for (const each of messages) streams.at(-1)?.deliver(each)
    await settle()
    if (streams.at(-1)?.isCancelled === true) mock.timers.tick(1_000)
    await settle()
  }
  const starts = () => streams.map(({ requests }) => startOf(requests[0]))
  return { streams, seen, send, starts, ended, end: () => ending.abort() }
}

function startOf(request: Buffer | undefined): number | undefined {
  const revisions = Array.from({ length: 20 }, (_, revision) => revision)
  return revisions.find((startRevision) =>
    request?.equals(encodeWatchCreate({ key, startRevision, prevKv: true, fragment: true })),
  )
}

describe('a watch with previous values', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }))
  afterEach(() => mock.timers.reset())

  test('reads changes again that lack them, however often they do', async () => {
    const { streams, seen, send, starts, ended, end } = setUp()
    await settle()
    for (let stream = 1; stream <= 10; stream++) {
      await send(created, message({ events: [update(10), lacking(11)] }))
      assert.deepEqual([seen, streams.length], [[], stream + 1])
    }
    await send(created, message({ events: [update(10), update(11)] }))
    assert.deepEqual(seen, [update(10), update(11)])
    assert.deepEqual([...new Set(starts())], [9])
    end()
    await ended
  })

  test('passes on what lacks them because etcd has compacted them, and only that', async () => {
    const { streams, seen, send, starts, ended, end } = setUp()
    await settle()
    await send(created, message({ canceled: true, compactRevision: 10 }))
    await send(created, message({ events: [lacking(10), lacking(11)] }))
    assert.deepEqual(seen, [])
    await send(created, message({ events: [lacking(10), update(11)] }))
    assert.deepEqual(seen, [lacking(10), update(11)])
    await send(message({ events: [lacking(12)] }))
    assert.deepEqual([seen.length, streams.length], [2, 4])
    assert.deepEqual(starts(), [9, 10, 10, 11])
    end()
    await ended
  })

  test('ends as compacted when etcd says so', async () => {
    const { send, ended } = setUp()
    await settle()
    await send(created, message({ events: [lacking(10)] }))
    await send(created, message({ canceled: true, compactRevision: 12 }))
    await assert.rejects(ended, { kind: 'compacted', compactRevision: 12 })
  })
})
