import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { int64Problem, parseInt64 } from './go-integer.ts'

const read: readonly (readonly [string, number | bigint])[] = [
  ['0', 0],
  ['007', 7],
  ['+5', 5],
  ['-5', -5],
  ['999999999999999', 999_999_999_999_999],
  ['1000000000000000', 1_000_000_000_000_000n],
  ['9223372036854775807', 9_223_372_036_854_775_807n],
  ['-9223372036854775808', -9_223_372_036_854_775_808n],
  ['00000000000000000000000000000001', 1n],
  ['-00000000000000000000000000000000', 0n],
]

test('parseInt64 reads 64-bit integers like Go', () => {
  for (const [text, value] of read) assert.equal(parseInt64(text), value, text)
})

test('int64Problem returns the message of Go for a text that is not a 64-bit integer', () => {
  for (const text of ['', 'abc', '1.5', '1e3', ' 1', '1_000', '+', '--1', '0x1', '٣', '1\n']) {
    assert.equal(parseInt64(text), undefined, text)
    assert.match(int64Problem(text), /^strconv\.ParseInt: parsing ".*": invalid syntax$/)
  }
  for (const text of ['9223372036854775808', '-9223372036854775809', '99999999999999999999']) {
    assert.equal(parseInt64(text), undefined, text)
    assert.equal(int64Problem(text), `strconv.ParseInt: parsing "${text}": value out of range`)
  }
})

test('parseInt64 reads every printed 64-bit integer unchanged', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), (value) => {
      const back = parseInt64(String(value))
      assert.ok(back !== undefined)
      assert.equal(BigInt(back), value)
    }),
  )
})

test('int64Problem truncates a long text', () => {
  assert.ok(int64Problem('x'.repeat(100_000)).length < 400)
})
