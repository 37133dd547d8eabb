import assert from 'node:assert/strict'
import { test } from 'node:test'
import { goQuote } from './go-quote.ts'

const cases: readonly [string, string][] = [
  ['', '""'],
  ['plain', '"plain"'],
  ['a "b" \\c', '"a \\"b\\" \\\\c"'],
  ['\n\t\r\x07', '"\\n\\t\\r\\a"'],
  ['\x00\x7f', '"\\x00\\x7f"'],
  ['Grüße 世界', '"Grüße 世界"'],
  ['\u200b', '"\\u200b"'],
  ['\u{e0001}', '"\\U000e0001"'],
  ['😀', '"😀"'],
  ['\ud800', '"\\ufffd"'],
]

for (const [text, quoted] of cases) {
  test(`goQuote quotes ${JSON.stringify(text)} as Go`, () => assert.equal(goQuote(text), quoted))
}
