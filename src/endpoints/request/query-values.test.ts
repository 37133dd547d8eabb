import assert from 'node:assert/strict'
import { test } from 'node:test'
import { queryBoolean } from '../../api/query-boolean.ts'
import { readInteger, readText, readTimeoutMs } from './query-values.ts'

const query = (text: string): URLSearchParams => new URLSearchParams(text)

test('queryBoolean: only 0 and false are false, and an empty value is true', () => {
  const cases: readonly (readonly [string, boolean | undefined])[] = [
    ['', undefined],
    ['x', true],
    ['x=', true],
    ['x=true', true],
    ['x=1', true],
    ['x=maybe', true],
    ['x=no', true],
    ['x=0', false],
    ['x=00', true],
    ['x=false', false],
    ['x=FALSE', false],
    ['x=false&x=true', false],
    ['X=true', undefined],
  ]
  for (const [text, value] of cases) assert.equal(queryBoolean(query(text), 'x'), value, text)
})

test('readText: the first value counts', () => {
  assert.equal(readText(query('x=a&x=b'), 'x'), 'a')
  assert.equal(readText(query('y=a'), 'x'), '')
})

test('readInteger: 64-bit integers are accepted, rounded to the nearest safe integer', () => {
  assert.equal(readInteger(query(''), 'x'), undefined)
  assert.equal(readInteger(query('x=500&x=a'), 'x'), 500)
  assert.equal(readInteger(query('x=-1'), 'x'), -1)
  assert.equal(readInteger(query('x=9223372036854775807'), 'x'), Number.MAX_SAFE_INTEGER)
  assert.equal(readInteger(query('x=-9223372036854775808'), 'x'), -Number.MAX_SAFE_INTEGER)
})

test('readInteger: anything else is a 400 with the error of Go', () => {
  const cases: readonly (readonly [string, string])[] = [
    ['x=abc', 'strconv.ParseInt: parsing "abc": invalid syntax'],
    ['x=', 'strconv.ParseInt: parsing "": invalid syntax'],
    [
      'x=99999999999999999999',
      'strconv.ParseInt: parsing "99999999999999999999": value out of range',
    ],
  ]
  for (const [text, message] of cases) {
    assert.throws(() => readInteger(query(text), 'x'), { code: 400, message }, text)
  }
})

test('readTimeoutMs: 0 or less means that the client has no timeout', () => {
  assert.equal(readTimeoutMs(query('timeout=5s')), 5000)
  assert.equal(readTimeoutMs(query('timeout=1ns')), 0.000001)
  assert.equal(readTimeoutMs(query('timeout=2562047h')), 2_147_483_647)
  for (const text of ['', 'timeout=', 'timeout=0', 'timeout=0s', 'timeout=-1s']) {
    assert.equal(readTimeoutMs(query(text)), undefined, text)
  }
})

test('readTimeoutMs: an invalid duration is a 400 with the error of Go', () => {
  const cases: readonly (readonly [string, string])[] = [
    ['abc', 'time: invalid duration "abc"'],
    ['5', 'time: missing unit in duration "5"'],
    ['1.5', 'time: missing unit in duration "1.5"'],
    ['5d', 'time: unknown unit "d" in duration "5d"'],
    ['s', 'time: invalid duration "s"'],
  ]
  for (const [text, problem] of cases) {
    const message = `invalid timeout specified in the request URL - ${problem}`
    assert.throws(() => readTimeoutMs(query(`timeout=${text}`)), { code: 400, message }, text)
  }
  const long = query(`timeout=${'9'.repeat(60_000)}`)
  assert.throws(
    () => readTimeoutMs(long),
    (error: Error) => error.message.length < 400,
  )
})
