import { deepEqual, equal, ok } from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Event } from '../../api/event.ts'
import { type EventGroup, eventsGroup } from '../../api/event-groups.ts'
import { eventType } from '../../api/schema.ts'
import { StatusError } from '../../api/status.ts'
import { findTypeMismatch } from '../../api/validation/type-check.ts'
import type { Json } from '../../lib/json.ts'
import { eventTree, viewOf } from '../encoders/event-view.ts'
import { decodeEventBody, decodeEventTree, encodeEvent, strictDecodingError } from './event-json.ts'

const options: EventGroup = eventsGroup('events.k8s.io')

const scheduled = {
  apiVersion: 'events.k8s.io/v1',
  kind: 'Event',
  metadata: { name: 'a', namespace: 'ns' },
  eventTime: '2026-01-02T03:04:05.678901Z',
  action: 'Binding',
  reason: 'Scheduled',
  type: 'Normal',
  reportingController: 'example.com/scheduler',
  reportingInstance: 'scheduler-0',
  regarding: { kind: 'Pod', namespace: 'ns', name: 'web-0' },
  note: 'Successfully assigned web-0 to node-1',
}

function decode(body: unknown): ReturnType<typeof decodeEventBody> {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return decodeEventBody(Buffer.from(text), options)
}

function refusal(body: unknown): string {
  try {
    decode(body)
  } catch (error) {
    ok(error instanceof StatusError)
    equal(error.reason, 'BadRequest')
    return error.message
  }
  throw new Error('the body was accepted')
}

const handled = 'Event in version "v1" cannot be handled as a Event: '
const unrecognized = 'the object provided is unrecognized (must be of type Event): '

test('decodeEventBody decodes an event without its kind and apiVersion', () => {
  const { apiVersion: _apiVersion, kind: _kind, ...event } = scheduled
  deepEqual(decode(scheduled), { event, problems: [] })
  deepEqual(decode(event), { event, problems: [] })
})

test('decodeEventBody decodes empty values as an empty event', () => {
  deepEqual(decode('{}').event, { metadata: {} })
  deepEqual(decode('null').event, { metadata: {} })
  const zeros = {
    metadata: { name: '', generation: 0, labels: {}, finalizers: [], creationTimestamp: null },
    eventTime: '0001-01-01T00:00:00.000000Z',
    regarding: { name: '' },
    deprecatedSource: null,
    deprecatedCount: 0,
    note: null,
  }
  deepEqual(decode(zeros).event, { metadata: {} })
})

test('decodeEventBody keeps empty values of fields where they have a meaning', () => {
  const { event } = decode({
    metadata: {
      deletionGracePeriodSeconds: 0,
      ownerReferences: [{ controller: false }, null],
      labels: { a: null, b: '' },
      finalizers: [null],
    },
    series: {},
    related: { name: '' },
  })
  deepEqual(event, {
    metadata: {
      deletionGracePeriodSeconds: 0,
      ownerReferences: [{ controller: false }, {}],
      labels: { a: '', b: '' },
      finalizers: [''],
    },
    series: {},
    related: {},
  })
})

test('decodeEventBody reports unknown and repeated fields in document order', () => {
  const surprising = {
    ...scheduled,
    metadata: { name: 'd', odd: true },
    regarding: { what: 1 },
    surprise: 1,
  }
  deepEqual(decode(surprising).problems, [
    'unknown field "metadata.odd"',
    'unknown field "regarding.what"',
    'unknown field "surprise"',
  ])
  const twice = decode('{"metadata":{"name":"f","name":"g"},"reason":"R","Action":1,"reason":"S"}')
  deepEqual(twice.problems, [
    'duplicate field "metadata.name"',
    'unknown field "Action"',
    'duplicate field "reason"',
  ])
  deepEqual(twice.event, { metadata: { name: 'g' }, reason: 'S' })
  deepEqual(decode('{"kind":"Event","kind":"Event","x":1,"x":2}').problems, [
    'duplicate field "kind"',
    'unknown field "x"',
  ])
  deepEqual(
    decode('{"metadata":{"labels":{"a":"1","a":"2"},"ownerReferences":[{},{"foo":1}]}}').problems,
    ['duplicate field "metadata.labels.a"', 'unknown field "metadata.ownerReferences[1].foo"'],
  )
})

