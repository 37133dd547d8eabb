import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { coreGroup, eventsGroup } from '../../api/event-groups.ts'
import { StatusError } from '../../api/status.ts'
import { parseJson } from '../../codec/json/json-text.ts'
import type { Json, JsonObject } from '../../lib/json.ts'
import { readConfig } from './applied-config.ts'
import { fieldsV1Of } from './field-set.ts'

const group = eventsGroup('events.k8s.io')
const type = { apiVersion: 'events.k8s.io/v1', kind: 'Event' }

describe('an applied configuration', () => {
  test('has the fields it contains, without those that cannot have an owner', () => {
    const { fields } = readConfig(
      { ...type, metadata: { name: 'a', namespace: 'b', uid: 'u', labels: { l: '1' } }, note: 'x' },
      group,
    )
    assert.deepEqual(fieldsV1Of(fields), {
      'f:metadata': { 'f:labels': { 'f:l': {} } },
      'f:note': {},
    })
  })

  test('has times in canonical form', () => {
    const { tree } = readConfig(
      {
        ...type,
        eventTime: '2026-01-02T04:04:05+01:00',
        series: { count: 2, lastObservedTime: '2026-01-02T03:04:05.1Z' },
        deprecatedFirstTimestamp: null,
      },
      group,
    )
    assert.deepEqual(tree, {
      eventTime: '2026-01-02T03:04:05.000000Z',
      series: { count: 2, lastObservedTime: '2026-01-02T03:04:05.100000Z' },
      deprecatedFirstTimestamp: null,
    })
  })

  test('uses the internal field names, even when sent as core/v1', () => {
    const sent = { apiVersion: 'v1', kind: 'Event', message: 'x', involvedObject: { name: 'p' } }
    const { tree, fields } = readConfig(sent, coreGroup)
    assert.deepEqual(tree, { note: 'x', regarding: { name: 'p' } })
    assert.deepEqual(fieldsV1Of(fields), { 'f:note': {}, 'f:regarding': {} })
  })

  test('is refused for an unknown field after many duplicate fields', () => {
    const labels = Array.from({ length: 100 }, (_, n) => `"l${n}":"1","l${n}":"2"`).join()
    const text = `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"labels":{${labels}}},"notes":"x"}`
    const { value, duplicates } = parseJson(text)
    assert.throws(
      () => readConfig(value, group, duplicates),
      /\.notes: field not declared in schema/,
    )
  })

  test('may have labels with any name', () => {
    const labels: JsonObject = JSON.parse('{"__proto__":"1","constructor":"2"}')
    const { fields, tree } = readConfig({ ...type, metadata: { labels } }, group)
    assert.deepEqual(fieldsV1Of(fields), {
      'f:metadata': { 'f:labels': { 'f:__proto__': {}, 'f:constructor': {} } },
    })
    assert.deepEqual(Object.keys((tree['metadata'] as { labels: object }).labels), [
      '__proto__',
      'constructor',
    ])
  })
})

describe('an invalid configuration', () => {
  const cases: readonly (readonly [string, Json, string | RegExp])[] = [
    ['no object', [], 'invalid object type: /, Kind='],
    ['no apiVersion', { kind: 'Event' }, 'invalid object type: /, Kind=Event'],
    ['no kind', { apiVersion: 'events.k8s.io/v1' }, 'invalid object type: events.k8s.io/v1, Kind='],
    ['another version', { ...type, apiVersion: 'v1' }, 'invalid object type: /v1, Kind=Event'],
    ['another kind', { ...type, kind: 'Pod' }, 'invalid object type: events.k8s.io/v1, Kind=Pod'],
    [
      'managedFields',
      { ...type, metadata: { managedFields: [] } },
      'metadata.managedFields must be nil',
    ],
    [
      'an unknown field',
      { ...type, metadata: { name: 'a' }, surprise: 1 },
      'failed to create typed patch object (/a; events.k8s.io/v1, Kind=Event): .surprise: field not declared in schema',
    ],
    [
      'several unknown fields',
      { ...type, metadata: { name: 'a', namespace: 'n', x: 1 }, regarding: { y: 2 } },
      'failed to create typed patch object (n/a; events.k8s.io/v1, Kind=Event): errors:\n  .metadata.x: field not declared in schema\n  .regarding.y: field not declared in schema',
    ],
    [
      'a finalizer twice',
      { ...type, metadata: { finalizers: ['a/b', 'a/b'] } },
      'failed to create typed patch object (/; events.k8s.io/v1, Kind=Event): .metadata.finalizers[="a/b"]: duplicate entry',
    ],
    ['a number for a string', { ...type, note: 1 }, /cannot unmarshal number into Go struct field/],
    ['an invalid time', { ...type, eventTime: 'today' }, /parsing time "today"/],
    ['invalid metadata', { ...type, metadata: 'x' }, /cannot unmarshal string/],
  ]
  for (const [what, sent, message] of cases) {
    test(`${what} is a 400`, () => {
      assert.throws(
        () => readConfig(sent, group),
        (error) => {
          assert.ok(error instanceof StatusError)
          assert.equal(error.code, 400)
          if (typeof message === 'string') assert.equal(error.message, message)
          else assert.match(error.message, message)
          return true
        },
      )
    })
  }

  test('may have null managedFields', () => {
    assert.deepEqual(readConfig({ ...type, metadata: { managedFields: null } }, group).problems, [])
  })
})

describe('arbitrary input', () => {
  test('is either read or rejected with a StatusError', () => {
    const names = fc.constantFrom('metadata', 'series', 'regarding', 'note', 'labels', 'finalizers')
    const trees = fc.jsonValue({ maxDepth: 2 })
    fc.assert(
      fc.property(fc.dictionary(names, fc.oneof(trees, fc.dictionary(names, trees))), (sent) => {
        try {
          readConfig({ ...type, ...sent } as JsonObject, group)
        } catch (error) {
          assert.ok(error instanceof StatusError, String(error))
        }
      }),
    )
  })
})
