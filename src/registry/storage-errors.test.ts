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
const key = { cluster: 'local', namespace: 'ns', name: 'n' }
const details = { name: 'n', group: 'events.k8s.io', kind: 'events' }

function statusOf(
  kind: StorageErrorKind,
  more: { readonly retryAfterMs?: number; readonly isRead?: boolean } = {},
): Status {
  const { isRead, ...rest } = more
  const reason = kind === 'exhausted' ? 'narrow it' : undefined
  const error = new StorageError({ kind, message: 'secret of the store', key, reason, ...rest })
  return statusOfStorageError(error, names, { isRead }).status()
}

describe('statusOfStorageError', () => {
  test('gives each kind its code and reason without the message of the store', () => {
    const cases: Readonly<Record<StorageErrorKind, readonly [number, string]>> = {
      missing: [404, 'NotFound'],
      exists: [409, 'AlreadyExists'],
      conflict: [409, 'Conflict'],
      fenced: [409, 'Conflict'],
      compacted: [410, 'Expired'],
      future: [504, 'Timeout'],
      unavailable: [503, 'ServiceUnavailable'],
      timeout: [504, 'Timeout'],
      overloaded: [429, 'TooManyRequests'],
      'too-large': [413, 'RequestEntityTooLarge'],
      exhausted: [504, 'Timeout'],
      corrupt: [500, 'InternalError'],
      foreign: [500, 'InternalError'],
    }
    for (const [kind, [code, reason]] of Object.entries(cases)) {
      const status = statusOf(kind as StorageErrorKind)
      assert.deepEqual([status.code, status.reason], [code, reason], kind)
      assert.ok(!JSON.stringify(status).includes('secret'), kind)
    }
  })

  test('shows the reason of an outage that is meant for clients', () => {
    const reason = 'etcd has not responded for 9 s: it cannot be reached'
    const error = new StorageError({ kind: 'unavailable', message: 'secret', reason })
    const { message } = statusOfStorageError(error, names).status()
    assert.equal(message, `${reason}; nothing was done`)
  })

  test('says when to retry', () => {
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

  test('allows a retry of a late read, and says that a late write may have been applied', () => {
    assert.equal(statusOf('timeout', { isRead: true }).details?.retryAfterSeconds, 1)
    assert.deepEqual(statusOf('timeout').details, {})
  })

  test('names the current version in an error about a future one', () => {
    const error = new StorageError({ kind: 'future', message: '', version: versionOfState(7) })
    const status = statusOfStorageError(error, names, { wanted: versionOfState(9) })
    assert.equal(status.message, 'Timeout: Too large resource version: 9999, current: 7999')
    assert.deepEqual(status.details?.causes, [
      { reason: 'ResourceVersionTooLarge', message: 'Too large resource version' },
    ])
  })

  test('repeats a version beyond the range of numbers as it was sent', () => {
    const error = new StorageError({ kind: 'future', message: '', version: versionOfState(7) })
    const text = '0999999999999999999'
    const attempt = { wanted: parseVersion(text), versionText: text }
    assert.equal(
      statusOfStorageError(error, names, attempt).message,
      'Timeout: Too large resource version: 999999999999999999, current: 7999',
    )
  })

  test('names the event with resource and group', () => {
    assert.equal(statusOf('missing').message, 'events.events.k8s.io "n" not found')
    assert.deepEqual(statusOf('missing').details, details)
    assert.deepEqual(statusOf('exists').details, details)
  })

  test('keeps the error of the store as the cause', () => {
    const error = new StorageError({ kind: 'unavailable', message: 'x' })
    assert.equal(statusOfStorageError(error, names).cause, error)
  })
})

describe('other errors', () => {
  test('say that an event being deleted still occupies its name', () => {
    const { message } = alreadyExists(names, 'n', { isBeingDeleted: true })
    assert.equal(message, 'object is being deleted: events.events.k8s.io "n" already exists')
  })

  test('allow a retry when no name could be generated', () => {
    assert.equal(noUniqueName(names, 'n').details?.retryAfterSeconds, 1)
  })

  test('name the kind Event, not the resource events, in a failed precondition', () => {
    const refusal = preconditionFailed('n', 'why')
    assert.equal(refusal.message, 'Operation cannot be fulfilled on Event "n": why')
    assert.deepEqual(refusal.details, { name: 'n', kind: 'Event' })
  })

  test('include a token to continue an expired list', () => {
    assert.equal(pageExpired('token').status().metadata.continue, 'token')
    assert.equal(pageExpired('token').code, 410)
  })
})
