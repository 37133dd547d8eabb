import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  create,
  type DescMessage,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf'
import fc from 'fast-check'
import {
  decodeAlarms,
  decodeLeaseGrant,
  decodeLeaseKeepAlive,
  decodeLeaseTtl,
  decodeStatus,
  encodeCompaction,
  encodeLeaseGrant,
  encodeLeaseId,
  encodeWatchCreate,
  encodeWatchProgress,
} from '../../../src/etcd/protocol/control-messages.ts'
import {
  decodeRangeChunk,
  decodeRangeResult,
  decodeTxnResult,
  decodeWatchMessage,
  encodeRange,
  encodeTxn,
} from '../../../src/etcd/protocol/hot-messages.ts'
import type { Compare, RangeRequest, Txn, TxnOp } from '../../../src/etcd/protocol/protocol.ts'
import {
  AlarmResponseSchema,
  CompactionRequestSchema,
  LeaseGrantRequestSchema,
  LeaseGrantResponseSchema,
  LeaseKeepAliveRequestSchema,
  LeaseKeepAliveResponseSchema,
  LeaseTimeToLiveResponseSchema,
  type Compare as PbCompare,
  RangeRequestSchema,
  RangeResponseSchema,
  RangeStreamResponseSchema,
  type RequestOp,
  StatusResponseSchema,
  type TxnRequest,
  TxnRequestSchema,
  TxnResponseSchema,
  WatchRequestSchema,
  WatchResponseSchema,
} from '../../support/etcd-protocol/rpc_pb.ts'

// Each hand-written encoder and decoder is compared with the generated code: the generated decoder
// must read what we write, and we must read what the generated encoder writes.

const bytes = fc.uint8Array({ maxLength: 40 }).map((array) => Buffer.from(array))
const whole = fc.oneof(fc.nat(300), fc.maxSafeNat())
const lease = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })

const range: fc.Arbitrary<RangeRequest> = fc.record({
  key: bytes,
  rangeEnd: fc.option(bytes, { nil: undefined }),
  revision: fc.option(whole, { nil: undefined }),
  limit: fc.option(whole, { nil: undefined }),
  keysOnly: fc.boolean(),
  countOnly: fc.boolean(),
})

const compare: fc.Arbitrary<Compare> = fc
  .tuple(
    fc.record({
      key: bytes,
      rangeEnd: fc.option(bytes, { nil: undefined }),
      is: fc.constantFrom('=', '!=', '>', '<', undefined),
    }),
    fc.oneof(
      fc.record({
        target: fc.constantFrom('version', 'createRevision', 'modRevision'),
        to: whole,
      }),
      fc.record({ target: fc.constant('lease' as const), to: lease }),
      fc.record({ target: fc.constant('value' as const), to: bytes }),
    ),
  )
  .map(([base, target]) => ({ ...base, ...target }) as Compare)

const { txn } = fc.letrec<{ txn: Txn; op: TxnOp }>((tie) => ({
  txn: fc.record({
    compare: fc.option(fc.array(compare, { maxLength: 3 }), { nil: undefined }),
    success: fc.option(fc.array(tie('op'), { maxLength: 4 }), { nil: undefined }),
    failure: fc.option(fc.array(tie('op'), { maxLength: 2 }), { nil: undefined }),
  }),
  op: fc.oneof(
    { maxDepth: 3, depthIdentifier: 'txn' },
    fc.record({
      type: fc.constant('put' as const),
      key: bytes,
      value: bytes,
      lease: fc.option(lease, { nil: undefined }),
      prevKv: fc.boolean(),
    }),
    fc.record({
      type: fc.constant('delete' as const),
      key: bytes,
      rangeEnd: fc.option(bytes, { nil: undefined }),
      prevKv: fc.boolean(),
    }),
    range.map((request) => ({ type: 'range' as const, ...request })),
    tie('txn').map((nested) => ({ type: 'txn' as const, ...nested })),
  ),
}))

test('the generated code decodes any transaction that we encode', () => {
  fc.assert(
    fc.property(txn, (wanted) => {
      const read = fromBinary(TxnRequestSchema, encodeTxn(wanted))
      assert.deepEqual(read, decoded(TxnRequestSchema, generatedTxn(wanted)))
    }),
  )
})

