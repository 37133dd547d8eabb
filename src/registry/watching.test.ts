import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { StatusError } from '../api/status.ts'
import { StorageError } from '../storage/errors.ts'
import type { EventSelector, StoredEvent, WatchItem } from '../storage/storage.ts'
import { resourceNames } from './storage-errors.ts'
import { type Telling, tellingOf, watchFailure } from './watching.ts'

const inside = { body: Buffer.from('in') } as StoredEvent
const outside = { body: Buffer.from('out') } as StoredEvent
const selector: EventSelector = { matches: (stored) => stored === inside }
const names = resourceNames('events.k8s.io')

function put(stored: StoredEvent, previous?: StoredEvent): WatchItem {
  return { type: 'put', stored, previous }
}

describe('what a watcher is told', () => {
  test('a change is what it is to one who sees everything', () => {
    const items: readonly WatchItem[] = [
      put(outside),
      put(outside, inside),
      { type: 'delete', stored: outside },
    ]
    for (const item of items) assert.equal(tellingOf(item, undefined), 'natural')
  })

  test('a selector turns changes into comings and goings', () => {
    const cases: readonly [WatchItem, Telling][] = [
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
      assert.equal(tellingOf(item, selector), expected, `case ${index}`)
    }
  })
})

describe('why a watch cannot go on', () => {
  test('history that is gone is told in the words of a watch', () => {
    const status = watchFailure(new StorageError({ kind: 'compacted', message: '' }), names)
    assert.equal(status?.code, 410)
    assert.equal(status?.reason, 'Expired')
    assert.match(status?.message ?? '', /watch is too old/)
  })

  test('other failures of the storage are told as elsewhere', () => {
    const status = watchFailure(new StorageError({ kind: 'unavailable', message: '' }), names)
    assert.equal(status?.code, 503)
  })

  test('what is not of the storage is nobody’s to tell', () => {
    for (const error of [new Error('a bug'), new StatusError('NotFound', ''), 'text', undefined]) {
      assert.equal(watchFailure(error, names), undefined)
    }
  })
})
