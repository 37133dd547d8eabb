import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { JsonObject } from '../lib/json.ts'
import { fieldSetOfV1, fieldsV1Of, NO_FIELDS, shownPaths } from './field-set.ts'
import { changesOf, merged, namedFields, repeatedEntry, without } from './typed-tree.ts'

const owner = (uid: string, name = 'p'): JsonObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  name,
  uid,
})

describe('the fields that an event names', () => {
  const cases: readonly (readonly [string, JsonObject, JsonObject])[] = [
    [
      'texts and numbers',
      { note: 'x', deprecatedCount: 0 },
      { 'f:note': {}, 'f:deprecatedCount': {} },
    ],
    ['references as a whole', { regarding: { kind: 'Pod', name: 'p' } }, { 'f:regarding': {} }],
    ['members of a series', { series: { count: 2 } }, { 'f:series': { 'f:count': {} } }],
    [
      'labels by name',
      { metadata: { labels: { a: '1', __proto__x: '2' } } },
      { 'f:metadata': { 'f:labels': { 'f:a': {}, 'f:__proto__x': {} } } },
    ],
    [
      'owners by uid, as a whole',
      { metadata: { ownerReferences: [owner('u1')] } },
      { 'f:metadata': { 'f:ownerReferences': { 'k:{"uid":"u1"}': {} } } },
    ],
    [
      'finalizers by value',
      { metadata: { finalizers: ['a'] } },
      { 'f:metadata': { 'f:finalizers': { 'v:"a"': {} } } },
    ],
    ['what is null', { note: null, series: null }, { 'f:note': {}, 'f:series': {} }],
    ['an empty map', { metadata: { labels: {} } }, { 'f:metadata': { 'f:labels': {} } }],
    ['nothing of an empty list', { metadata: { finalizers: [] } }, {}],
    ['nothing that the table does not have', { kind: 'Event', apiVersion: 'v1' }, {}],
  ]
  for (const [what, event, fields] of cases) {
    test(what, () => assert.deepEqual(fieldsV1Of(namedFields(event)), fields))
  }
})

describe('what has changed', () => {
  const cases: readonly (readonly [string, JsonObject, JsonObject, JsonObject, JsonObject])[] = [
    ['nothing', { note: 'x' }, { note: 'x' }, {}, {}],
    ['a text that is new', {}, { note: 'x' }, { 'f:note': {} }, {}],
    ['a time that was null', { eventTime: null }, { eventTime: 'x' }, { 'f:eventTime': {} }, {}],
    ['a text that is gone', { note: 'x' }, {}, {}, { 'f:note': {} }],
    [
      'a reference, whatever in it',
      { regarding: { kind: 'Pod', name: 'a' } },
      { regarding: { kind: 'Pod', name: 'b' } },
      { 'f:regarding': {} },
      {},
    ],
    [
      'a series that is new, itself and what is in it',
      {},
      { series: { count: 2 } },
      { 'f:series': { '.': {}, 'f:count': {} } },
      {},
    ],
    [
      'a label more and one less',
      { metadata: { labels: { a: '1', b: '2' } } },
      { metadata: { labels: { b: '2', c: '3' } } },
      { 'f:metadata': { 'f:labels': { 'f:c': {} } } },
      { 'f:metadata': { 'f:labels': { 'f:a': {} } } },
    ],
    [
      'a finalizer more, not its place',
      { metadata: { finalizers: ['a'] } },
      { metadata: { finalizers: ['b', 'a'] } },
      { 'f:metadata': { 'f:finalizers': { 'v:"b"': {} } } },
      {},
    ],
    [
      'an owner, as a whole',
      { metadata: { ownerReferences: [owner('u1', 'p')] } },
      { metadata: { ownerReferences: [owner('u1', 'q')] } },
      { 'f:metadata': { 'f:ownerReferences': { 'k:{"uid":"u1"}': {} } } },
      {},
    ],
    [
      'all labels gone',
      { metadata: { labels: { a: '1' } } },
      { metadata: {} },
      {},
      { 'f:metadata': { 'f:labels': { '.': {}, 'f:a': {} } } },
    ],
  ]
  for (const [what, old, now, set, removed] of cases) {
    test(what, () => {
      const changes = changesOf(old, now)
      assert.deepEqual(fieldsV1Of(changes.set), set)
      assert.deepEqual(fieldsV1Of(changes.removed), removed)
    })
  }
})