test('a transaction larger than the initial buffer is encoded completely', () => {
  const value = Buffer.alloc(100_000, 'v')
  const wanted: Txn = {
    success: Array.from({ length: 10 }, (_, index) => ({
      type: 'put',
      key: Buffer.from(`k${index}`),
      value,
    })),
  }
  const read = fromBinary(TxnRequestSchema, encodeTxn(wanted))
  assert.deepEqual(read, decoded(TxnRequestSchema, generatedTxn(wanted)))
})

test('the generated code decodes any range that we encode', () => {
  fc.assert(
    fc.property(range, (wanted) => {
      const read = fromBinary(RangeRequestSchema, encodeRange(wanted))
      assert.deepEqual(read, decoded(RangeRequestSchema, generatedRange(wanted)))
    }),
  )
})

test('encoding throws for a number that is not a safe non-negative integer', () => {
  const key = Buffer.from('k')
  for (const revision of [-1, 1.5, Number.NaN, 2 ** 53]) {
    assert.throws(() => encodeRange({ key, revision }), RangeError)
  }
})

const kv = {
  key: Buffer.from('/registry/events/a'),
  value: Buffer.from('{"w":1}'),
  createRevision: 5,
  modRevision: 2 ** 53 - 1,
  version: 3,
  lease: -7n,
}
const generatedKv = { ...kv, createRevision: 5n, modRevision: 2n ** 53n - 1n, version: 3n }

/** Includes a field that we skip. */
const header = { memberId: 2n ** 64n - 1n, revision: 77n }

test('a range response of the generated code is decoded', () => {
  const written = Buffer.from(
    toBinary(
      RangeResponseSchema,
      create(RangeResponseSchema, {
        header,
        kvs: [generatedKv, {}],
        more: true,
        count: 2n,
      }),
    ),
  )
  const empty = Buffer.alloc(0)
  assert.deepEqual(decodeRangeResult(written), {
    revision: 77,
    more: true,
    count: 2,
    kvs: [
      kv,
      { key: empty, value: empty, createRevision: 0, modRevision: 0, version: 0, lease: 0n },
    ],
  })
})

test('a message of a range stream has its keys, whether it is the last one or not', () => {
  const rest = { header, more: true, count: 5n }
  for (const last of [{}, rest]) {
    const rangeResponse = { kvs: [generatedKv, generatedKv], ...last }
    assert.deepEqual(decodeRangeChunk(encodedBy(RangeStreamResponseSchema, { rangeResponse })), [
      kv,
      kv,
    ])
  }
  assert.deepEqual(decodeRangeChunk(Buffer.alloc(0)), [])
})

test('a transaction response has one result per operation, also when nested', () => {
  const written = Buffer.from(
    toBinary(
      TxnResponseSchema,
      create(TxnResponseSchema, {
        header,
        succeeded: true,
        responses: [
          { response: { case: 'responsePut', value: { header, prevKv: generatedKv } } },
          { response: { case: 'responsePut', value: {} } },
          {
            response: {
              case: 'responseDeleteRange',
              value: { deleted: 1n, prevKvs: [generatedKv] },
            },
          },
          { response: { case: 'responseRange', value: { header, kvs: [generatedKv], count: 1n } } },
          {
            response: {
              case: 'responseTxn',
              value: {
                header,
                succeeded: false,
                responses: [{ response: { case: 'responsePut', value: {} } }],
              },
            },
          },
        ],
      }),
    ),
  )
  assert.deepEqual(decodeTxnResult(written), {
    revision: 77,
    succeeded: true,
    results: [
      { type: 'put', prevKv: kv },
      { type: 'put', prevKv: undefined },
      { type: 'delete', deleted: 1, prevKvs: [kv] },
      { type: 'range', revision: 77, kvs: [kv], count: 1, more: false },
      { type: 'txn', succeeded: false, results: [{ type: 'put', prevKv: undefined }] },
    ],
  })
})

