import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { coreEventType } from '../../api/core-schema.ts'
import { eventType } from '../../api/schema.ts'
import { StatusError } from '../../api/status.ts'
import type { JsonObject } from '../../lib/json.ts'
import { encodeDocument, unwrapEnvelope, wrapEnvelope } from './kube-protobuf.ts'
import { structsOf } from './made-structs.fixture.ts'
import { statusType } from './meta-types.ts'
import { decodeStruct, encodeStruct, ProtobufError } from './protobuf-struct.ts'

const valuesMax = 1000

/** A recorded Status of a Kubernetes API server: the 404 for an event called "missing". */
const recordedStatus = Buffer.from(
  'azhzAAoMCgJ2MRIGU3RhdHVzEm4KBgoAEgAaABIHRmFpbHVyZRooZXZlbnRzLmV2ZW50cy5rOHMuaW8gIm1pc3NpbmciIG5vdCBmb3VuZCIITm90Rm91bmQqJAoHbWlzc2luZxINZXZlbnRzLms4cy5pbxoGZXZlbnRzKAAyADCUAxoAIgA=',
  'base64',
)

const event: JsonObject = {
  metadata: {
    name: 'a',
    namespace: 'default',
    uid: 'u',
    creationTimestamp: '2026-01-02T03:04:05Z',
    deletionGracePeriodSeconds: 0,
    labels: { b: '2', a: '1', __proto__x: 'odd' },
    ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'x', controller: false }],
    finalizers: ['one', 'two'],
    managedFields: [{ manager: 'm', fieldsV1: { 'f:note': {} } }],
  },
  eventTime: '2026-01-02T03:04:05.678901Z',
  series: { count: 3, lastObservedTime: '1970-01-01T00:00:00.000000Z' },
  regarding: { kind: 'Pod', name: 'p' },
  note: 'grüße',
  deprecatedCount: -4,
}

describe('Kubernetes protobuf', () => {
  test('an event is unchanged after encoding and decoding', () => {
    const bytes = encodeStruct(eventType, event)
    assert.deepEqual(decodeStruct(eventType, bytes, valuesMax), event)
  })

  test('any event of either group is unchanged after encoding and decoding', () => {
    for (const type of [eventType, coreEventType]) {
      fc.assert(
        fc.property(structsOf(type), (made) => {
          assert.deepEqual(decodeStruct(type, encodeStruct(type, made), valuesMax), made)
        }),
      )
    }
  })

  test('omits empty values when it decodes an event', () => {
    const bytes = encodeStruct(eventType, { metadata: {}, reason: '', regarding: {}, series: {} })
    assert.deepEqual(decodeStruct(eventType, bytes, valuesMax), { series: {} })
  })

  test('a recorded Status of Kubernetes is decoded', () => {
    const { kind, apiVersion, raw } = unwrapEnvelope(recordedStatus)
    assert.deepEqual([kind, apiVersion], ['Status', 'v1'])
    assert.deepEqual(decodeStruct(statusType, raw, valuesMax), {
      status: 'Failure',
      message: 'events.events.k8s.io "missing" not found',
      reason: 'NotFound',
      details: { name: 'missing', group: 'events.k8s.io', kind: 'events' },
      code: 404,
    })
  })

  test('a document is wrapped in an envelope with its kind', () => {
    const list = {
      kind: 'APIResourceList',
      apiVersion: 'v1',
      groupVersion: 'events.k8s.io/v1',
      resources: [{ name: 'events', namespaced: true, kind: 'Event', verbs: ['get', 'list'] }],
    }
    const { kind, raw } = unwrapEnvelope(encodeDocument(list))
    assert.equal(kind, 'APIResourceList')
    assert.ok(raw.includes('events.k8s.io/v1'))
  })

  test('unknown fields are skipped', () => {
    const more = Buffer.concat([encodeStruct(eventType, event), Buffer.from([0xf8, 0x07, 0x01])])
    assert.deepEqual(decodeStruct(eventType, more, valuesMax), event)
  })

  test('a message field that occurs twice is merged', () => {
    const parts = [{ metadata: { name: 'a' } }, { metadata: { labels: { b: '1' } } }]
    const bytes = Buffer.concat(parts.map((part) => encodeStruct(eventType, part)))
    const metadata = { name: 'a', labels: { b: '1' } }
    assert.deepEqual(decodeStruct(eventType, bytes, valuesMax), { metadata })
  })

  test('hostile envelopes and fields are rejected quickly', () => {
    const mebibyte = 1024 * 1024
    const empty = Buffer.alloc(mebibyte, Buffer.from([0x0a, 0x00]))
    const unknown = Buffer.alloc(mebibyte, Buffer.from([0x9a, 0x06, 0x00]))
    const before = process.threadCpuUsage()
    assert.throws(() => unwrapEnvelope(Buffer.concat([Buffer.from('k8s\0'), empty])), ProtobufError)
    assert.throws(() => decodeStruct(eventType, unknown, valuesMax), StatusError)
    assert.throws(() => decodeStruct(eventType, empty, valuesMax), StatusError)
    const { user } = process.threadCpuUsage(before)
    assert.ok(user < 50_000, `${user} microseconds`)
  })

  test('bytes that are not an envelope are rejected', () => {
    for (const bytes of ['', 'k8s', '{}', 'k8s\0\x0a\xff']) {
      assert.throws(() => unwrapEnvelope(Buffer.from(bytes, 'latin1')), ProtobufError)
    }
  })

  test('a message with too many values is rejected', () => {
    const labels = Object.fromEntries(Array.from({ length: 600 }, (_, index) => [`k${index}`, 'v']))
    const bytes = encodeStruct(eventType, { metadata: { labels } })
    assert.throws(() => decodeStruct(eventType, bytes, 500), { reason: 'RequestEntityTooLarge' })
  })

  test('any bytes are either decoded or rejected with a known error', () => {
    const valid = encodeStruct(eventType, event)
    const mutated = fc
      .array(fc.tuple(fc.nat(valid.length - 1), fc.integer({ min: 0, max: 255 })), { maxLength: 8 })
      .map((changes) => {
        const bytes = Buffer.from(valid)
        for (const [at, byte] of changes) bytes[at] = byte
        return bytes
      })
    const anything = fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes))
    fc.assert(
      fc.property(
        fc.oneof(mutated, anything),
        fc.constantFrom(eventType, coreEventType),
        (b, type) => {
          try {
            decodeStruct(type, b, valuesMax)
            unwrapEnvelope(wrapEnvelope({ kind: 'Event', apiVersion: 'v1' }, b))
            unwrapEnvelope(Buffer.concat([Buffer.from('k8s\0'), b]))
          } catch (error) {
            assert.ok(error instanceof ProtobufError || error instanceof StatusError, String(error))
          }
        },
      ),
      { numRuns: 2000 },
    )
  })
})

test('a deprecated time of zero differs from an unset one', () => {
  const read = (event: JsonObject): JsonObject =>
    decodeStruct(eventType, encodeStruct(eventType, event), valuesMax)
  const zero = { deprecatedLastTimestamp: '0001-01-01T00:00:00Z' }
  assert.deepEqual(read(zero), zero)
  assert.deepEqual(read({}), {})
})