describe('two events together', () => {
  const cases: readonly (readonly [string, JsonObject, JsonObject, JsonObject])[] = [
    ['have what either has', { note: 'x' }, { reason: 'y' }, { note: 'x', reason: 'y' }],
    ['have the upper value', { note: 'x' }, { note: null }, { note: null }],
    [
      'have the upper reference',
      { related: { kind: 'A', name: 'a' } },
      { related: { kind: 'B' } },
      { related: { kind: 'B' } },
    ],
    [
      'have the members of both series',
      { series: { count: 2 } },
      { series: { lastObservedTime: 't' } },
      { series: { count: 2, lastObservedTime: 't' } },
    ],
    [
      'keep labels that an empty map says nothing of',
      { metadata: { labels: { a: '1' } } },
      { metadata: { labels: {} } },
      { metadata: { labels: { a: '1' } } },
    ],
    [
      'have every owner once',
      { metadata: { ownerReferences: [owner('u1'), owner('u2')] } },
      { metadata: { ownerReferences: [owner('u2', 'q'), owner('u3')] } },
      { metadata: { ownerReferences: [owner('u1'), owner('u2', 'q'), owner('u3')] } },
    ],
    [
      'have finalizers in the upper order',
      { metadata: { finalizers: ['a', 'b', 'c'] } },
      { metadata: { finalizers: ['c', 'x', 'a'] } },
      { metadata: { finalizers: ['b', 'c', 'x', 'a'] } },
    ],
  ]
  for (const [what, below, above, together] of cases) {
    test(what, () => {
      const before = structuredClone([below, above])
      assert.deepEqual(merged(below, above), together)
      assert.deepEqual([below, above], before)
    })
  }
})

describe('an event without some fields', () => {
  const cases: readonly (readonly [string, JsonObject, JsonObject, JsonObject])[] = [
    ['lacks a text', { note: 'x', type: 'y' }, { 'f:note': {} }, { type: 'y' }],
    [
      'lacks a reference',
      { related: { kind: 'A' }, type: 'y' },
      { 'f:related': {} },
      { type: 'y' },
    ],
    [
      'keeps what is left of labels',
      { metadata: { labels: { a: '1', b: '2' } } },
      { 'f:metadata': { 'f:labels': { '.': {}, 'f:a': {} } } },
      { metadata: { labels: { b: '2' } } },
    ],
    [
      'loses a series with the last in it',
      { series: { count: 2 }, type: 'y' },
      { 'f:series': { 'f:count': {} } },
      { type: 'y' },
    ],
    [
      'lacks entries of lists',
      { metadata: { name: 'n', finalizers: ['a', 'b'], ownerReferences: [owner('u1')] } },
      {
        'f:metadata': {
          'f:finalizers': { 'v:"a"': {} },
          'f:ownerReferences': { 'k:{"uid":"u1"}': {} },
        },
      },
      { metadata: { name: 'n', finalizers: ['b'] } },
    ],
    [
      'is the same without what it lacks',
      { type: 'y' },
      { 'f:note': {}, 'f:series': { 'f:count': {} } },
      { type: 'y' },
    ],
    [
      'keeps what the table does not have',
      { what: { else: 1 }, type: 'y' },
      { 'f:what': {} },
      { what: { else: 1 }, type: 'y' },
    ],
  ]
  for (const [what, event, fields, left] of cases) {
    test(what, () => assert.deepEqual(without(event, fieldSetOfV1(fields) ?? NO_FIELDS), left))
  }
})

describe('an entry that comes twice', () => {
  const shown = (event: JsonObject): readonly string[] => [
    ...shownPaths(repeatedEntry(event) ?? NO_FIELDS),
  ]
  test('is found among finalizers', () => {
    assert.deepEqual(shown({ metadata: { finalizers: ['a', 'b', 'a'] } }), [
      '.metadata.finalizers[="a"]',
    ])
  })
  test('is found among owners by their uid', () => {
    const ownerReferences = [owner('u1', 'p'), owner('u1', 'q')]
    assert.deepEqual(shown({ metadata: { ownerReferences } }), [
      '.metadata.ownerReferences[uid="u1"]',
    ])
  })
  test('is missed where each comes once', () => {
    assert.deepEqual(shown({ metadata: { finalizers: ['a', 'b'] }, note: 'x' }), [])
  })
})
