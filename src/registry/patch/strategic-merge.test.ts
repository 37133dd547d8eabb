import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { eventType } from '../../api/schema.ts'
import type { Json } from '../../lib/json.ts'
import { applyMergePatch } from './merge-patch.ts'
import { PatchError, type PatchErrorKind } from './patch-error.ts'
import { applyStrategicMerge } from './strategic-merge.ts'

function merged(document: Json, patch: Json): Json {
  return applyStrategicMerge(document, patch, eventType)
}

/** Metadata after a patch of metadata. */
function metadata(before: Json, patch: Json): Json | undefined {
  const result = merged({ metadata: before }, { metadata: patch }) as { metadata?: Json }
  return result.metadata
}

function finalizers(before: readonly string[] | undefined, patch: Json): Json {
  const result = metadata(before === undefined ? {} : { finalizers: [...before] }, patch)
  return (result as { finalizers?: Json }).finalizers ?? 'none'
}

function owners(before: readonly string[], patch: Json): Json {
  const ownerReferences = before.map((uid) => ({ kind: 'Pod', uid }))
  const result = metadata({ ownerReferences }, patch) as { ownerReferences: { uid: Json }[] }
  return result.ownerReferences.map(({ uid }) => uid)
}

function failsWith(kind: PatchErrorKind, patch: Json, document: Json = {}): void {
  assert.throws(
    () => merged(document, patch),
    (error) => error instanceof PatchError && error.kind === kind,
    JSON.stringify(patch),
  )
}

const uids = (...names: string[]) => names.map((uid) => ({ uid }))

test('strategic merge: objects merge, null removes, the rest replaces', () => {
  assert.deepEqual(
    merged(
      {
        series: { count: 1, lastObservedTime: 'then' },
        note: 'x',
        metadata: { labels: { a: 'b' } },
      },
      { series: { count: 30 }, note: null, metadata: { labels: { smp: 'yes', no: null } } },
    ),
    {
      series: { count: 30, lastObservedTime: 'then' },
      metadata: { labels: { a: 'b', smp: 'yes' } },
    },
  )
  assert.deepEqual(merged({}, { related: { kind: 'X', name: null } }), { related: { kind: 'X' } })
  assert.deepEqual(merged({ related: 'x' }, { related: { kind: 'X' } }), { related: { kind: 'X' } })
})

test('strategic merge: returns the document itself for an empty patch', () => {
  const document = { reason: 'x' }
  assert.equal(merged(document, {}), document)
})

test('strategic merge: merges finalizers as a set, those of the patch first', () => {
  assert.deepEqual(finalizers(undefined, { finalizers: ['a', 'a'] }), ['a'])
  assert.deepEqual(finalizers(['a'], { finalizers: ['b'] }), ['b', 'a'])
  assert.deepEqual(finalizers(['a', 'b', 'c'], { finalizers: ['c', 'a'] }), ['b', 'c', 'a'])
  assert.deepEqual(finalizers(['a', 'b'], { finalizers: [] }), ['a', 'b'])
  assert.deepEqual(finalizers(['a', 'b'], { finalizers: null }), 'none')
})

test('strategic merge: removes finalizers by name', () => {
  const remove = { '$deleteFromPrimitiveList/finalizers': ['a', 'x'] }
  assert.deepEqual(finalizers(['a', 'b'], remove), ['b'])
  assert.deepEqual(finalizers(['a'], remove), [])
  assert.deepEqual(finalizers(undefined, remove), 'none')
  assert.deepEqual(finalizers(['a'], { ...remove, finalizers: ['c', 'x'] }), ['c'])
})

test('strategic merge: follows an element order, and leaves other elements in their positions', () => {
  const order = (...names: string[]) => ({ '$setElementOrder/finalizers': names })
  assert.deepEqual(finalizers(['a', 'b', 'c'], order('c', 'a')), ['b', 'c', 'a'])
  assert.deepEqual(finalizers(['a', 'b', 'c'], { ...order('n', 'c', 'a'), finalizers: ['n'] }), [
    'n',
    'b',
    'c',
    'a',
  ])
  assert.deepEqual(finalizers(undefined, order('a')), 'none')
  assert.deepEqual(finalizers(['a'], { ...order('a'), finalizers: null }), 'none')
  assert.deepEqual(
    finalizers(['a', 'b'], { ...order('b'), '$deleteFromPrimitiveList/finalizers': ['a'] }),
    ['b'],
  )
  assert.deepEqual(owners(['u1', 'u2'], { '$setElementOrder/ownerReferences': uids('u2', 'u1') }), [
    'u2',
    'u1',
  ])
})

