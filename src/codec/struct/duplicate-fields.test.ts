import { deepEqual, equal, ok } from 'node:assert/strict'
import { test } from 'node:test'
import { parseJson } from '../json/json-text.ts'
import { duplicateFields } from './duplicate-fields.ts'

function fieldsOf(text: string): readonly string[] {
  return duplicateFields(parseJson(text))
}

test('duplicateFields returns the path of each repeated name, in document order', () => {
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

test('duplicateFields returns at most a hundred truncated paths', () => {
  const long = 'x'.repeat(1_000)
  const names = Array.from({ length: 300 }, (_, index) => `"${index}${long}":1`)
  const object = `{${names.join(',')},${names.join(',')}}`
  const deep = `${`{"${long}":`.repeat(150)}${object}${'}'.repeat(150)}`
  const found = fieldsOf(deep)
  equal(found.length, 100)
  ok(found.every((field) => field.length < 600))
})
