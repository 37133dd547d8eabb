import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Event } from '../api/event.ts'
import { afterDelete, changedEvent, isReleased, newEvent } from './strategy.ts'

const creation = { name: 'n', namespace: 'ns', uid: 'u', at: '2026-01-01T00:00:00Z' }
const now = '2026-02-03T04:05:06Z'

function eventOf(metadata: Event['metadata'], note = 'x'): Event {
  return { metadata, note } as Event
}

describe('a new event', () => {
  test('fields of the server are set by the server', () => {
    const sent = eventOf({
      name: 'theirs',
      namespace: 'theirs',
      uid: 'theirs',
      resourceVersion: '7',
      generation: 3,
      selfLink: '/x',
      creationTimestamp: '1999-01-01T00:00:00Z',
      deletionTimestamp: '1999-01-01T00:00:00Z',
      deletionGracePeriodSeconds: 5,
      managedFields: [],
      labels: { a: 'b' },
      finalizers: ['example.com/f'],
    })
    assert.deepEqual(newEvent(sent, creation), {
      metadata: {
        name: 'n',
        namespace: 'ns',
        uid: 'u',
        generation: 3,
        creationTimestamp: '2026-01-01T00:00:00Z',
        labels: { a: 'b' },
        finalizers: ['example.com/f'],
      },
      note: 'x',
    })
  })

  test('a new event keeps its own name when none was generated', () => {
    const { metadata } = newEvent(eventOf({ name: 'theirs' }), { ...creation, name: undefined })
    assert.equal(metadata.name, 'theirs')
  })
})

describe('a changed event', () => {
  const old = eventOf({
    name: 'n',
    namespace: 'ns',
    uid: 'u',
    generation: 2,
    creationTimestamp: '2026-01-01T00:00:00Z',
    labels: { a: 'b' },
  })

  test('fields of the server keep their values', () => {
    const sent = eventOf(
      { name: 'n', namespace: 'ns', generation: 9, creationTimestamp: now, resourceVersion: '3' },
      'y',
    )
    const { labels: _labels, ...metadata } = old.metadata
    assert.deepEqual(changedEvent(sent, old), { metadata, note: 'y' })
  })

  test('a changed event has no undefined members', () => {
    const bare = eventOf({ name: 'n', namespace: 'ns' })
    assert.deepEqual(Object.keys(changedEvent(bare, bare).metadata), ['name', 'namespace'])
  })

  test('a change does not cancel a deletion', () => {
    const marked = eventOf({
      ...old.metadata,
      finalizers: ['example.com/f'],
      deletionTimestamp: now,
      deletionGracePeriodSeconds: 0,
    })
    const sent = eventOf({ ...old.metadata, deletionTimestamp: '1999-01-01T00:00:00Z' })
    const { metadata } = changedEvent(sent, marked)
    assert.equal(metadata.deletionTimestamp, now)
    assert.equal(metadata.deletionGracePeriodSeconds, 0)
    assert.equal(metadata.finalizers, undefined)
    assert.equal(isReleased(changedEvent(sent, marked)), true)
  })
})

describe('a deleted event', () => {
  test('an event without finalizers is removed', () => {
    for (const finalizers of [undefined, [], ['orphan'], ['foregroundDeletion', 'orphan']]) {
      const event = eventOf({ name: 'n', ...(finalizers === undefined ? {} : { finalizers }) })
      assert.equal(afterDelete(event, now), undefined)
    }
  })

  test('an event with finalizers is marked, and loses those of the garbage collector', () => {
    const event = eventOf({ name: 'n', finalizers: ['orphan', 'example.com/f'] })
    assert.deepEqual(afterDelete(event, now)?.metadata, {
      name: 'n',
      finalizers: ['example.com/f'],
      deletionTimestamp: now,
      deletionGracePeriodSeconds: 0,
    })
    assert.equal(event.metadata.deletionTimestamp, undefined)
  })

  test('a marked event gets the next generation, if it has one', () => {
    const generationAfter = (generation: number): number | undefined => {
      const event = eventOf({ name: 'n', generation, finalizers: ['example.com/f'] })
      return afterDelete(event, now)?.metadata.generation
    }
    assert.equal(generationAfter(3), 4)
    assert.equal(generationAfter(0), 0)
  })

  test('an event that is already marked is unchanged', () => {
    const event = eventOf({
      name: 'n',
      generation: 3,
      finalizers: ['example.com/f'],
      deletionTimestamp: '2026-01-01T00:00:00Z',
    })
    assert.equal(afterDelete(event, now), event)
  })

  test('a marked event is released when its last finalizer is gone', () => {
    assert.equal(isReleased(eventOf({ deletionTimestamp: now })), true)
    assert.equal(isReleased(eventOf({ deletionTimestamp: now, finalizers: [] })), true)
    assert.equal(isReleased(eventOf({ deletionTimestamp: now, finalizers: ['f'] })), false)
    assert.equal(isReleased(eventOf({ finalizers: [] })), false)
  })
})

test('annotations that only mirrors may set are dropped from what clients send', () => {
  const marks = { 'tidings.dev/origin-resource-version': '999', 'tidings.dev/origin-epoch': '9' }
  const sent = eventOf({ name: 'n', annotations: { a: 'b', ...marks } })
  assert.deepEqual(newEvent(sent, creation).metadata.annotations, { a: 'b' })
  assert.deepEqual(changedEvent(sent, eventOf({ name: 'n' })).metadata.annotations, { a: 'b' })
  const onlyMarks = eventOf({ name: 'n', annotations: marks })
  assert.equal(newEvent(onlyMarks, creation).metadata.annotations, undefined)
})