test('a watch message of the generated code is decoded', () => {
  const written = Buffer.from(
    toBinary(
      WatchResponseSchema,
      create(WatchResponseSchema, {
        header,
        watchId: -1n,
        created: true,
        canceled: true,
        compactRevision: 12n,
        cancelReason: 'gone',
        fragment: true,
        events: [
          { type: 1, kv: generatedKv, prevKv: generatedKv },
          { type: 0, kv: generatedKv },
        ],
      }),
    ),
  )
  assert.deepEqual(decodeWatchMessage(written), {
    revision: 77,
    created: true,
    canceled: true,
    compactRevision: 12,
    cancelReason: 'gone',
    fragment: true,
    events: [
      { type: 'delete', kv, prevKv: kv },
      { type: 'put', kv, prevKv: undefined },
    ],
  })
})

test('the generated code decodes the requests about leases, compaction and watches', () => {
  fc.assert(
    fc.property(whole, lease, bytes, fc.boolean(), (number, id, key, flag) => {
      assert.equal(
        fromBinary(LeaseGrantRequestSchema, encodeLeaseGrant(number)).ttl,
        BigInt(number),
      )
      assert.equal(fromBinary(LeaseKeepAliveRequestSchema, encodeLeaseId(id)).id, id)
      assert.equal(
        fromBinary(CompactionRequestSchema, encodeCompaction(number)).revision,
        BigInt(number),
      )
      const request = {
        key,
        rangeEnd: flag ? key : undefined,
        startRevision: number,
        prevKv: flag,
        fragment: !flag,
      }
      assert.deepEqual(
        fromBinary(WatchRequestSchema, encodeWatchCreate(request)),
        decoded(WatchRequestSchema, {
          requestUnion: {
            case: 'createRequest',
            value: {
              key,
              rangeEnd: request.rangeEnd ?? Buffer.alloc(0),
              startRevision: BigInt(number),
              progressNotify: true,
              prevKv: flag,
              fragment: !flag,
            },
          },
        }),
      )
    }),
  )
  const progress = fromBinary(WatchRequestSchema, encodeWatchProgress())
  assert.equal(progress.requestUnion.case, 'progressRequest')
})

test('responses about leases of the generated code are decoded', () => {
  const granted = encodedBy(LeaseGrantResponseSchema, { header, id: -7n, ttl: 60n })
  assert.deepEqual(decodeLeaseGrant(granted), { id: -7n, ttlSeconds: 60 })
  const renewed = encodedBy(LeaseKeepAliveResponseSchema, { header, id: 7n, ttl: 30n })
  assert.equal(decodeLeaseKeepAlive(renewed), 30)
  const expired = encodedBy(LeaseTimeToLiveResponseSchema, { id: 7n, ttl: -1n, grantedTtl: 60n })
  assert.deepEqual(decodeLeaseTtl(expired), { ttlSeconds: -1, grantedTtlSeconds: 60 })
})

test('status and alarms of the generated code are decoded', () => {
  const status = {
    header,
    version: '3.5.30',
    dbSize: 2n ** 40n,
    dbSizeInUse: 5n,
    leader: 2n ** 64n - 2n,
    raftTerm: 9n,
    isLearner: true,
    errors: ['alarm:NOSPACE', ''],
    storageVersion: '3.6.0',
    dbSizeQuota: -1n,
    downgradeInfo: { enabled: true, targetVersion: '3.5.0' },
  }
  const decoded = {
    memberId: 2n ** 64n - 1n,
    revision: 77,
    version: '3.5.30',
    dbBytes: 2 ** 40,
    dbBytesInUse: 5,
    leader: 2n ** 64n - 2n,
    raftTerm: 9,
    isLearner: true,
    errors: ['alarm:NOSPACE', ''],
    storageVersion: '3.6.0',
    quotaBytes: -1,
    downgradeTo: '3.5.0',
  }
  assert.deepEqual(decodeStatus(encodedBy(StatusResponseSchema, status)), decoded)
  const disabled = { ...status, downgradeInfo: { targetVersion: '3.5.0' } }
  assert.deepEqual(decodeStatus(encodedBy(StatusResponseSchema, disabled)), {
    ...decoded,
    downgradeTo: undefined,
  })
  const alarms = [1, 2, 3].map((alarm) => ({ memberId: 2n ** 64n - 1n, alarm }))
  assert.deepEqual(
    decodeAlarms(encodedBy(AlarmResponseSchema, { header, alarms })),
    ['no-space', 'corrupt', 'unknown'].map((type) => ({ memberId: 2n ** 64n - 1n, type })),
  )
})