test('decodeEventBody reports names that objects inherit like any other', () => {
  const body = `{"metadata":{"name":"p","__proto__":{"x":1},"constructor":{"prototype":{"y":1}}},"__proto__":{"z":1}}`
  const { event, problems } = decode(body)
  deepEqual(problems, [
    'unknown field "metadata.__proto__"',
    'unknown field "metadata.constructor"',
    'unknown field "__proto__"',
  ])
  deepEqual(event, { metadata: { name: 'p' } })
})

test('decodeEventBody accepts a label called __proto__, which pollutes nothing', () => {
  const { event } = decode('{"metadata":{"labels":{"__proto__":"x","constructor":"y"}}}')
  deepEqual(Object.entries(event.metadata.labels ?? {}), [
    ['__proto__', 'x'],
    ['constructor', 'y'],
  ])
  ok(encodeEvent(event).includes('"labels":{"__proto__":"x","constructor":"y"}'))
  const withNull = decode('{"metadata":{"labels":{"__proto__":null}}}').event
  ok(encodeEvent(withNull).includes('"labels":{"__proto__":""}'))
})

test('decodeEventBody reports at most 100 problems, with truncated names', () => {
  const many = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`x${index}`, 1]))
  equal(decode(many).problems.length, 100)
  const [problem = ''] = decode({ ['x'.repeat(100_000)]: 1 }).problems
  ok(problem.length < 300)
})

test('decodeEventBody reports which value has the wrong type', () => {
  const messages: readonly (readonly [object, string])[] = [
    [
      { eventTime: 5 },
      'json: cannot unmarshal number into Go struct field Event.eventTime of type string',
    ],
    [{ note: 7 }, 'json: cannot unmarshal number into Go struct field Event.note of type string'],
    [{ note: true }, 'json: cannot unmarshal bool into Go struct field Event.note of type string'],
    [
      { series: { count: 2147483648 } },
      'json: cannot unmarshal number 2147483648 into Go struct field EventSeries.series.count of type int32',
    ],
    [
      { series: { count: 2.5 } },
      'json: cannot unmarshal number 2.5 into Go struct field EventSeries.series.count of type int32',
    ],
    [
      { series: { count: 'two' } },
      'json: cannot unmarshal string into Go struct field EventSeries.series.count of type int32',
    ],
    [
      { regarding: 'pod' },
      'json: cannot unmarshal string into Go struct field Event.regarding of type v1.ObjectReference',
    ],
    [
      { metadata: { labels: { k: 5 } } },
      'json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string',
    ],
    [
      { metadata: { labels: ['k'] } },
      'json: cannot unmarshal array into Go struct field ObjectMeta.metadata.labels of type map[string]string',
    ],
    [
      { metadata: { ownerReferences: [{ name: {} }] } },
      'json: cannot unmarshal object into Go struct field OwnerReference.metadata.ownerReferences.name of type string',
    ],
    [
      { metadata: { ownerReferences: ['x'] } },
      'json: cannot unmarshal string into Go struct field ObjectMeta.metadata.ownerReferences of type v1.OwnerReference',
    ],
    [
      { metadata: { finalizers: {} } },
      'json: cannot unmarshal object into Go struct field ObjectMeta.metadata.finalizers of type []string',
    ],
    [
      { metadata: { generation: 1e300 } },
      'json: cannot unmarshal number 1e+300 into Go struct field ObjectMeta.metadata.generation of type int64',
    ],
    [
      { eventTime: '2026-02-30T03:04:05.000001Z' },
      'parsing time "2026-02-30T03:04:05.000001Z": day out of range',
    ],
  ]
  for (const [body, message] of messages) equal(refusal(body), handled + message)
})

