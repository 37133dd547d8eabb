import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cutText, requiredField } from './field-error.ts'
import { Problems, truncatedJson } from './problems.ts'

test('Problems is empty at first', () => {
  const problems = new Problems()
  assert.deepEqual(problems.list(), [])
  assert.equal(problems.full, false)
})

test('Problems preserves order, and has each problem once', () => {
  const problems = new Problems()
  for (const field of ['b', 'a', 'b']) problems.add(requiredField(field))
  problems.addInvalid('c', 'x"', ['one', 'two'])
  assert.deepEqual(
    problems.list().map(({ field, body }) => `${field}: ${body}`),
    [
      'b: Required value',
      'a: Required value',
      'c: Invalid value: "x\\"": one',
      'c: Invalid value: "x\\"": two',
    ],
  )
})

test('Problems accepts at most a hundred', () => {
  const problems = new Problems()
  for (let at = 0; at < 99; at++) problems.add(requiredField(`field${at}`))
  assert.equal(problems.full, false)
  for (const field of ['last', 'one too many']) problems.add(requiredField(field))
  assert.equal(problems.full, true)
  assert.equal(problems.list().length, 100)
  assert.equal(problems.list().at(-1)?.field, 'last')
})

test('Problems accepts fewer when they are long', () => {
  const problems = new Problems()
  for (let at = 10; at < 99; at++) problems.addInvalid(`field${at}`, 'x'.repeat(5000), ['is long'])
  assert.equal(problems.list().length, 16)
})

test('Problems is full after a hundred repetitions', () => {
  const problems = new Problems()
  for (let at = 0; at < 100; at++) problems.add(requiredField('field'))
  assert.equal(problems.full, true)
  assert.equal(problems.list().length, 1)
})

test('truncatedJson escapes the same characters as Go', () => {
  assert.equal(truncatedJson({ a: '<&>\u2028"' }), '{"a":"\\u003c\\u0026\\u003e\\u2028\\""}')
  assert.equal(truncatedJson(null), 'null')
  assert.equal(truncatedJson('2026-01-02T03:04:05Z'), '"2026-01-02T03:04:05Z"')
})

test('cutText truncates to 4096 characters', () => {
  assert.equal(cutText('x'.repeat(4096)), 'x'.repeat(4096))
  assert.equal(cutText('x'.repeat(4097)), `${'x'.repeat(4096)}...`)
  assert.equal(truncatedJson('x'.repeat(9000)), `"${'x'.repeat(4095)}...`)
})
