import { deepEqual, equal, ok, throws } from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { StatusError } from '../../api/status.ts'
import { isObject, memberOf } from '../../lib/json.ts'
import { JSON_DEPTH_MAX, JSON_VALUES_MAX, JsonSyntaxError, parseJson } from './json-text.ts'

function refusal(text: string): JsonSyntaxError {
  try {
    parseJson(text)
  } catch (error) {
    ok(error instanceof JsonSyntaxError)
    return error
  }
  throw new Error(`the text was accepted: ${text.slice(0, 40)}`)
}

test('parseJson returns the same tree as JSON.parse', () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 8 }), (text) => {
      deepEqual(parseJson(text).value, JSON.parse(text))
    }),
  )
})

test('parseJson accepts and rejects the same texts as JSON.parse', () => {
  const piece = fc.constantFrom(...'{}[],:"\\0123456789+-.eEtrufalsn /bx \n\t\u0000é'.split(''))
  const words = fc.constantFrom('true', 'null', 'false', '"a"', '1e2', '{"a":1}', '\\u00e9', '-0')
  fc.assert(
    fc.property(fc.array(fc.oneof(piece, words), { maxLength: 12 }), (pieces) => {
      const text = pieces.join('')
      // Numbers out of the range of a double are a difference with its own test.
      fc.pre(!/e\+?\d{3}/i.test(text))
      let expected: unknown
      try {
        expected = JSON.parse(text)
      } catch {
        equal(refusal(text).kind, 'syntax')
        return
      }
      deepEqual(parseJson(text).value, expected)
    }),
    { numRuns: 2000 },
  )
})

test('parseJson reports errors with the messages of encoding/json', () => {
  const messages: Readonly<Record<string, string>> = {
    '': 'unexpected end of JSON input',
    '{"kind":"Event",': 'unexpected end of JSON input',
    '"abc': 'unexpected end of JSON input',
    tru: 'unexpected end of JSON input',
    '{} trailing': "invalid character 't' after top-level value",
    '\u0000\u0001': "invalid character '\\x00' looking for beginning of value",
    '\ufeff{}': "invalid character 'ï' looking for beginning of value",
    x: "invalid character 'x' looking for beginning of value",
    'not json': "invalid character 'o' in literal null (expecting 'u')",
    "'": "invalid character '\\'' looking for beginning of value",
    '{a': "invalid character 'a' looking for beginning of object key string",
    '{"a":1,}': "invalid character '}' looking for beginning of object key string",
    '{"a"}': "invalid character '}' after object key",
    '{"a":1"b"': `invalid character '"' after object key:value pair`,
    '[1 2]': "invalid character '2' after array element",
    '[1,]': "invalid character ']' looking for beginning of value",
    '01': "invalid character '1' after top-level value",
    '-x': "invalid character 'x' in numeric literal",
    '1.e': "invalid character 'e' after decimal point in numeric literal",
    '1e+ ': "invalid character ' ' in exponent of numeric literal",
    '"a\nb"': "invalid character '\\n' in string literal",
    '"\\x"': "invalid character 'x' in string escape code",
    '"\\u12g4"': "invalid character 'g' in \\u hexadecimal character escape",
  }
  for (const [text, message] of Object.entries(messages)) equal(refusal(text).message, message)
})

test('parseJson reports names that an object repeats, and keeps the last value', () => {
  const { value, duplicates } = parseJson('{"a":1,"b":{"c":1,"c":2,"c":3},"a":2}')
  ok(isObject(value))
  const inner = memberOf(value, 'b')
  ok(isObject(inner))
  deepEqual(value, { b: { c: 3 }, a: 2 })
  deepEqual(duplicates.get(value), new Set(['a']))
  deepEqual(duplicates.get(inner), new Set(['c']))
  equal(parseJson('[{"a":1},{"a":2}]').duplicates.size, 0)
})

test('parseJson treats names that objects inherit like any other', () => {
  const { value, duplicates } = parseJson('{"__proto__":{"x":1},"constructor":1,"toString":null}')
  ok(isObject(value))
  deepEqual(Object.keys(value), ['__proto__', 'constructor', 'toString'])
  equal(Object.getPrototypeOf(value), Object.prototype)
  equal(duplicates.size, 0)
  const twice = parseJson('{"__proto__":1,"__proto__":2}')
  ok(isObject(twice.value))
  equal(memberOf(twice.value, '__proto__'), 2)
  equal(twice.duplicates.size, 1)
})

test('parseJson decodes a lone surrogate as the replacement character', () => {
  equal(parseJson('"a\\ud800b"').value, 'a\ufffdb')
  equal(parseJson('"\\ud83d\\ude00"').value, '😀')
})

test('parseJson limits depth, number of values and size of numbers', () => {
  const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth)
  ok(Array.isArray(parseJson(nested(JSON_DEPTH_MAX)).value))
  equal(refusal(nested(JSON_DEPTH_MAX + 1)).kind, 'depth')
  equal(refusal('['.repeat(200_000)).message, 'exceeded max depth')
  throws(() => parseJson(`[${'1,'.repeat(JSON_VALUES_MAX)}1]`), {
    reason: 'RequestEntityTooLarge',
    message: 'Request entity too large: limit is 80000 names and values',
  })
  equal(refusal('1e400').kind, 'number')
  equal(refusal('9'.repeat(1001)).kind, 'number')
  equal(parseJson('9'.repeat(300)).value, Number('9'.repeat(300)))
})

test('parseJson handles three megabytes of any text quickly', () => {
  const size = 3 * 1024 * 1024
  const keys = Array.from({ length: 400_000 }, (_, index) => `"${index}k":1`).join(',')
  const hostile = [
    '{"a":'.repeat(size / 5),
    `{${keys}}`,
    `"${'\\u0041'.repeat(size / 6)}"`,
    `"${'\\n'.repeat(size / 2)}`,
    '9'.repeat(size),
    ' '.repeat(size),
    `[${'"\\ud800",'.repeat(size / 9)}`,
  ]
  for (const text of hostile) {
    const start = process.cpuUsage()
    try {
      parseJson(text)
    } catch (error) {
      ok(error instanceof JsonSyntaxError || error instanceof StatusError)
    }
    // Ten times the measured time, so that the test passes on a busy machine.
    ok(process.cpuUsage(start).user < 500_000, `${text.slice(0, 10)} took long`)
  }
})

test('parseJson throws only a JsonSyntaxError for any short text', () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      try {
        parseJson(text)
      } catch (error) {
        ok(error instanceof JsonSyntaxError)
      }
    }),
  )
  throws(() => parseJson('nul'), JsonSyntaxError)
})
