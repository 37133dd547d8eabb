import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { coreEventType } from '../api/core-schema.ts'
import { eventType } from '../api/schema.ts'
import { StatusError } from '../api/status.ts'
import type { JsonObject } from '../lib/json.ts'
import { opened, sealed, sealedDocument } from './kube-protobuf.ts'
import { structsOf } from './made-structs.test.ts'
import { statusType } from './meta-types.ts'
import { decodeStruct, encodeStruct, ProtobufError } from './protobuf-struct.ts'

const valuesMax = 1000

/** What a Kubernetes API server sent for a Status: 404 of an event called "missing". */
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
  test('an event comes back as it was', () => {
    const bytes = encodeStruct(eventType, event)
    assert.deepEqual(decodeStruct(eventType, bytes, valuesMax), event)
  })

  test('any event comes back as it was, in either group', () => {
    for (const type of [eventType, coreEventType]) {
      fc.assert(
        fc.property(structsOf(type), (made) => {
          assert.deepEqual(decodeStruct(type, encodeStruct(type, made), valuesMax), made)
        }),
      )
    }
  })

  test('what says nothing is left out when it is read', () => {
    const bytes = encodeStruct(eventType, { metadata: {}, reason: '', regarding: {}, series: {} })
    assert.deepEqual(decodeStruct(eventType, bytes, valuesMax), { series: {} })
  })

  test('a Status that Kubernetes sent is read', () => {
    const { kind, apiVersion, raw } = opened(recordedStatus)
    assert.deepEqual([kind, apiVersion], ['Status', 'v1'])
    assert.deepEqual(decodeStruct(statusType, raw, valuesMax), {
      status: 'Failure',
      message: 'events.events.k8s.io "missing" not found',
      reason: 'NotFound',
      details: { name: 'missing', group: 'events.k8s.io', kind: 'events' },
      code: 404,
    })
  })

  test('documents are sealed under their own names', () => {
    const list = {
      kind: 'APIResourceList',
      apiVersion: 'v1',
      groupVersion: 'events.k8s.io/v1',
      resources: [{ name: 'events', namespaced: true, kind: 'Event', verbs: ['get', 'list'] }],
    }
    const { kind, raw } = opened(sealedDocument(list))
    assert.equal(kind, 'APIResourceList')
    assert.ok(raw.includes('events.k8s.io/v1'))
  })

  test('fields that nobody knows are skipped', () => {
    const more = Buffer.concat([encodeStruct(eventType, event), Buffer.from([0xf8, 0x07, 0x01])])
    assert.deepEqual(decodeStruct(eventType, more, valuesMax), event)
  })

  test('a message that is there twice is one', () => {
    const parts = [{ metadata: { name: 'a' } }, { metadata: { labels: { b: '1' } } }]
    const bytes = Buffer.concat(parts.map((part) => encodeStruct(eventType, part)))
    const metadata = { name: 'a', labels: { b: '1' } }
    assert.deepEqual(decodeStruct(eventType, bytes, valuesMax), { metadata })
  })

  test('hostile envelopes and fields end quickly', () => {
    const mebibyte = 1024 * 1024
    const empty = Buffer.alloc(mebibyte, Buffer.from([0x0a, 0x00]))
    const unknown = Buffer.alloc(mebibyte, Buffer.from([0x9a, 0x06, 0x00]))
    const before = process.threadCpuUsage()
    assert.throws(() => opened(Buffer.concat([Buffer.from('k8s\0'), empty])), ProtobufError)
    assert.throws(() => decodeStruct(eventType, unknown, valuesMax), StatusError)
    assert.throws(() => decodeStruct(eventType, empty, valuesMax), StatusError)
    const { user } = process.threadCpuUsage(before)
    assert.ok(user < 50_000, `${user} microseconds`)
  })

  test('what is not in an envelope is refused', () => {
    for (const bytes of ['', 'k8s', '{}', 'k8s\0\x0a\xff']) {
      assert.throws(() => opened(Buffer.from(bytes, 'latin1')), ProtobufError)
    }
  })

  test('more values than are taken are refused', () => {
    const labels = Object.fromEntries(Array.from({ length: 600 }, (_, index) => [`k${index}`, 'v']))
    const bytes = encodeStruct(eventType, { metadata: { labels } })
    assert.throws(() => decodeStruct(eventType, bytes, 500), { reason: 'RequestEntityTooLarge' })
  })

  test('any bytes are an event or refused, and nothing else happens', () => {
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
            opened(sealed({ kind: 'Event', apiVersion: 'v1' }, b))
            opened(Buffer.concat([Buffer.from('k8s\0'), b]))
          } catch (error) {
            assert.ok(error instanceof ProtobufError || error instanceof StatusError, String(error))
          }
        },
      ),
      { numRuns: 2000 },
    )
  })
})

test('a deprecated time of zero is told from one that was not sent', () => {
  const read = (event: JsonObject): JsonObject =>
    decodeStruct(eventType, encodeStruct(eventType, event), valuesMax)
  const zero = { deprecatedLastTimestamp: '0001-01-01T00:00:00Z' }
  assert.deepEqual(read(zero), zero)
  assert.deepEqual(read({}), {})
})
