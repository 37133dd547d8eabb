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
  test('has fields that only the server sets', () => {
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

  test('keeps its own name when none was generated', () => {
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

  test('keeps the values that the server set', () => {
    const sent = eventOf(
      { name: 'n', namespace: 'ns', generation: 9, creationTimestamp: now, resourceVersion: '3' },
      'y',
    )
    const { labels: _labels, ...metadata } = old.metadata
    assert.deepEqual(changedEvent(sent, old), { metadata, note: 'y' })
  })

  test('has no undefined members', () => {
    const bare = eventOf({ name: 'n', namespace: 'ns' })
    assert.deepEqual(Object.keys(changedEvent(bare, bare).metadata), ['name', 'namespace'])
  })

  test('is still being deleted', () => {
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
  test('is removed without finalizers', () => {
    for (const finalizers of [undefined, [], ['orphan'], ['foregroundDeletion', 'orphan']]) {
      const event = eventOf({ name: 'n', ...(finalizers === undefined ? {} : { finalizers }) })
      assert.equal(afterDelete(event, now), undefined)
    }
  })

  test('is marked while it has finalizers, and loses those of the garbage collector', () => {
    const event = eventOf({ name: 'n', finalizers: ['orphan', 'example.com/f'] })
    assert.deepEqual(afterDelete(event, now)?.metadata, {
      name: 'n',
      finalizers: ['example.com/f'],
      deletionTimestamp: now,
      deletionGracePeriodSeconds: 0,
    })
    assert.equal(event.metadata.deletionTimestamp, undefined)
  })

  test('gets the next generation, if it has one', () => {
    const generationAfter = (generation: number): number | undefined => {
      const event = eventOf({ name: 'n', generation, finalizers: ['example.com/f'] })
      return afterDelete(event, now)?.metadata.generation
    }
    assert.equal(generationAfter(3), 4)
    assert.equal(generationAfter(0), 0)
  })

  test('is unchanged when it is already marked', () => {
    const event = eventOf({
      name: 'n',
      generation: 3,
      finalizers: ['example.com/f'],
      deletionTimestamp: '2026-01-01T00:00:00Z',
    })
    assert.equal(afterDelete(event, now), event)
  })

  test('is released when its last finalizer is gone', () => {
    assert.equal(isReleased(eventOf({ deletionTimestamp: now })), true)
    assert.equal(isReleased(eventOf({ deletionTimestamp: now, finalizers: [] })), true)
    assert.equal(isReleased(eventOf({ deletionTimestamp: now, finalizers: ['f'] })), false)
    assert.equal(isReleased(eventOf({ finalizers: [] })), false)
  })
})

test('drops annotations that only mirrors may set from client input', () => {
  const marks = { 'tidings.dev/origin-resource-version': '999', 'tidings.dev/origin-epoch': '9' }
  const sent = eventOf({ name: 'n', annotations: { a: 'b', ...marks } })
  assert.deepEqual(newEvent(sent, creation).metadata.annotations, { a: 'b' })
  assert.deepEqual(changedEvent(sent, eventOf({ name: 'n' })).metadata.annotations, { a: 'b' })
  const onlyMarks = eventOf({ name: 'n', annotations: marks })
  assert.equal(newEvent(onlyMarks, creation).metadata.annotations, undefined)
})