test('decodeEventBody rejects another kind and another version', () => {
  equal(
    refusal({ ...scheduled, apiVersion: 'v1' }),
    'the API version in the data (v1) does not match the expected API version (events.k8s.io/v1)',
  )
  equal(
    refusal({ ...scheduled, kind: 'Pod' }),
    'Pod in version "v1" cannot be handled as a Event: no kind "Pod" is registered for version "events.k8s.io/v1"',
  )
  equal(
    refusal({ ...scheduled, apiVersion: 'a/b/c' }),
    `${unrecognized}unexpected GroupVersion string: a/b/c ({"apiVersion":"a/b/c","kind":" ...)`,
  )
  ok(refusal({ kind: 5 }).startsWith(unrecognized))
})

test('decodeEventBody quotes the first bytes of a body that is not an object', () => {
  const parse = `${unrecognized}couldn't get version/kind; json parse error: `
  equal(refusal(''), `${parse}unexpected end of JSON input (<empty>)`)
  equal(refusal('{"kind":"Event",'), `${parse}unexpected end of JSON input ({"kind":"Event",)`)
  equal(
    refusal('{"apiVersion":"events.k8s.io/v1","kind":"Event"} trailing'),
    `${parse}invalid character 't' after top-level value ({"apiVersion":"events.k8s.io/v ...)`,
  )
  equal(
    refusal('\0\x01'),
    `${parse}invalid character '\\x00' looking for beginning of value (0001)`,
  )
  ok(refusal('[]').endsWith(' (5b5d)'))
  ok(refusal('"text"').endsWith(' (227465787422)'))
})

test('decodeEventBody rejects hostile bodies with a 400', () => {
  const bodies = [
    '{"a":'.repeat(600_000),
    '['.repeat(200_000),
    `{"note":1e400}`,
    `{"note":${'9'.repeat(1000)}}`,
    '\ufeff{}',
    '{"note":"\0"}',
    `{"metadata":{"labels":${'{"a":'.repeat(300)}`,
  ]
  for (const body of bodies) ok(refusal(body).length < 1000)
  const invalidUtf8 = Buffer.concat([
    Buffer.from('{"note":"a'),
    Buffer.from([0xff, 0xc0]),
    Buffer.from('"}'),
  ])
  equal(decodeEventBody(invalidUtf8, options).event.note, 'a\ufffd\ufffd')
})

test('decodeEventTree rejects a tree that is not an event', () => {
  for (const tree of [[], 'x', 5, true, { kind: 'Pod' }] as Json[]) {
    let refused: unknown
    try {
      decodeEventTree(tree, options)
    } catch (error) {
      refused = error
    }
    ok(refused instanceof StatusError && refused.code === 400)
  }
})

test('strictDecodingError lists all problems', () => {
  const error = strictDecodingError(
    ['unknown field "a"', 'duplicate field "b"'],
    'events.example.com/v1',
  )
  equal(error.message, `${handled}strict decoding error: unknown field "a", duplicate field "b"`)
})

test('encodeEvent writes fields in schema order, including those that are always present', () => {
  equal(
    encodeEvent(decode({ ...scheduled, series: {}, related: {} }).event).toString(),
    '{"metadata":{"name":"a","namespace":"ns"},"eventTime":"2026-01-02T03:04:05.678901Z","series":{"count":0,"lastObservedTime":null},"reportingController":"example.com/scheduler","reportingInstance":"scheduler-0","action":"Binding","reason":"Scheduled","regarding":{"kind":"Pod","namespace":"ns","name":"web-0"},"related":{},"note":"Successfully assigned web-0 to node-1","type":"Normal","deprecatedSource":{},"deprecatedFirstTimestamp":null,"deprecatedLastTimestamp":null}',
  )
  equal(
    encodeEvent({
      metadata: { labels: { b: '2', a: '1' }, ownerReferences: [{ uid: 'u' }] },
    }).toString(),
    '{"metadata":{"labels":{"a":"1","b":"2"},"ownerReferences":[{"apiVersion":"","kind":"","name":"","uid":"u"}]},"eventTime":null,"regarding":{},"deprecatedSource":{},"deprecatedFirstTimestamp":null,"deprecatedLastTimestamp":null}',
  )
})