test('decoding throws for a revision beyond the safe integers', () => {
  const written = toBinary(
    RangeResponseSchema,
    create(RangeResponseSchema, { header: { revision: 2n ** 53n } }),
  )
  assert.throws(() => decodeRangeResult(Buffer.from(written)), RangeError)
})

test('malformed bytes give a message or a RangeError, nothing else', () => {
  const good = Buffer.from(
    toBinary(
      WatchResponseSchema,
      create(WatchResponseSchema, { header, events: [{ type: 1, kv: generatedKv }] }),
    ),
  )
  const readers = [
    decodeWatchMessage,
    decodeTxnResult,
    decodeRangeResult,
    decodeRangeChunk,
    decodeStatus,
    decodeAlarms,
    decodeLeaseTtl,
  ]
  const attempt = (read: (message: Buffer) => unknown, message: Buffer) => {
    try {
      read(message)
    } catch (error) {
      assert.ok(error instanceof RangeError, String(error))
    }
  }
  for (let length = 0; length < good.length; length++) {
    for (const read of readers) attempt(read, good.subarray(0, length))
  }
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), (noise) => {
      for (const read of readers) attempt(read, Buffer.from(noise))
    }),
    { numRuns: 500 },
  )
})

function encodedBy<Desc extends DescMessage>(schema: Desc, init: MessageInitShape<Desc>): Buffer {
  return Buffer.from(toBinary(schema, create(schema, init)))
}

/** The message after encoding and decoding, so that the types of byte arrays agree. */
function decoded<Desc extends DescMessage>(
  schema: Desc,
  init: MessageInitShape<Desc>,
): MessageShape<Desc> {
  return fromBinary(schema, encodedBy(schema, init))
}

function generatedTxn(wanted: Txn): MessageInitShape<typeof TxnRequestSchema> {
  return {
    compare: (wanted.compare ?? []).map(generatedCompare) as PbCompare[],
    success: (wanted.success ?? []).map(generatedOp) as RequestOp[],
    failure: (wanted.failure ?? []).map(generatedOp) as RequestOp[],
  }
}

function generatedOp(op: TxnOp): unknown {
  switch (op.type) {
    case 'put': {
      const { key, value, prevKv } = op
      const put = { key, value, prevKv: prevKv ?? false, lease: op.lease ?? 0n }
      return { request: { case: 'requestPut', value: put } }
    }
    case 'delete': {
      const value = { key: op.key, rangeEnd: op.rangeEnd ?? Buffer.alloc(0), prevKv: op.prevKv }
      return { request: { case: 'requestDeleteRange', value } }
    }
    case 'range':
      return { request: { case: 'requestRange', value: generatedRange(op) } }
    case 'txn':
      return { request: { case: 'requestTxn', value: generatedTxn(op) as TxnRequest } }
  }
}

function generatedRange(wanted: RangeRequest): MessageInitShape<typeof RangeRequestSchema> {
  return {
    key: wanted.key,
    rangeEnd: wanted.rangeEnd ?? Buffer.alloc(0),
    revision: BigInt(wanted.revision ?? 0),
    limit: BigInt(wanted.limit ?? 0),
    keysOnly: wanted.keysOnly ?? false,
    countOnly: wanted.countOnly ?? false,
  }
}

function generatedCompare(wanted: Compare): unknown {
  const targets = ['version', 'createRevision', 'modRevision', 'value', 'lease']
  const value = typeof wanted.to === 'number' ? BigInt(wanted.to) : wanted.to
  return {
    result: ['=', '>', '<', '!='].indexOf(wanted.is ?? '='),
    target: targets.indexOf(wanted.target),
    key: wanted.key,
    rangeEnd: wanted.rangeEnd ?? Buffer.alloc(0),
    targetUnion: { case: wanted.target, value },
  }
}