test('strategic merge: merges owners by uid', () => {
  assert.deepEqual(owners(['u1'], { ownerReferences: uids('u2') }), ['u2', 'u1'])
  assert.deepEqual(
    metadata(
      { ownerReferences: [{ kind: 'Pod', name: 'p', uid: 'u1' }, ...uids('u2')] },
      {
        ownerReferences: [
          { uid: 'u1', name: 'q', kind: null },
          { uid: 'u1', controller: true },
        ],
      },
    ),
    { ownerReferences: [{ name: 'q', uid: 'u1', controller: true }, { uid: 'u2' }] },
  )
})

test('strategic merge: deletes and replaces owners by directive', () => {
  const gone = { $patch: 'delete', uid: 'u1' }
  assert.deepEqual(owners(['u1', 'u2'], { ownerReferences: [gone] }), ['u2'])
  assert.deepEqual(owners(['u1'], { ownerReferences: [gone, ...uids('u3')] }), ['u3'])
  assert.deepEqual(owners([], { ownerReferences: [gone] }), [])
  assert.deepEqual(owners(['u1'], { ownerReferences: [{ $patch: 'replace' }] }), [])
  assert.deepEqual(
    owners(['u1', 'u2'], { ownerReferences: [...uids('u3', 'u2'), { $patch: 'replace' }] }),
    ['u3', 'u2'],
  )
})

test('strategic merge: replaces other lists', () => {
  assert.deepEqual(
    metadata({ managedFields: [{ manager: 'a' }] }, { managedFields: [{ manager: 'b' }] }),
    { managedFields: [{ manager: 'b' }] },
  )
  assert.deepEqual(merged({ finalizers: ['a'] }, { finalizers: ['b'] }), { finalizers: ['b'] })
})

test('strategic merge: replaces, empties or merges an object as its directive says', () => {
  const document = { related: { kind: 'Node', name: 'n' } }
  const related = (patch: Json) => merged(document, { related: patch })
  assert.deepEqual(related({ $patch: 'replace', kind: 'X', uid: null }), { related: { kind: 'X' } })
  assert.deepEqual(related({ $patch: 'delete', kind: 'X' }), { related: {} })
  assert.deepEqual(related({ $patch: 'merge', kind: 'X' }), { related: { kind: 'X', name: 'n' } })
  assert.deepEqual(merged({}, { related: { $patch: 'delete' } }), {})
  assert.deepEqual(merged({}, { related: { $patch: 'replace', kind: 'X' } }), {
    related: { kind: 'X' },
  })
  assert.deepEqual(merged(document, { $patch: 'replace', note: 'x' }), { note: 'x' })
  assert.deepEqual(metadata({ labels: { a: 'b' } }, { labels: { $patch: 'delete' } }), {
    labels: {},
  })
})

test('strategic merge: retains only the keys of $retainKeys', () => {
  assert.deepEqual(metadata({ name: 'a', uid: 'u', labels: {} }, { $retainKeys: ['name'] }), {
    name: 'a',
  })
  assert.deepEqual(
    metadata(
      { name: 'a', uid: 'u' },
      { $retainKeys: ['name', 'labels'], labels: { l: '1' }, uid: null },
    ),
    { name: 'a', labels: { l: '1' } },
  )
})

