import { deepEqual, equal, throws } from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Json } from '../../lib/json.ts'
import { jsonOf, quotedJson, sortedNames } from './json-write.ts'

test('jsonOf writes JSON that parses to the same tree', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      deepEqual(JSON.parse(jsonOf(value as Json)), JSON.parse(JSON.stringify(value)))
    }),
  )
})

test('jsonOf sorts names by their UTF-8 bytes', () => {
  equal(
    jsonOf({ b: 1, a: 2, '10': 3, é: 4, '😀': 5, '\uffee': 6 }),
    '{"10":3,"a":2,"b":1,"é":4,"\uffee":6,"😀":5}',
  )
})

test('sortedNames sorts by UTF-8 bytes', () => {
  const unit = fc.constantFrom('a', 'b', 'é', '\uffee', '😀', '')
  const name = fc.array(unit, { maxLength: 4 }).map((units) => units.join(''))
  fc.assert(
    fc.property(fc.uniqueArray(name), (names) => {
      const byBytes = names.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
      deepEqual(sortedNames(Object.fromEntries(names.map((one) => [one, 1]))), byBytes)
    }),
  )
})

test('quotedJson escapes the same characters as Go', () => {
  equal(
    quotedJson('<a> & b \u2028\u2029 "q" \\ \t\n\u0001'),
    '"\\u003ca\\u003e \\u0026 b \\u2028\\u2029 \\"q\\" \\\\ \\t\\n\\u0001"',
  )
  equal(quotedJson("plain é 😀 'x'"), `"plain é 😀 'x'"`)
  equal(quotedJson('half \ud800 pair'), '"half \ufffd pair"')
})

test('quotedJson rejects a text whose escapes exceed the datastore limit', () => {
  const fits = '<'.repeat(262_000)
  equal(JSON.parse(quotedJson(fits)), fits)
  const plain = 'x'.repeat(1_500_000)
  equal(quotedJson(`${plain}"`).length, plain.length + 4)
  throws(() => quotedJson('<>&'.repeat(90_000)), { reason: 'RequestEntityTooLarge' })
})
