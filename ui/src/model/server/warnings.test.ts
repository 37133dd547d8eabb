import assert from 'node:assert/strict'
import { test } from 'node:test'
import { warningTexts } from './warnings.ts'

test('returns each text once, with quoted characters unescaped', () => {
  const header = String.raw`299 - "the mirror of \"eu\" is 3h behind, at least", 299 - "b\\c", 299 - "b\\c"`
  assert.deepEqual(warningTexts(header), ['the mirror of "eu" is 3h behind, at least', 'b\\c'])
})

test('returns nothing for an absent or malformed header', () => {
  assert.deepEqual(warningTexts(''), [])
  assert.deepEqual(warningTexts('a proxy says hello'), [])
})

test('decodes UTF-8 bytes', () => {
  const header = Buffer.from('299 - "the clock of “Zürich”"').toString('latin1')
  assert.deepEqual(warningTexts(header), ['the clock of “Zürich”'])
})
