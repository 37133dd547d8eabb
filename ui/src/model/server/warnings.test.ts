import assert from 'node:assert/strict'
import { test } from 'node:test'
import { warningTexts } from './warnings.ts'

test('texts of warnings are found, each once, and quoted characters are plain', () => {
  const header = String.raw`299 - "the mirror of \"eu\" is 3h behind, at least", 299 - "b\\c", 299 - "b\\c"`
  assert.deepEqual(warningTexts(header), ['the mirror of "eu" is 3h behind, at least', 'b\\c'])
})

test('no warning, and what is none, have no texts', () => {
  assert.deepEqual(warningTexts(''), [])
  assert.deepEqual(warningTexts('a proxy says hello'), [])
})

test('characters beyond ASCII arrive as the bytes of their UTF-8', () => {
  const header = Buffer.from('299 - "the clock of “Zürich”"').toString('latin1')
  assert.deepEqual(warningTexts(header), ['the clock of “Zürich”'])
})
