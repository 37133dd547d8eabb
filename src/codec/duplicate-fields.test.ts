import { deepEqual, equal, ok } from 'node:assert/strict'
import { test } from 'node:test'
import { duplicateFields } from './duplicate-fields.ts'
import { parseJson } from './json-text.ts'

function fieldsOf(text: string): readonly string[] {
  return duplicateFields(parseJson(text))
}

test('duplicateFields: each is named by the way to it, in the order of the document', () => {
  deepEqual(fieldsOf('{"a":{"b":1},"c":[{"b":1}]}'), [])
  deepEqual(fieldsOf('{"a":1,"a":2}'), ['a'])
  deepEqual(fieldsOf('{"a":{"b":{"c":1,"c":2,"c":3}},"d":[1,[{"e":1,"e":2}]]}'), [
    'a.b.c',
    'd[1][0].e',
  ])
  deepEqual(fieldsOf('[{"op":"add","op":"test"},{"value":{"x":1,"x":2}}]'), [
    '[0].op',
    '[1].value.x',
  ])
  deepEqual(fieldsOf('{"__proto__":{"constructor":1,"constructor":2}}'), ['__proto__.constructor'])
})

test('duplicateFields: there are a hundred at most, none much longer than a name', () => {
  const long = 'x'.repeat(1_000)
  const names = Array.from({ length: 300 }, (_, index) => `"${index}${long}":1`)
  const object = `{${names.join(',')},${names.join(',')}}`
  const deep = `${`{"${long}":`.repeat(150)}${object}${'}'.repeat(150)}`
  const found = fieldsOf(deep)
  equal(found.length, 100)
  ok(found.every((field) => field.length < 600))
})
