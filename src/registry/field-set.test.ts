import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { Json, JsonObject } from '../lib/json.ts'
import {
  difference,
  type FieldSet,
  fieldSetOfV1,
  fieldsV1Of,
  intersection,
  isSameSet,
  NO_FIELDS,
  renamedTop,
  shownPaths,
  union,
} from './field-set.ts'

function setOf(fields: JsonObject): FieldSet {
  const set = fieldSetOfV1(fields)
  assert.ok(set)
  return set
}

const step = fc.oneof(
  fc.constantFrom('f:note', 'f:metadata', 'f:__proto__', 'f:constructor', 'i:0', 'i:12'),
  fc.string().map((name) => `f:${name}`),
  fc.string().map((value) => `v:${JSON.stringify(value)}`),
  fc.string().map((uid) => `k:${JSON.stringify({ uid })}`),
)

/** What stands in fieldsV1, up to some levels deep. */
function treeOf(levels: number): fc.Arbitrary<JsonObject> {
  if (levels === 0) return fc.constant({})
  const entry = fc.tuple(step, fc.boolean(), treeOf(levels - 1))
  return fc
    .array(entry, { maxLength: 4 })
    .map((entries) =>
      Object.fromEntries(
        entries.map(([name, isMember, inner]) => [
          name,
          isMember && Object.keys(inner).length > 0 ? { '.': {}, ...inner } : inner,
        ]),
      ),
    )
}
const tree = treeOf(3)
const set = tree.map(setOf)

describe('a set of fields', () => {
  test('comes out of fieldsV1 as it went in', () => {
    fc.assert(
      fc.property(tree, (fields) => {
        assert.deepEqual(fieldsV1Of(setOf(fields)), fields)
      }),
    )
  })

  test('is what both of two have, and either, and one without the other', () => {
    fc.assert(
      fc.property(set, set, (a, b) => {
        assert.ok(isSameSet(union(difference(a, b), intersection(a, b)), a))
        assert.ok(isSameSet(union(a, b), union(b, a)))
        assert.ok(isSameSet(intersection(a, b), intersection(b, a)))
        assert.equal(difference(a, union(a, b)).size, 0)
        assert.equal(intersection(difference(a, b), b).size, 0)
        assert.ok(isSameSet(union(a, NO_FIELDS), a))
      }),
    )
  })

  test('tells a place from what is inside it', () => {
    const both = setOf({ 'f:series': { '.': {}, 'f:count': {} } })
    const inside = setOf({ 'f:series': { 'f:count': {} } })
    const place = setOf({ 'f:series': {} })
    assert.deepEqual(fieldsV1Of(difference(both, inside)), { 'f:series': {} })
    assert.deepEqual(fieldsV1Of(difference(both, place)), { 'f:series': { 'f:count': {} } })
    assert.equal(intersection(inside, place).size, 0)
    assert.equal(isSameSet(both, inside), false)
  })

  test('knows an entry however its key is written', () => {
    const loose = setOf({ 'k:{ "uid" : "u1", "a": 1 }': {}, 'v: "x"': {} })
    assert.ok(isSameSet(loose, setOf({ 'k:{"a":1,"uid":"u1"}': {}, 'v:"x"': {} })))
  })

  test('can have other names at the top, and only there', () => {
    const set = setOf({ 'f:note': { 'f:note': {} } })
    const renamed = renamedTop(set, (name) => name.replace('note', 'message'))
    assert.deepEqual(fieldsV1Of(renamed), { 'f:message': { 'f:note': {} } })
  })

  test('is shown as paths, outer ones first', () => {
    const set = setOf({
      'f:note': {},
      'f:metadata': {
        'f:labels': { '.': {}, 'f:example.com/a': {} },
        'f:finalizers': { 'v:"example.com/b"': {} },
        'f:ownerReferences': { 'k:{"uid":"u1"}': {} },
      },
      'f:action': {},
      'i:3': {},
    })
    assert.deepEqual(
      [...shownPaths(set)],
      [
        '.action',
        '.note',
        '[3]',
        '.metadata.labels',
        '.metadata.finalizers[="example.com/b"]',
        '.metadata.labels.example.com/a',
        '.metadata.ownerReferences[uid="u1"]',
      ],
    )
  })
})

describe('what is no set of fields', () => {
  let deep: Json = {}
  for (let level = 0; level < 30; level++) deep = { 'f:a': deep }
  const wrong: readonly (readonly [string, unknown])[] = [
    ['nothing', undefined],
    ['a text', 'f:note'],
    ['a list', []],
    ['a step of no kind', { note: {} }],
    ['a step of an unknown kind', { 'x:note': {} }],
    ['a value that is no JSON', { 'v:{': {} }],
    ['a key that is no object', { 'k:1': {} }],
    ['a position that is no number', { 'i:-1': {} }],
    ['a leaf that is no object', { 'f:note': true }],
    ['more levels than an object has', deep],
    ['a value beyond all measure', { [`v:${'['.repeat(200_000)}${']'.repeat(200_000)}`]: {} }],
  ]
  for (const [what, fields] of wrong) {
    test(`${what} is not read`, () => assert.equal(fieldSetOfV1(fields), undefined))
  }

  test('anything at all is read as a set or as nothing', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const set = fieldSetOfV1(value)
        if (set !== undefined) assert.ok(isSameSet(setOf(fieldsV1Of(set)), set))
      }),
    )
  })
})