test('eventTree returns the event as clients see it, in a new tree', () => {
  const event: Event = { metadata: { name: 'a', labels: { x: '1' } } }
  const tree = eventTree(encodeEvent(event), viewOf(options))
  deepEqual(tree, {
    kind: 'Event',
    apiVersion: 'events.k8s.io/v1',
    metadata: { name: 'a', labels: { x: '1' } },
    eventTime: null,
    regarding: {},
    deprecatedSource: {},
    deprecatedFirstTimestamp: null,
    deprecatedLastTimestamp: null,
  })
  deepEqual(decodeEventTree(tree, options).event, event)
})

const text = fc.string({ minLength: 1, maxLength: 12, unit: 'grapheme' })
const time = fc.constantFrom('2026-01-02T03:04:05Z', '1999-12-31T23:59:59Z')
const microTime = fc.constantFrom('2026-01-02T03:04:05.000001Z', '2024-02-29T00:00:00.120000Z')
const stringMap = fc.dictionary(fc.string({ maxLength: 8 }), text, {
  minKeys: 1,
  maxKeys: 4,
  noNullPrototype: true,
})
const reference = {
  kind: text,
  namespace: text,
  name: text,
  uid: text,
  apiVersion: text,
  fieldPath: text,
}
const anyEvent = fc.record(
  {
    metadata: fc.record(
      {
        name: text,
        resourceVersion: text,
        generation: fc.integer({ min: 1 }),
        creationTimestamp: time,
        deletionGracePeriodSeconds: fc.nat(),
        labels: stringMap,
        annotations: stringMap,
        ownerReferences: fc.array(
          fc.record({ uid: text, controller: fc.boolean() }, { requiredKeys: [] }),
          {
            minLength: 1,
            maxLength: 3,
          },
        ),
        finalizers: fc.array(text, { minLength: 1, maxLength: 3 }),
        managedFields: fc.array(
          fc.record(
            {
              manager: text,
              time,
              fieldsV1: fc.dictionary(text, fc.constant({}), { noNullPrototype: true }),
            },
            { requiredKeys: [] },
          ),
          { minLength: 1, maxLength: 2 },
        ),
      },
      { requiredKeys: [], noNullPrototype: true },
    ),
    eventTime: microTime,
    series: fc.record(
      { count: fc.integer({ min: 1, max: 2147483647 }), lastObservedTime: microTime },
      { requiredKeys: [] },
    ),
    reason: text,
    note: text,
    regarding: fc.record({ ...reference }, { requiredKeys: ['kind'] }),
    related: fc.record({ ...reference }, { requiredKeys: [] }),
    deprecatedLastTimestamp: time,
    deprecatedCount: fc
      .integer({ min: -2147483648, max: 2147483647 })
      .filter((count) => count !== 0),
  },
  { requiredKeys: ['metadata'], noNullPrototype: true },
)

test('decodeEventBody and JSON.parse decode the output of encodeEvent to the same valid event', () => {
  fc.assert(
    fc.property(anyEvent, (generated) => {
      const event: Event = JSON.parse(JSON.stringify(generated))
      const encoded = encodeEvent(event)
      deepEqual(decodeEventBody(encoded, options), { event, problems: [] })
      deepEqual(decodeEventTree(JSON.parse(encoded.toString()), options), { event, problems: [] })
      deepEqual(encodeEvent(decodeEventBody(encoded, options).event), encoded)
      equal(findTypeMismatch(eventType, JSON.parse(encoded.toString())), undefined)
    }),
  )
})
