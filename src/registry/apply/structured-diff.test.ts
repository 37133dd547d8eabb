import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { JsonObject } from '../../lib/json.ts'
import { fieldSetOfV1, fieldsV1Of, NO_FIELDS, shownPaths } from './field-set.ts'
import { changesOf, merged, namedFields, repeatedEntry, without } from './structured-diff.ts'

const owner = (uid: string, name = 'p'): JsonObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  name,
  uid,
})

describe('namedFields', () => {
  const cases: readonly (readonly [string, JsonObject, JsonObject])[] = [
    [
      'strings and numbers are fields',
      { note: 'x', deprecatedCount: 0 },
      { 'f:note': {}, 'f:deprecatedCount': {} },
    ],
    ['a reference is one field', { regarding: { kind: 'Pod', name: 'p' } }, { 'f:regarding': {} }],
    ['members of a series are fields', { series: { count: 2 } }, { 'f:series': { 'f:count': {} } }],
    [
      'labels are fields by name',
      { metadata: { labels: { a: '1', __proto__x: '2' } } },
      { 'f:metadata': { 'f:labels': { 'f:a': {}, 'f:__proto__x': {} } } },
    ],
    [
      'an owner is one field, by uid',
      { metadata: { ownerReferences: [owner('u1')] } },
      { 'f:metadata': { 'f:ownerReferences': { 'k:{"uid":"u1"}': {} } } },
    ],
    [
      'finalizers are fields by value',
      { metadata: { finalizers: ['a'] } },
      { 'f:metadata': { 'f:finalizers': { 'v:"a"': {} } } },
    ],
    ['null is a field', { note: null, series: null }, { 'f:note': {}, 'f:series': {} }],
    ['an empty map is a field', { metadata: { labels: {} } }, { 'f:metadata': { 'f:labels': {} } }],
    ['an empty list has no fields', { metadata: { finalizers: [] } }, {}],
    ['members that are not in the table are no fields', { kind: 'Event', apiVersion: 'v1' }, {}],
  ]
  for (const [what, event, fields] of cases) {
    test(what, () => assert.deepEqual(fieldsV1Of(namedFields(event)), fields))
  }
})

describe('changesOf', () => {
  const cases: readonly (readonly [string, JsonObject, JsonObject, JsonObject, JsonObject])[] = [
    ['equal events have no changes', { note: 'x' }, { note: 'x' }, {}, {}],
    ['a new string is set', {}, { note: 'x' }, { 'f:note': {} }, {}],
    [
      'a time that was null is set',
      { eventTime: null },
      { eventTime: 'x' },
      { 'f:eventTime': {} },
      {},
    ],
    ['a missing string is removed', { note: 'x' }, {}, {}, { 'f:note': {} }],
    [
      'a reference is set as a whole',
      { regarding: { kind: 'Pod', name: 'a' } },
      { regarding: { kind: 'Pod', name: 'b' } },
      { 'f:regarding': {} },
      {},
    ],
    [
      'a new series is set, with its members',
      {},
      { series: { count: 2 } },
      { 'f:series': { '.': {}, 'f:count': {} } },
      {},
    ],
    [
      'one label is set and one is removed',
      { metadata: { labels: { a: '1', b: '2' } } },
      { metadata: { labels: { b: '2', c: '3' } } },
      { 'f:metadata': { 'f:labels': { 'f:c': {} } } },
      { 'f:metadata': { 'f:labels': { 'f:a': {} } } },
    ],
    [
      'a new finalizer is set; positions do not count',
      { metadata: { finalizers: ['a'] } },
      { metadata: { finalizers: ['b', 'a'] } },
      { 'f:metadata': { 'f:finalizers': { 'v:"b"': {} } } },
      {},
    ],
    [
      'an owner is set as a whole',
      { metadata: { ownerReferences: [owner('u1', 'p')] } },
      { metadata: { ownerReferences: [owner('u1', 'q')] } },
      { 'f:metadata': { 'f:ownerReferences': { 'k:{"uid":"u1"}': {} } } },
      {},
    ],
    [
      'all labels are removed',
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

describe('merged', () => {
  const cases: readonly (readonly [string, JsonObject, JsonObject, JsonObject])[] = [
    [
      'the result has the fields of both',
      { note: 'x' },
      { reason: 'y' },
      { note: 'x', reason: 'y' },
    ],
    ['the upper value wins', { note: 'x' }, { note: null }, { note: null }],
    [
      'the upper reference wins',
      { related: { kind: 'A', name: 'a' } },
      { related: { kind: 'B' } },
      { related: { kind: 'B' } },
    ],
    [
      'a series has the members of both',
      { series: { count: 2 } },
      { series: { lastObservedTime: 't' } },
      { series: { count: 2, lastObservedTime: 't' } },
    ],
    [
      'an empty map keeps the labels',
      { metadata: { labels: { a: '1' } } },
      { metadata: { labels: {} } },
      { metadata: { labels: { a: '1' } } },
    ],
    [
      'every owner occurs once',
      { metadata: { ownerReferences: [owner('u1'), owner('u2')] } },
      { metadata: { ownerReferences: [owner('u2', 'q'), owner('u3')] } },
      { metadata: { ownerReferences: [owner('u1'), owner('u2', 'q'), owner('u3')] } },
    ],
    [
      'finalizers have the upper order',
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

describe('without', () => {
  const cases: readonly (readonly [string, JsonObject, JsonObject, JsonObject])[] = [
    ['a string is removed', { note: 'x', type: 'y' }, { 'f:note': {} }, { type: 'y' }],
    [
      'a reference is removed',
      { related: { kind: 'A' }, type: 'y' },
      { 'f:related': {} },
      { type: 'y' },
    ],
    [
      'other labels stay',
      { metadata: { labels: { a: '1', b: '2' } } },
      { 'f:metadata': { 'f:labels': { '.': {}, 'f:a': {} } } },
      { metadata: { labels: { b: '2' } } },
    ],
    [
      'a series is removed with its last member',
      { series: { count: 2 }, type: 'y' },
      { 'f:series': { 'f:count': {} } },
      { type: 'y' },
    ],
    [
      'entries of lists are removed',
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
      'missing fields are ignored',
      { type: 'y' },
      { 'f:note': {}, 'f:series': { 'f:count': {} } },
      { type: 'y' },
    ],
    [
      'members that are not in the table stay',
      { what: { else: 1 }, type: 'y' },
      { 'f:what': {} },
      { what: { else: 1 }, type: 'y' },
    ],
  ]
  for (const [what, event, fields, left] of cases) {
    test(what, () => assert.deepEqual(without(event, fieldSetOfV1(fields) ?? NO_FIELDS), left))
  }
})

describe('repeatedEntry', () => {
  const shown = (event: JsonObject): readonly string[] => [
    ...shownPaths(repeatedEntry(event) ?? NO_FIELDS),
  ]
  test('finds a duplicate finalizer', () => {
    assert.deepEqual(shown({ metadata: { finalizers: ['a', 'b', 'a'] } }), [
      '.metadata.finalizers[="a"]',
    ])
  })
  test('finds a duplicate owner by uid', () => {
    const ownerReferences = [owner('u1', 'p'), owner('u1', 'q')]
    assert.deepEqual(shown({ metadata: { ownerReferences } }), [
      '.metadata.ownerReferences[uid="u1"]',
    ])
  })
  test('finds nothing in an event without duplicates', () => {
    assert.deepEqual(shown({ metadata: { finalizers: ['a', 'b'] }, note: 'x' }), [])
  })
})
