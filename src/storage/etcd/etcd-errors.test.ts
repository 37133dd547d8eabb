import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { EtcdError, type EtcdErrorKind } from '../../etcd/errors.ts'
import { StorageError } from '../errors.ts'
import { versionOfState } from '../resource-version.ts'
import { storageErrorOfRead, storageErrorOfWrite } from './etcd-errors.ts'

function etcdError(kind: EtcdErrorKind, mayHaveBeenApplied = false): EtcdError {
  return new EtcdError({ kind, message: 'from etcd', mayHaveBeenApplied, compactRevision: 7 })
}

describe('errors of etcd', () => {
  test('a write that may have been applied is a timeout, whatever the cause', () => {
    for (const kind of ['timeout', 'unavailable', 'cancelled', 'no-space', 'internal'] as const) {
      const error = storageErrorOfWrite(etcdError(kind, true))
      assert.equal(error.kind, 'timeout', kind)
      assert.match(error.message, /unknown whether the write was applied: from etcd/)
    }
    assert.equal(storageErrorOfWrite(new Error('a bug')).kind, 'timeout')
  })

  test('a write that was not applied is never a timeout', () => {
    for (const [kind, expected] of [
      ['timeout', 'unavailable'],
      ['unavailable', 'unavailable'],
      ['cancelled', 'unavailable'],
      ['unauthenticated', 'unavailable'],
      ['corrupt', 'unavailable'],
      ['too-large', 'too-large'],
      ['too-many-requests', 'overloaded'],
    ] as const) {
      assert.equal(storageErrorOfWrite(etcdError(kind)).kind, expected, kind)
    }
  })

  test('an error of a read has the mapped kind and the oldest available version', () => {
    for (const [kind, expected] of [
      ['compacted', 'compacted'],
      ['future-revision', 'future'],
      ['timeout', 'timeout'],
      ['cancelled', 'timeout'],
      ['unavailable', 'unavailable'],
      ['too-many-requests', 'overloaded'],
      ['internal', 'unavailable'],
    ] as const) {
      const cause = etcdError(kind)
      const error = storageErrorOfRead(cause)
      assert.ok(error instanceof StorageError)
      assert.deepEqual([error.kind, error.cause], [expected, cause], kind)
      assert.equal(error.version, versionOfState(7))
    }
  })

  test('a retryable error has a retry hint', () => {
    assert.ok(storageErrorOfWrite(etcdError('unavailable')).retryAfterMs)
    assert.ok(storageErrorOfWrite(etcdError('too-many-requests')).retryAfterMs)
    assert.equal(storageErrorOfWrite(etcdError('too-large')).retryAfterMs, undefined)
  })

  test('an error that is not from etcd is returned unchanged for reads', () => {
    const bug = new TypeError('a bug')
    assert.equal(storageErrorOfRead(bug), bug)
  })
})
