import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { StatusError } from '../../api/status.ts'
import { StorageError } from '../../storage/errors.ts'
import type { EventSelector, StoredEvent, WatchItem } from '../../storage/storage.ts'
import { resourceNames } from '../storage-errors.ts'
import { type Transition, transitionFor, watchFailure } from './transitions.ts'

const inside = { body: Buffer.from('in') } as StoredEvent
const outside = { body: Buffer.from('out') } as StoredEvent
const selector: EventSelector = { matches: (stored) => stored === inside }
const names = resourceNames('events.k8s.io')

function put(stored: StoredEvent, previous?: StoredEvent): WatchItem {
  return { type: 'put', stored, previous }
}

describe('transitionFor', () => {
  test('without a selector every change is natural', () => {
    const items: readonly WatchItem[] = [
      put(outside),
      put(outside, inside),
      { type: 'delete', stored: outside },
    ]
    for (const item of items) assert.equal(transitionFor(item, undefined), 'natural')
  })

  test('with a selector an event enters or leaves when its match changes', () => {
    const cases: readonly [WatchItem, Transition][] = [
      [put(inside), 'natural'],
      [put(outside), undefined],
      [put(inside, inside), 'natural'],
      [put(inside, outside), 'entered'],
      [put(outside, inside), 'left'],
      [put(outside, outside), undefined],
      [{ type: 'delete', stored: inside }, 'natural'],
      [{ type: 'delete', stored: outside }, undefined],
    ]
    for (const [index, [item, expected]] of cases.entries()) {
      assert.equal(transitionFor(item, selector), expected, `case ${index}`)
    }
  })
})

describe('watchFailure', () => {
  test('compacted history has the message for watches', () => {
    const status = watchFailure(new StorageError({ kind: 'compacted', message: '' }), names)
    assert.equal(status?.code, 410)
    assert.equal(status?.reason, 'Expired')
    assert.match(status?.message ?? '', /watch is too old/)
  })

  test('other errors of the storage have the same status as elsewhere', () => {
    const status = watchFailure(new StorageError({ kind: 'unavailable', message: '' }), names)
    assert.equal(status?.code, 503)
  })

  test('an error that is not from the storage has no status', () => {
    for (const error of [new Error('a bug'), new StatusError('NotFound', ''), 'text', undefined]) {
      assert.equal(watchFailure(error, names), undefined)
    }
  })
})
