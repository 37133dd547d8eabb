import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type EtcdErrorKind, errorFromStatus, isRetryable } from './errors.ts'

const endpoint = 'http://etcd:2379'

const table: readonly {
  readonly code: number
  readonly details: string
  readonly kind: EtcdErrorKind
  readonly maybeApplied: boolean
}[] = [
  // Responses that prove that the write was not applied.
  { code: 14, details: 'etcdserver: no leader', kind: 'unavailable', maybeApplied: false },
  { code: 14, details: 'etcdserver: not capable', kind: 'unavailable', maybeApplied: false },
  { code: 2, details: 'raft proposal dropped', kind: 'unavailable', maybeApplied: false },
  {
    code: 2,
    details: 'etcdserver: too many requests',
    kind: 'too-many-requests',
    maybeApplied: false,
  },
  {
    code: 8,
    details: 'etcdserver: too many requests',
    kind: 'too-many-requests',
    maybeApplied: false,
  },
  { code: 3, details: 'etcdserver: request is too large', kind: 'too-large', maybeApplied: false },
  {
    code: 3,
    details: 'etcdserver: duplicate key given in txn request',
    kind: 'invalid',
    maybeApplied: false,
  },
  {
    code: 3,
    details: 'etcdserver: too many operations in txn request',
    kind: 'invalid',
    maybeApplied: false,
  },
  {
    code: 5,
    details: 'etcdserver: requested lease not found',
    kind: 'not-found',
    maybeApplied: false,
  },
  {
    code: 7,
    details: 'etcdserver: permission denied',
    kind: 'unauthenticated',
    maybeApplied: false,
  },
  {
    code: 16,
    details: 'etcdserver: invalid auth token',
    kind: 'unauthenticated',
    maybeApplied: false,
  },
  { code: 15, details: 'etcdserver: corrupt cluster', kind: 'corrupt', maybeApplied: false },
  {
    code: 11,
    details: 'etcdserver: mvcc: required revision has been compacted',
    kind: 'compacted',
    maybeApplied: false,
  },
  {
    code: 11,
    details: 'etcdserver: mvcc: required revision is a future revision',
    kind: 'future-revision',
    maybeApplied: false,
  },
  {
    code: 8,
    details: 'grpc: received message larger than max (3 vs. 2)',
    kind: 'too-large',
    maybeApplied: false,
  },
  // Responses and failures that prove nothing.
  { code: 14, details: 'etcdserver: request timed out', kind: 'unavailable', maybeApplied: true },
  {
    code: 14,
    details: 'etcdserver: request timed out, possibly due to previous leader failure',
    kind: 'unavailable',
    maybeApplied: true,
  },
  { code: 14, details: 'etcdserver: leader changed', kind: 'unavailable', maybeApplied: true },
  { code: 14, details: 'etcdserver: server stopped', kind: 'unavailable', maybeApplied: true },
  {
    code: 8,
    details: 'etcdserver: mvcc: database space exceeded',
    kind: 'no-space',
    maybeApplied: true,
  },
  { code: 14, details: 'Connection dropped', kind: 'unavailable', maybeApplied: true },
  {
    code: 13,
    details: 'Received RST_STREAM with code 2 (Internal server error)',
    kind: 'unavailable',
    maybeApplied: true,
  },
  { code: 1, details: 'Call cancelled', kind: 'unavailable', maybeApplied: true },
  { code: 4, details: 'Deadline exceeded', kind: 'timeout', maybeApplied: true },
  { code: 13, details: 'Response message parsing error: x', kind: 'internal', maybeApplied: true },
  {
    code: 8,
    details: 'Received message larger than max (3 vs 2)',
    kind: 'too-large',
    maybeApplied: true,
  },
  // Our own gRPC client may use the codes of a refusal without a response from etcd.
  { code: 3, details: 'created by the client', kind: 'invalid', maybeApplied: true },
  { code: 2, details: '', kind: 'internal', maybeApplied: true },
]

for (const { code, details, kind, maybeApplied } of table) {
  test(`errors: ${code} "${details}" is ${kind}, a write ${maybeApplied ? 'may have' : 'has not'} been applied`, () => {
    const error = errorFromStatus({ code, details, endpoint, write: true })
    assert.equal(error.kind, kind)
    assert.equal(error.maybeApplied, maybeApplied)
    assert.equal(error.endpoint, endpoint)
    assert.equal(error.grpcCode, code)
  })
}

test('errors: a read is never "maybe applied"', () => {
  for (const { code, details } of table) {
    assert.equal(errorFromStatus({ code, details, endpoint, write: false }).maybeApplied, false)
  }
})

test('errors: only unavailable errors are retryable', () => {
  for (const { code, details, kind } of table) {
    const error = errorFromStatus({ code, details, endpoint, write: false })
    assert.equal(isRetryable(error), kind === 'unavailable')
  }
})

test('errors: a TLS handshake error keeps its reason without source location, in the cause too', () => {
  const details =
    'cannot connect: 40BDC7F9087F0000:error:0A000418:SSL routines:ssl3_read_bytes:tlsv1 alert unknown ca:../deps/openssl/openssl/ssl/record/rec_layer_s3.c:918:SSL alert number 48\n'
  const cause = new Error(details)
  const error = errorFromStatus({ code: 14, details, endpoint, write: false, cause })
  assert.equal(cause.message, error.message)
  assert.equal(error.message, 'cannot connect: TLS: tlsv1 alert unknown ca')
})

test('errors: a cause with another message keeps its message', () => {
  const cause = new Error('read ECONNRESET')
  errorFromStatus({ code: 14, details: 'Connection dropped', endpoint, write: false, cause })
  assert.equal(cause.message, 'read ECONNRESET')
})
