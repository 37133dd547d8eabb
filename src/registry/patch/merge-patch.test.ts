import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { isObject, type Json, type JsonObject, memberOf, setMember } from '../../lib/json.ts'
import { applyMergePatch } from './merge-patch.ts'
import { PatchError } from './patch-error.ts'

test('merge patch: objects merge, null removes, the rest replaces', () => {
  const event: Json = {
    metadata: { labels: { app: 'web', tier: 'front' }, finalizers: ['a', 'b'] },
    series: { count: 1, lastObservedTime: 'then' },
    note: 'x',
  }
  assert.deepEqual(
    applyMergePatch(event, {
      metadata: { labels: { app: null, extra: 'yes' }, finalizers: ['c'] },
      series: { count: 10 },
      note: null,
      missing: null,
    }),
    {
      metadata: { labels: { tier: 'front', extra: 'yes' }, finalizers: ['c'] },
      series: { count: 10, lastObservedTime: 'then' },
    },
  )
})

test('merge patch: passes the examples of the RFC', () => {
  const cases: readonly [Json, Json, Json][] = [
    [{ a: 'b' }, { a: 'c' }, { a: 'c' }],
    [{ a: 'b' }, { b: 'c' }, { a: 'b', b: 'c' }],
    [{ a: 'b' }, { a: null }, {}],
    [{ a: ['b'] }, { a: 'c' }, { a: 'c' }],
    [{ a: { b: 'c' } }, { a: { b: 'd', c: null } }, { a: { b: 'd' } }],
    [{ a: [{ b: 'c' }] }, { a: [1, null, { x: null }] }, { a: [1, null, { x: null }] }],
    [{ e: null }, { a: 1 }, { e: null, a: 1 }],
    [[1, 2], { a: 'b', c: null }, { a: 'b' }],
    [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
    [{ a: 'foo' }, { a: { b: null, c: { d: null, e: 1 } } }, { a: { c: { e: 1 } } }],
  ]
  for (const [document, patch, result] of cases) {
    assert.deepEqual(applyMergePatch(document, patch), result)
  }
})

test('merge patch: an empty patch returns the document itself', () => {
  const document = { a: 1 }
  assert.equal(applyMergePatch(document, {}), document)
})

test('merge patch: anything but an object is malformed', () => {
  for (const patch of [[], 'x', 1, true, null]) {
    assert.throws(
      () => applyMergePatch({}, patch),
      (error) => error instanceof PatchError && error.kind === 'malformed',
    )
  }
  assert.throws(() => applyMergePatch({}, null), { message: 'Invalid JSON Patch' })
})

test('merge patch: names that every object inherits are ordinary names', () => {
  const patch = JSON.parse('{"__proto__":{"x":1,"y":null},"constructor":{"z":1}}')
  const result = applyMergePatch({}, patch)
  assert.equal(JSON.stringify(result), '{"__proto__":{"x":1},"constructor":{"z":1}}')
  assert.equal(Object.getPrototypeOf(result), Object.prototype)
  const removal = JSON.parse('{"__proto__":null,"constructor":null}')
  assert.deepEqual(applyMergePatch(result, removal), {})
})

const names = fc.constantFrom('a', 'b', 'c', '__proto__', 'constructor')
function trees(leaves: readonly Json[]): fc.Arbitrary<JsonObject> {
  return fc.letrec<{ json: Json; object: JsonObject }>((tie) => ({
    json: fc.oneof(
      { maxDepth: 3 },
      fc.constantFrom(...leaves),
      fc.array(tie('json'), { maxLength: 2 }),
      tie('object'),
    ),
    object: fc.array(fc.tuple(names, tie('json')), { maxLength: 4 }).map((members) => {
      const object: JsonObject = {}
      for (const [name, value] of members) setMember(object, name, value)
      return object
    }),
  })).object
}

/** The patch that turns `from` into `to`; neither may contain null. */
function difference(from: JsonObject, to: JsonObject): JsonObject {
  const patch: JsonObject = {}
  for (const name of Object.keys(from)) if (!Object.hasOwn(to, name)) setMember(patch, name, null)
  for (const name of Object.keys(to)) {
    const before = memberOf(from, name)
    const after = memberOf(to, name) ?? null
    const value = isObject(before) && isObject(after) ? difference(before, after) : after
    setMember(patch, name, value)
  }
  return patch
}

test('merge patch: the difference of two documents turns one into the other', () => {
  const documents = trees([0, 1, 'x', true])
  fc.assert(
    fc.property(documents, documents, (from, to) => {
      assert.deepEqual(applyMergePatch(from, difference(from, to)), to)
    }),
    { numRuns: 500 },
  )
})

test('merge patch: applying is idempotent, and does not change the inputs', () => {
  const patches = trees([null, 1, 'x'])
  fc.assert(
    fc.property(patches, patches, (document, patch) => {
      const before = JSON.stringify([document, patch])
      const once = applyMergePatch(document, patch)
      assert.deepEqual(applyMergePatch(once, patch), once)
      assert.equal(JSON.stringify([document, patch]), before)
    }),
    { numRuns: 500 },
  )
})
