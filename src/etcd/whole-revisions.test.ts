import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EtcdError } from './errors.ts'
import type { WatchMessage } from './protocol/hot-messages.ts'
import type { WatchBatch, WatchEvent } from './protocol/protocol.ts'
import { WholeRevisions } from './whole-revisions.ts'

function event(revision: number, key = 'k'): WatchEvent {
  const kv = {
    key: Buffer.from(key),
    value: Buffer.alloc(0),
    createRevision: revision,
    modRevision: revision,
    version: 1,
    lease: 0n,
  }
  return { type: 'put', kv, prevKv: undefined }
}

function message(revisions: readonly number[], options?: Partial<WatchMessage>): WatchMessage {
  return {
    revision: 1000,
    created: false,
    canceled: false,
    compactRevision: 0,
    cancelReason: '',
    fragment: false,
    events: revisions.map((revision) => event(revision)),
    ...options,
  }
}

function revisionsOf(batch: WatchBatch | undefined): readonly number[] | undefined {
  return batch?.events.map((item) => item.kv.modRevision)
}

test('an unfragmented response is delivered unchanged', () => {
  const revisions = new WholeRevisions(4)
  const batch = revisions.take(message([5, 5, 6]))
  assert.deepEqual(revisionsOf(batch), [5, 5, 6])
  assert.equal(batch?.revision, 6)
  assert.equal(revisions.delivered, 6)
})

test('the last revision of a fragment is buffered until the next fragment', () => {
  const revisions = new WholeRevisions(4)
  const first = revisions.take(message([5, 6, 6], { fragment: true }))
  assert.deepEqual(revisionsOf(first), [5])
  assert.equal(first?.revision, 5)
  assert.deepEqual(revisionsOf(revisions.take(message([6, 6], { fragment: true }))), undefined)
  const last = revisions.take(message([6, 7]))
  assert.deepEqual(revisionsOf(last), [6, 6, 6, 6, 6, 7])
  assert.equal(last?.revision, 7)
})

test('buffered changes are not delivered yet when the stream starts over', () => {
  const revisions = new WholeRevisions(4)
  revisions.take(message([5, 6], { fragment: true }))
  assert.equal(revisions.delivered, 5)
  revisions.startOver()
  assert.deepEqual(revisionsOf(revisions.take(message([6, 6]))), [6, 6])
})

test('progress advances without events and never goes back', () => {
  const revisions = new WholeRevisions(4)
  assert.deepEqual(revisions.take(message([], { revision: 9 })), { revision: 9, events: [] })
  assert.equal(revisions.take(message([], { revision: 8 })), undefined)
  assert.deepEqual(revisions.take(message([], { revision: 9 })), { revision: 9, events: [] })
  assert.equal(revisions.delivered, 9)
})

test('an event that is repeated or out of order is an error', () => {
  const isInternal = (error: unknown) => error instanceof EtcdError && error.kind === 'internal'
  const moving = new WholeRevisions(4)
  moving.take(message([5]))
  assert.throws(() => moving.take(message([5])), isInternal)
  assert.throws(() => new WholeRevisions(4).take(message([6, 5])), isInternal)
  const buffered = new WholeRevisions(4)
  buffered.take(message([5, 7], { fragment: true }))
  assert.throws(() => buffered.take(message([6])), isInternal)
})

test('delivered changes that a new stream repeats are dropped at its start only', () => {
  const revisions = new WholeRevisions(4)
  assert.equal(revisions.take(message([3, 4, 4])), undefined)
  assert.deepEqual(revisions.take(message([4, 5]))?.events.map(revisionOf), [5])
  revisions.startOver()
  assert.deepEqual(revisions.take(message([5, 6, 6]))?.events.map(revisionOf), [6, 6])
  assert.equal(revisions.delivered, 6)
})

function revisionOf(event: WatchEvent): number {
  return event.kv.modRevision
}
