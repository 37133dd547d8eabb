import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Json } from '../../lib/json.ts'
import { applyJsonPatch, readJsonPatch } from './json-patch.ts'
import { PatchError, type PatchErrorKind } from './patch-error.ts'

function patched(document: Json, ...operations: Json[]): Json {
  return applyJsonPatch(document, readJsonPatch(operations))
}

function failsWith(kind: PatchErrorKind, message: RegExp, action: () => unknown): void {
  assert.throws(action, (error) => {
    assert.ok(error instanceof PatchError)
    assert.equal(error.kind, kind)
    assert.match(error.message, message)
    return true
  })
}

function cannot(document: Json, operation: Json, why: RegExp = /^operation 0 \(/): void {
  failsWith('failed', why, () => patched(document, operation))
}

const event: Json = {
  kind: 'Event',
  metadata: { name: 'a', labels: { extra: 'yes', 'a/b~c': 'odd' }, finalizers: ['x', 'y', 'z'] },
  reason: 'Scheduled',
  series: { count: 3 },
}

test('JSON patch: applies operations in order', () => {
  assert.deepEqual(
    patched(
      event,
      { op: 'test', path: '/reason', value: 'Scheduled' },
      { op: 'replace', path: '/series/count', value: 21 },
      { op: 'copy', from: '/reason', path: '/metadata/labels/r' },
      { op: 'move', from: '/metadata/labels/r', path: '/metadata/labels/s' },
      { op: 'add', path: '/metadata/labels/j', value: 'p' },
      { op: 'remove', path: '/metadata/labels/extra' },
      { op: 'remove', path: '/metadata/finalizers' },
    ),
    {
      kind: 'Event',
      metadata: { name: 'a', labels: { 'a/b~c': 'odd', s: 'Scheduled', j: 'p' } },
      reason: 'Scheduled',
      series: { count: 21 },
    },
  )
})

test('JSON patch: returns the document itself for an empty patch', () => {
  assert.equal(patched(event), event)
})

test('JSON patch: names the first operation that fails', () => {
  failsWith('failed', /^operation 1 \(test \/reason\): the value differs$/, () =>
    patched(
      event,
      { op: 'test', path: '/kind', value: 'Event' },
      { op: 'test', path: '/reason', value: 'Wrong' },
    ),
  )
  cannot(event, { op: 'remove', path: '/metadata/labels/nope' }, /no such member/)
  cannot(event, { op: 'replace', path: '/nope/deep', value: 1 }, /no object or list at "\/nope"/)
  cannot(event, { op: 'bogus', path: '/x' }, /^operation 0 \(bogus \/x\): there is no such op/)
  cannot(event, { path: '/x' }, /^operation 0 \(no op \/x\)/)
  cannot(event, { op: 'add', value: 1 }, /path is missing/)
  cannot(event, { op: 'move', path: '/x' }, /from is missing/)
  cannot(event, null)
})

test('JSON patch: keeps error messages short, however long the patch is', () => {
  const long = 'x'.repeat(100_000)
  for (const operation of [
    { op: long, path: '/x' },
    { op: 'remove', path: `/${long}/${long}` },
    { op: 'remove', path: `/metadata/finalizers/${long}` },
  ]) {
    assert.throws(
      () => patched(event, operation),
      (error) => error instanceof PatchError && error.message.length < 400,
    )
  }
})

test('JSON patch: counts positions in lists from either end', () => {
  const list = ['a', 'b', 'c']
  assert.deepEqual(patched(list, { op: 'add', path: '/1', value: 'x' }), ['a', 'x', 'b', 'c'])
  assert.deepEqual(patched(list, { op: 'add', path: '/3', value: 'x' }), ['a', 'b', 'c', 'x'])
  assert.deepEqual(patched(list, { op: 'add', path: '/-', value: 'x' }), ['a', 'b', 'c', 'x'])
  assert.deepEqual(patched(list, { op: 'add', path: '/-1', value: 'x' }), ['a', 'b', 'c', 'x'])
  assert.deepEqual(patched(list, { op: 'add', path: '/-4', value: 'x' }), ['x', 'a', 'b', 'c'])
  assert.deepEqual(patched(list, { op: 'remove', path: '/-1' }), ['a', 'b'])
  assert.deepEqual(patched(list, { op: 'remove', path: '/01' }), ['a', 'c'])
  assert.deepEqual(patched(list, { op: 'replace', path: '/-3', value: 'x' }), ['x', 'b', 'c'])
  assert.deepEqual(patched(list, { op: 'copy', from: '/-1', path: '/0' }), ['c', 'a', 'b', 'c'])
  assert.deepEqual(patched(list, { op: 'move', from: '/0', path: '/2' }), ['b', 'c', 'a'])
})

test('JSON patch: fails for a position that a list does not have', () => {
  const list = ['a']
  for (const name of ['2', '-3', '1e0', '0x0', '', 'a', '1.0', '9'.repeat(30)]) {
    cannot(list, { op: 'add', path: `/${name}`, value: 1 }, /no position/)
  }
  for (const op of ['remove', 'replace', 'test']) {
    for (const name of ['1', '-2', '-']) cannot(list, { op, path: `/${name}` }, /no position/)
  }
})

test('JSON patch: decodes escaped slashes and tildes in a path', () => {
  assert.deepEqual(
    patched(
      { 'a/b~c': 1, '~1': 2 },
      { op: 'remove', path: '/a~1b~0c' },
      { op: 'test', path: '/~01', value: 2 },
    ),
    { '~1': 2 },
  )
  assert.deepEqual(patched({}, { op: 'add', path: '/', value: 1 }), { '': 1 })
})

test('JSON patch: treats names that every object inherits as ordinary names', () => {
  const result = patched(
    {},
    { op: 'test', path: '/constructor', value: null },
    { op: 'add', path: '/__proto__', value: { polluted: 1 } },
    { op: 'add', path: '/__proto__/deep', value: 2 },
    { op: 'copy', from: '/__proto__', path: '/copy' },
  )
  assert.equal(
    JSON.stringify(result),
    '{"__proto__":{"polluted":1,"deep":2},"copy":{"polluted":1,"deep":2}}',
  )
  assert.equal(Object.getPrototypeOf(result), Object.prototype)
  cannot({}, { op: 'add', path: '/__proto__/x', value: 1 }, /no object or list/)
  cannot({}, { op: 'remove', path: '/toString' }, /no such member/)
})

test('JSON patch: allows only replace and test on the whole document', () => {
  assert.deepEqual(patched(event, { op: 'replace', path: '', value: { a: 1 } }), { a: 1 })
  assert.equal(patched(event, { op: 'test', path: '', value: structuredClone(event) }), event)
  cannot(event, { op: 'replace', path: '', value: 'x' }, /only an object or a list/)
  cannot(event, { op: 'add', path: '', value: {} }, /cannot be the whole document/)
  cannot(event, { op: 'remove', path: '' }, /cannot be the whole document/)
  cannot(event, { op: 'copy', from: '', path: '/x' }, /cannot be the whole document/)
  cannot(event, { op: 'replace', path: 'x/reason', value: 1 }, /must start with a slash/)
})

test('JSON patch: treats a missing member as null in test and copy, and sets it in replace', () => {
  assert.equal(patched(event, { op: 'test', path: '/nope', value: null }), event)
  assert.equal(patched(event, { op: 'test', path: '/nope' }), event)
  cannot(event, { op: 'test', path: '/nope', value: 1 })
  cannot(event, { op: 'test', path: '/reason' })
  assert.deepEqual(patched({}, { op: 'copy', from: '/nope', path: '/x' }), { x: null })
  assert.deepEqual(patched({}, { op: 'replace', path: '/x', value: 1 }), { x: 1 })
  assert.deepEqual(patched({}, { op: 'add', path: '/x' }), { x: null })
  cannot({}, { op: 'move', from: '/nope', path: '/x' }, /no such member/)
})

test('JSON patch: compares deeply in test, in any order of members', () => {
  const document: Json = { a: { x: [1, { y: null }], z: 'z' } }
  const same = { z: 'z', x: [1, { y: null }] }
  assert.equal(patched(document, { op: 'test', path: '/a', value: same }), document)
  for (const value of [
    { z: 'z' },
    { ...same, more: 1 },
    { z: 'z', x: [1] },
    { z: 'z', y: [] },
    [],
  ]) {
    cannot(document, { op: 'test', path: '/a', value })
  }
  // The number of members is updated after an add and a remove.
  patched(
    document,
    { op: 'test', path: '/a', value: same },
    { op: 'add', path: '/a/n', value: 1 },
    { op: 'test', path: '/a', value: { ...same, n: 1 } },
    { op: 'remove', path: '/a/n' },
    { op: 'test', path: '/a', value: same },
  )
})

test('JSON patch: does not move a value into itself', () => {
  cannot({ a: { b: {} } }, { op: 'move', from: '/a', path: '/a/b/c' }, /into itself/)
  assert.deepEqual(patched({ a: 1 }, { op: 'move', from: '/a', path: '/a' }), { a: 1 })
})

test('JSON patch: makes copies that are independent of their originals', () => {
  assert.deepEqual(
    patched(
      { a: { list: [1] } },
      { op: 'add', path: '/a/list/-', value: 2 },
      { op: 'copy', from: '/a', path: '/b' },
      { op: 'add', path: '/a/list/-', value: 3 },
      { op: 'add', path: '/b/list/-', value: 4 },
    ),
    { a: { list: [1, 2, 3] }, b: { list: [1, 2, 4] } },
  )
})

test('JSON patch: rejects anything but a list of operations as malformed', () => {
  for (const patch of [{}, null, 'x', 1, [1], ['x'], [[]]]) {
    failsWith('malformed', /^error decoding patch: /, () => readJsonPatch(patch))
  }
  for (const name of ['op', 'path', 'from']) {
    failsWith('malformed', /^error decoding patch: .* must be a string$/, () =>
      readJsonPatch([{ op: 'add', path: '/x', [name]: 1 }]),
    )
  }
})

test('JSON patch: reports the first hundred unknown members', () => {
  const patch = JSON.parse('[{"op":"test","path":"/x","foo":1},{"op":"test","__proto__":1}]')
  assert.deepEqual(readJsonPatch(patch).unknownFields, ['[0].foo', '[1].__proto__'])
  const many = Array.from({ length: 200 }, () => ({ op: 'test', path: '/x', bar: 1 }))
  assert.equal(readJsonPatch(many).unknownFields.length, 100)
})

test('JSON patch: accepts at most ten thousand operations', () => {
  const operations = Array.from({ length: 10_000 }, () => ({ op: 'test', path: '/x' }))
  assert.deepEqual(patched({}, ...operations), {})
  const text = 'The allowed maximum operations in a JSON patch is 10000, got 10001'
  failsWith('too-many-operations', new RegExp(`^${text}$`), () =>
    readJsonPatch([...operations, null]),
  )
})

test('JSON patch: accepts at most a hundred thousand names in all pointers', () => {
  const pointer = '/a'.repeat(5)
  const operations = Array.from({ length: 10_000 }, () => ({
    op: 'copy',
    from: pointer,
    path: pointer,
  }))
  assert.equal(readJsonPatch(operations).operations.length, 10_000)
  const more = { op: 'copy', from: pointer, path: `${pointer}/a` }
  const text = 'The allowed maximum of names in the paths of a JSON patch is 100000'
  failsWith('too-large', new RegExp(`^${text}$`), () =>
    readJsonPatch([more, ...operations.slice(1)]),
  )
  // Names of pointers that are too deep count as well.
  const deep = Array.from({ length: 600 }, () => ({ op: 'test', path: '/a'.repeat(300) }))
  failsWith('too-large', new RegExp(`^${text}$`), () => readJsonPatch(deep))
})

test('JSON patch: fails early when a value is copied into itself repeatedly', () => {
  const many = (operation: (index: number) => Json) =>
    Array.from({ length: 10_000 }, (_, index) => operation(index))
  const bomb = many((index) => ({ op: 'copy', from: '/a', path: `/a/${index}` }))
  failsWith('too-large', /^operation \d+ \(copy .*copies more than/, () =>
    patched({ a: { text: 'boom' } }, ...bomb),
  )
  const text = 'é'.repeat(500_000)
  failsWith('too-large', /^operation 3 .*more than 3145728 bytes/, () =>
    patched({ text }, ...many((index) => ({ op: 'copy', from: '/text', path: `/${index}` }))),
  )
})

test('JSON patch: fails for thousands of insertions at the front of a long list', () => {
  const list = Array.from({ length: 50_000 }, (_, index) => index)
  const operations = Array.from({ length: 5_000 }, () => ({ op: 'add', path: '/0', value: 1 }))
  failsWith('too-large', /shifts too many/, () => patched(list, ...operations))
})

test('JSON patch: rejects a result nested deeper than a request body may be', () => {
  let deep: Json = {}
  for (let depth = 1; depth < 150; depth += 1) deep = { a: deep }
  const document = { deep, path: structuredClone(deep) }
  const place = `/path${'/a'.repeat(148)}/b`
  failsWith('failed', /more than 200 levels/, () =>
    patched(document, { op: 'copy', from: '/deep', path: place }),
  )
  failsWith('failed', /more than 200 levels/, () =>
    patched(document, { op: 'move', from: '/deep', path: place }),
  )
  cannot(document, { op: 'test', path: '/a'.repeat(1_000_000) }, /more than 200 names/)
})

const names = fc.constantFrom('a', 'b', '0', '1', '-', '-1', '', '__proto__', 'constructor')
const paths = fc
  .array(names, { maxLength: 4 })
  .map((parts) => parts.map((part) => `/${part}`).join(''))
const values = fc.letrec<{ json: Json }>((tie) => ({
  json: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom<Json>(null, 0, 1, 'x', true),
    fc.array(tie('json'), { maxLength: 3 }),
    fc.dictionary(names, tie('json'), { maxKeys: 3, noNullPrototype: true }) as fc.Arbitrary<Json>,
  ),
})).json
const operations = fc.record({
  op: fc.constantFrom('add', 'remove', 'replace', 'move', 'copy', 'test', 'bogus'),
  path: paths,
  from: paths,
  value: values,
})

test('JSON patch: leaves its inputs unchanged and fails only with PatchErrors', () => {
  fc.assert(
    fc.property(values, fc.array(operations, { maxLength: 6 }), (document, patch) => {
      const before = JSON.stringify([document, patch])
      const read = readJsonPatch(patch)
      const results = [0, 1].map(() => {
        try {
          return JSON.stringify(applyJsonPatch(document, read))
        } catch (error) {
          assert.ok(error instanceof PatchError)
          return error.message
        }
      })
      assert.equal(results[0], results[1])
      assert.equal(JSON.stringify([document, patch]), before)
    }),
    { numRuns: 1_000 },
  )
})

test('JSON patch: rejects a result with more values than a request body may have', () => {
  const list = (length: number): Json => Array.from({ length }, () => 1)
  const fits = patched({}, { op: 'add', path: '/x', value: list(19_900) })
  assert.equal((fits as { x: Json[] }).x.length, 19_900)
  failsWith('too-large', /more than 20000 names and values/, () =>
    patched({}, { op: 'add', path: '/x', value: list(20_000) }),
  )
  const names = Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [`k${at}`, 1]))
  failsWith('too-large', /more than 20000 names and values/, () =>
    patched({}, { op: 'add', path: '/x', value: names }),
  )
})

test('JSON patch: decodes escapes in pointers once', () => {
  assert.deepEqual(patched({}, { op: 'add', path: '/~01~10~0~1~~2~', value: 1 }), {
    '~1/0~/~~2~': 1,
  })
})

test('JSON patch: fails only with PatchErrors when parsing any JSON', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (patch) => {
      try {
        readJsonPatch(patch as Json)
      } catch (error) {
        assert.ok(error instanceof PatchError)
      }
    }),
  )
})
