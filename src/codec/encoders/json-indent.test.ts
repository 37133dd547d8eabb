import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { indentJson } from './json-indent.ts'

test('indentJson formats a text as JSON.stringify would', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      equal(indentJson(JSON.stringify(value)), JSON.stringify(value, null, 2))
    }),
  )
})

test('indentJson does not change empty values and the content of strings', () => {
  equal(
    indentJson('{"a":{},"b":[],"c":"{,:\\"[\\\\"}'),
    '{\n  "a": {},\n  "b": [],\n  "c": "{,:\\"[\\\\"\n}',
  )
})
