import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { Json, JsonObject } from '../../lib/json.ts'
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

/** A fieldsV1 with up to this many levels. */
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
  test('is the same after it was written and parsed', () => {
    fc.assert(
      fc.property(tree, (fields) => {
        assert.deepEqual(fieldsV1Of(setOf(fields)), fields)
      }),
    )
  })

  test('obeys the laws of union, intersection and difference', () => {
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

  test('distinguishes a field from the fields inside it', () => {
    const both = setOf({ 'f:series': { '.': {}, 'f:count': {} } })
    const inside = setOf({ 'f:series': { 'f:count': {} } })
    const place = setOf({ 'f:series': {} })
    assert.deepEqual(fieldsV1Of(difference(both, inside)), { 'f:series': {} })
    assert.deepEqual(fieldsV1Of(difference(both, place)), { 'f:series': { 'f:count': {} } })
    assert.equal(intersection(inside, place).size, 0)
    assert.equal(isSameSet(both, inside), false)
  })

  test('compares keys of entries in canonical form', () => {
    const loose = setOf({ 'k:{ "uid" : "u1", "a": 1 }': {}, 'v: "x"': {} })
    assert.ok(isSameSet(loose, setOf({ 'k:{"a":1,"uid":"u1"}': {}, 'v:"x"': {} })))
  })

  test('renamedTop renames only the top level', () => {
    const set = setOf({ 'f:note': { 'f:note': {} } })
    const renamed = renamedTop(set, (name) => name.replace('note', 'message'))
    assert.deepEqual(fieldsV1Of(renamed), { 'f:message': { 'f:note': {} } })
  })

  test('shownPaths returns outer fields first', () => {
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

describe('an invalid set of fields', () => {
  let deep: Json = {}
  for (let level = 0; level < 30; level++) deep = { 'f:a': deep }
  const wrong: readonly (readonly [string, unknown])[] = [
    ['nothing', undefined],
    ['a string', 'f:note'],
    ['a list', []],
    ['a step without a kind', { note: {} }],
    ['a step of an unknown kind', { 'x:note': {} }],
    ['a value that is not JSON', { 'v:{': {} }],
    ['a key that is not an object', { 'k:1': {} }],
    ['a position that is not a number', { 'i:-1': {} }],
    ['a leaf that is not an object', { 'f:note': true }],
    ['more levels than an object has', deep],
    ['a value that is too long', { [`v:${'['.repeat(200_000)}${']'.repeat(200_000)}`]: {} }],
  ]
  for (const [what, fields] of wrong) {
    test(`${what} is not parsed`, () => assert.equal(fieldSetOfV1(fields), undefined))
  }

  test('is parsed as a set or as undefined from any JSON', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const set = fieldSetOfV1(value)
        if (set !== undefined) assert.ok(isSameSet(setOf(fieldsV1Of(set)), set))
      }),
    )
  })
})
