import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseAccept } from './media-type.ts'

test('parseAccept: only the first hundred clauses of a header count', () => {
  const hundred = 'a/b,'.repeat(100)
  assert.equal(parseAccept(hundred).length, 100)
  assert.equal(parseAccept('a/b,'.repeat(200_000)).length, 100)
  assert.deepEqual(parseAccept(`${hundred}application/json`), parseAccept(hundred))
})

test('parseAccept: only the first hundred parameters of a clause count', () => {
  const [clause] = parseAccept(`application/json${';a=b'.repeat(200_000)};q=0.5`)
  assert.equal(clause?.parameters.length, 100)
  assert.equal(clause?.quality, 1)
})
