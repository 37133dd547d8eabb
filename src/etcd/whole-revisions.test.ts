import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EtcdError } from './errors.ts'
import type { WatchMessage } from './hot-messages.ts'
import type { WatchBatch, WatchEvent } from './protocol.ts'
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

test('whole revisions: an answer in one piece is handed on as it is', () => {
  const revisions = new WholeRevisions(4)
  const batch = revisions.take(message([5, 5, 6]))
  assert.deepEqual(revisionsOf(batch), [5, 5, 6])
  assert.equal(batch?.revision, 6)
  assert.equal(revisions.delivered, 6)
})

test('whole revisions: the last revision of a piece waits for the next piece', () => {
  const revisions = new WholeRevisions(4)
  const first = revisions.take(message([5, 6, 6], { fragment: true }))
  assert.deepEqual(revisionsOf(first), [5])
  assert.equal(first?.revision, 5)
  assert.deepEqual(revisionsOf(revisions.take(message([6, 6], { fragment: true }))), undefined)
  const last = revisions.take(message([6, 7]))
  assert.deepEqual(revisionsOf(last), [6, 6, 6, 6, 6, 7])
  assert.equal(last?.revision, 7)
})

test('whole revisions: what is held counts as not delivered when the stream starts over', () => {
  const revisions = new WholeRevisions(4)
  revisions.take(message([5, 6], { fragment: true }))
  assert.equal(revisions.delivered, 5)
  revisions.startOver()
  assert.deepEqual(revisionsOf(revisions.take(message([6, 6]))), [6, 6])
})

test('whole revisions: progress moves on without events and never goes back', () => {
  const revisions = new WholeRevisions(4)
  assert.deepEqual(revisions.take(message([], { revision: 9 })), { revision: 9, events: [] })
  assert.equal(revisions.take(message([], { revision: 8 })), undefined)
  assert.deepEqual(revisions.take(message([], { revision: 9 })), { revision: 9, events: [] })
  assert.equal(revisions.delivered, 9)
})

test('whole revisions: an event that was delivered before, or is out of order, is an error', () => {
  const isInternal = (error: unknown) => error instanceof EtcdError && error.kind === 'internal'
  const moving = new WholeRevisions(4)
  moving.take(message([5]))
  assert.throws(() => moving.take(message([5])), isInternal)
  assert.throws(() => new WholeRevisions(4).take(message([6, 5])), isInternal)
  const held = new WholeRevisions(4)
  held.take(message([5, 7], { fragment: true }))
  assert.throws(() => held.take(message([6])), isInternal)
})

test('whole revisions: what a new stream repeats of the delivered is dropped, at its start only', () => {
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
