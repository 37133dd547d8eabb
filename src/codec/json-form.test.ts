import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { indentJson } from './json-form.ts'

test('indentJson lays a text out as JSON.stringify would', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      equal(indentJson(JSON.stringify(value)), JSON.stringify(value, null, 2))
    }),
  )
})

test('indentJson leaves what is empty and what is inside strings alone', () => {
  equal(
    indentJson('{"a":{},"b":[],"c":"{,:\\"[\\\\"}'),
    '{\n  "a": {},\n  "b": [],\n  "c": "{,:\\"[\\\\"\n}',
  )
})