test('strategic merge: rejects a patch that is invalid for every document as malformed', () => {
  for (const patch of [[], 'x', 1, null]) failsWith('malformed', patch)
  failsWith('malformed', { $patch: 'bogus' })
  failsWith('malformed', { $patch: 1 })
  failsWith('malformed', { series: { $patch: 'bogus' } })
  for (const inner of [
    { $retainKeys: 'name' },
    { $retainKeys: ['name'], labels: {} },
    { '$deleteFromPrimitiveList/finalizers': 'a' },
    { '$deleteFromPrimitiveList/labels': ['a'] },
    { '$deleteFromPrimitiveList/ownerReferences': [] },
    { $deleteFromPrimitiveList: ['a'] },
    { '$setElementOrder/finalizers': {} },
    { '$setElementOrder/managedFields': [] },
    { '$setElementOrder/constructor': [] },
    { $setElementOrder: [] },
    { '$setElementOrder/finalizers': ['a', 'b'], finalizers: ['b', 'a'] },
    { '$setElementOrder/finalizers': ['a'], finalizers: ['b'] },
    { '$setElementOrder/ownerReferences': ['a'], ownerReferences: uids('a') },
    { finalizers: [{}] },
    { finalizers: [null] },
    { ownerReferences: ['u1'] },
    { ownerReferences: [{ kind: 'Pod' }] },
    { ownerReferences: [{ $patch: 'delete' }] },
    { ownerReferences: [{ $patch: 'bogus', uid: 'u1' }] },
    { ownerReferences: [{ uid: {} }] },
  ]) {
    failsWith('malformed', { metadata: inner })
  }
})

test('strategic merge: fails for lists of lists', () => {
  failsWith('failed', { metadata: { finalizers: [['a']] } })
  failsWith('failed', { metadata: { ownerReferences: [[]] } })
})

test('strategic merge: treats names that every object inherits as ordinary names', () => {
  const patch = JSON.parse('{"__proto__":{"x":1},"metadata":{"constructor":["a"],"toString":null}}')
  const result = merged({}, patch)
  assert.equal(JSON.stringify(result), '{"__proto__":{"x":1},"metadata":{"constructor":["a"]}}')
  assert.equal(Object.getPrototypeOf(result), Object.prototype)
})

const names = fc.constantFrom('metadata', 'labels', 'series', 'a', '__proto__', 'constructor')
const directives = fc.constantFrom(
  ...['finalizers', 'ownerReferences', 'managedFields', '$patch', '$retainKeys'],
  ...['$setElementOrder/finalizers', '$setElementOrder/ownerReferences'],
  ...['$deleteFromPrimitiveList/finalizers', 'uid'],
)
function trees(keys: fc.Arbitrary<string>): fc.Arbitrary<Json> {
  return fc.letrec<{ json: Json; object: Json }>((tie) => ({
    json: fc.oneof(
      { maxDepth: 3 },
      fc.constantFrom<Json>(null, 1, 'a', 'metadata', 'replace', 'delete'),
      fc.array(tie('json'), { maxLength: 3 }),
      tie('object'),
    ),
    object: fc.dictionary(keys, tie('json'), {
      maxKeys: 4,
      noNullPrototype: true,
    }) as fc.Arbitrary<Json>,
  })).object
}

test('strategic merge: leaves its inputs unchanged and fails only with PatchErrors', () => {
  const any = trees(fc.oneof(names, directives))
  fc.assert(
    fc.property(any, any, any, (document, labels, patch) => {
      const before = JSON.stringify([document, labels, patch])
      for (const [current, change] of [
        [document, patch],
        [{ metadata: document }, { metadata: patch }],
        [{ metadata: { labels: document } }, { metadata: { labels, ...(patch as object) } }],
      ] as const) {
        try {
          merged(current, change)
        } catch (error) {
          assert.ok(error instanceof PatchError, String(error))
        }
      }
      assert.equal(JSON.stringify([document, labels, patch]), before)
    }),
    { numRuns: 1_000 },
  )
})

test('strategic merge: equals a merge patch without directives and merging lists', () => {
  const plain = trees(names)
  fc.assert(
    fc.property(plain, plain, (document, patch) => {
      assert.deepEqual(merged(document, patch), applyMergePatch(document, patch))
    }),
    { numRuns: 500 },
  )
})

test('strategic merge: has every value of a set once', () => {
  const lists = fc.array(fc.constantFrom('a', 'b', 'c', 'd', 'e'), { maxLength: 6 })
  fc.assert(
    fc.property(lists, lists, (before, patch) => {
      const result = finalizers(before, { finalizers: patch }) as string[]
      assert.deepEqual(result.toSorted(), [...new Set([...before, ...patch])].sort())
      const kept = result.filter((name) => new Set<string>(patch).has(name))
      assert.deepEqual(kept, [...new Set(patch)])
    }),
    { numRuns: 500 },
  )
})
