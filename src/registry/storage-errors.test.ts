import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Status } from '../api/status.ts'
import { StorageError, type StorageErrorKind } from '../storage/errors.ts'
import { parseVersion, versionOfState } from '../storage/resource-version.ts'
import {
  alreadyExists,
  noUniqueName,
  pageExpired,
  preconditionFailed,
  resourceNames,
  statusOfStorageError,
} from './storage-errors.ts'

const names = resourceNames('events.k8s.io')
const key = { namespace: 'ns', name: 'n' }
const details = { name: 'n', group: 'events.k8s.io', kind: 'events' }

function statusOf(
  kind: StorageErrorKind,
  more: { readonly retryAfterMs?: number; readonly isRead?: boolean } = {},
): Status {
  const { isRead, ...rest } = more
  const error = new StorageError({ kind, message: 'secret of the store', key, ...rest })
  return statusOfStorageError(error, names, { isRead }).status()
}

describe('statusOfStorageError', () => {
  test('every kind has its code and reason, and none tells what the store said', () => {
    const cases: Readonly<Record<StorageErrorKind, readonly [number, string]>> = {
      missing: [404, 'NotFound'],
      exists: [409, 'AlreadyExists'],
      conflict: [409, 'Conflict'],
      compacted: [410, 'Expired'],
      future: [504, 'Timeout'],
      unavailable: [503, 'ServiceUnavailable'],
      timeout: [504, 'Timeout'],
      overloaded: [429, 'TooManyRequests'],
      'too-large': [413, 'RequestEntityTooLarge'],
      corrupt: [500, 'InternalError'],
      foreign: [500, 'InternalError'],
    }
    for (const [kind, [code, reason]] of Object.entries(cases)) {
      const status = statusOf(kind as StorageErrorKind)
      assert.deepEqual([status.code, status.reason], [code, reason], kind)
      assert.ok(!JSON.stringify(status).includes('secret'), kind)
    }
  })

  test('an outage is told in the words that are meant for clients', () => {
    const reason = 'etcd has not answered for 9 s: it cannot be reached'
    const error = new StorageError({ kind: 'unavailable', message: 'secret', reason })
    const { message } = statusOfStorageError(error, names).status()
    assert.equal(message, `${reason}; nothing was done`)
  })

  test('what is worth trying again says when', () => {
    const cases: readonly [StorageErrorKind, number | undefined][] = [
      ['conflict', 1],
      ['unavailable', 1],
      ['overloaded', 1],
      ['missing', undefined],
      ['exists', undefined],
      ['compacted', undefined],
      ['future', undefined],
      ['too-large', undefined],
      ['corrupt', undefined],
    ]
    for (const [kind, seconds] of cases) {
      assert.equal(statusOf(kind).details?.retryAfterSeconds, seconds, kind)
    }
    assert.equal(statusOf('overloaded', { retryAfterMs: 2_100 }).details?.retryAfterSeconds, 3)
  })

  test('a late read may be tried again; a late write may have happened', () => {
    assert.equal(statusOf('timeout', { isRead: true }).details?.retryAfterSeconds, 1)
    assert.deepEqual(statusOf('timeout').details, {})
  })

  test('a version of the future is told with how far we are', () => {
    const error = new StorageError({ kind: 'future', message: '', version: versionOfState(7) })
    const status = statusOfStorageError(error, names, { wanted: versionOfState(9) })
    assert.equal(status.message, 'Timeout: Too large resource version: 9999, current: 7999')
    assert.deepEqual(status.details?.causes, [
      { reason: 'ResourceVersionTooLarge', message: 'Too large resource version' },
    ])
  })

  test('a version that none will ever reach is told as it was sent', () => {
    const error = new StorageError({ kind: 'future', message: '', version: versionOfState(7) })
    const text = '0999999999999999999'
    const attempt = { wanted: parseVersion(text), asked: text }
    assert.equal(
      statusOfStorageError(error, names, attempt).message,
      'Timeout: Too large resource version: 999999999999999999, current: 7999',
    )
  })

  test('an event is named as clients know it', () => {
    assert.equal(statusOf('missing').message, 'events.events.k8s.io "n" not found')
    assert.deepEqual(statusOf('missing').details, details)
    assert.deepEqual(statusOf('exists').details, details)
  })

  test('the error of the store is kept for the log', () => {
    const error = new StorageError({ kind: 'unavailable', message: 'x' })
    assert.equal(statusOfStorageError(error, names).cause, error)
  })
})

describe('refusals that do not come from the store', () => {
  test('an event that is on its way out still has its name', () => {
    const { message } = alreadyExists(names, 'n', { isBeingDeleted: true })
    assert.equal(message, 'object is being deleted: events.events.k8s.io "n" already exists')
  })

  test('a name that could not be made up may be tried again', () => {
    assert.equal(noUniqueName(names, 'n').details?.retryAfterSeconds, 1)
  })

  test('a precondition speaks of an Event, not of events', () => {
    const refusal = preconditionFailed('n', 'why')
    assert.equal(refusal.message, 'Operation cannot be fulfilled on Event "n": why')
    assert.deepEqual(refusal.details, { name: 'n', kind: 'Event' })
  })

  test('a page that is too old comes with a token to go on by', () => {
    assert.equal(pageExpired('token').status().metadata.continue, 'token')
    assert.equal(pageExpired('token').code, 410)
  })
})
