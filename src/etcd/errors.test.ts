import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FailureOrigin } from '../grpc/call-failure.ts'
import { type EtcdErrorKind, errorOfCall, isRetryable } from './errors.ts'

const endpoint = 'http://etcd:2379'

const table: readonly {
  readonly code: number
  readonly details: string
  /** Default: `server`. */
  readonly origin?: FailureOrigin
  readonly kind: EtcdErrorKind
  readonly mayHaveBeenApplied: boolean
}[] = [
  // Responses that prove that the write was not applied.
  { code: 14, details: 'etcdserver: no leader', kind: 'unavailable', mayHaveBeenApplied: false },
  { code: 14, details: 'etcdserver: not capable', kind: 'unavailable', mayHaveBeenApplied: false },
  { code: 2, details: 'raft proposal dropped', kind: 'unavailable', mayHaveBeenApplied: false },
  {
    code: 2,
    details: 'etcdserver: too many requests',
    kind: 'too-many-requests',
    mayHaveBeenApplied: false,
  },
  {
    code: 8,
    details: 'etcdserver: too many requests',
    kind: 'too-many-requests',
    mayHaveBeenApplied: false,
  },
  {
    code: 3,
    details: 'etcdserver: request is too large',
    kind: 'too-large',
    mayHaveBeenApplied: false,
  },
  {
    code: 3,
    details: 'etcdserver: duplicate key given in txn request',
    kind: 'invalid',
    mayHaveBeenApplied: false,
  },
  {
    code: 3,
    details: 'etcdserver: too many operations in txn request',
    kind: 'invalid',
    mayHaveBeenApplied: false,
  },
  {
    code: 5,
    details: 'etcdserver: requested lease not found',
    kind: 'not-found',
    mayHaveBeenApplied: false,
  },
  {
    code: 7,
    details: 'etcdserver: permission denied',
    kind: 'unauthenticated',
    mayHaveBeenApplied: false,
  },
  {
    code: 16,
    details: 'etcdserver: invalid auth token',
    kind: 'unauthenticated',
    mayHaveBeenApplied: false,
  },
  { code: 15, details: 'etcdserver: corrupt cluster', kind: 'corrupt', mayHaveBeenApplied: false },
  {
    code: 11,
    details: 'etcdserver: mvcc: required revision has been compacted',
    kind: 'compacted',
    mayHaveBeenApplied: false,
  },
  {
    code: 11,
    details: 'etcdserver: mvcc: required revision is a future revision',
    kind: 'future-revision',
    mayHaveBeenApplied: false,
  },
  {
    code: 8,
    details: 'grpc: received message larger than max (3 vs. 2)',
    kind: 'too-large',
    mayHaveBeenApplied: false,
  },
  // Responses and failures that prove nothing.
  {
    code: 14,
    details: 'etcdserver: request timed out',
    kind: 'unavailable',
    mayHaveBeenApplied: true,
  },
  {
    code: 14,
    details: 'etcdserver: request timed out, possibly due to previous leader failure',
    kind: 'unavailable',
    mayHaveBeenApplied: true,
  },
  {
    code: 14,
    details: 'etcdserver: leader changed',
    kind: 'unavailable',
    mayHaveBeenApplied: true,
  },
  {
    code: 14,
    details: 'etcdserver: server stopped',
    kind: 'unavailable',
    mayHaveBeenApplied: true,
  },
  {
    code: 8,
    details: 'etcdserver: mvcc: database space exceeded',
    kind: 'no-space',
    mayHaveBeenApplied: true,
  },
  { code: 14, details: 'lost', origin: 'transport', kind: 'unavailable', mayHaveBeenApplied: true },
  { code: 1, details: 'context canceled', kind: 'unavailable', mayHaveBeenApplied: true },
  { code: 4, details: 'late', origin: 'local', kind: 'timeout', mayHaveBeenApplied: true },
  { code: 13, details: 'not decoded', origin: 'local', kind: 'internal', mayHaveBeenApplied: true },
  { code: 8, details: 'too long', origin: 'local', kind: 'too-large', mayHaveBeenApplied: true },
  // The text of etcd proves nothing unless etcd sent it.
  {
    code: 14,
    details: 'etcdserver: no leader',
    origin: 'transport',
    kind: 'unavailable',
    mayHaveBeenApplied: true,
  },
  { code: 3, details: 'not from etcd itself', kind: 'invalid', mayHaveBeenApplied: true },
  { code: 2, details: '', kind: 'internal', mayHaveBeenApplied: true },
]

function failure({ code, details, origin = 'server' }: (typeof table)[number]) {
  return { code, message: details, origin, mayHaveBeenApplied: true }
}

for (const row of table) {
  const { code, details, origin = 'server', kind, mayHaveBeenApplied } = row
  test(`${code} "${details}" (${origin}) is ${kind}, and a write ${mayHaveBeenApplied ? 'may have' : 'has not'} been applied`, () => {
    const error = errorOfCall(failure(row), { endpoint, isWrite: true })
    assert.deepEqual(
      [error.kind, error.mayHaveBeenApplied, error.endpoint],
      [kind, mayHaveBeenApplied, endpoint],
    )
  })
}

test('a read is never reported as possibly applied', () => {
  for (const row of table) {
    const error = errorOfCall(failure(row), { endpoint, isWrite: false })
    assert.equal(error.mayHaveBeenApplied, false)
  }
})

test('a write that was not sent has not been applied, whatever its code', () => {
  for (const row of table) {
    const unsent = { ...failure(row), mayHaveBeenApplied: false }
    assert.equal(errorOfCall(unsent, { endpoint, isWrite: true }).mayHaveBeenApplied, false)
  }
})

test('only unavailable errors are retryable', () => {
  for (const row of table) {
    const error = errorOfCall(failure(row), { endpoint, isWrite: false })
    assert.equal(isRetryable(error), row.kind === 'unavailable')
  }
})
