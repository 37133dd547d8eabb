import assert from 'node:assert/strict'
import { test } from 'node:test'
import { searchedBackTo, warningTexts } from './warnings.ts'

test('returns each text once, with quoted characters unescaped', () => {
  const header = String.raw`299 - "the mirror of \"eu\" is 3h behind, at least", 299 - "b\\c", 299 - "b\\c"`
  assert.deepEqual(warningTexts(header), ['the mirror of "eu" is 3h behind, at least', 'b\\c'])
})

test('returns nothing for an absent or malformed header', () => {
  assert.deepEqual(warningTexts(''), [])
  assert.deepEqual(warningTexts('a proxy says hello'), [])
})

test('says how far back history was searched', () => {
  const text =
    'history was searched only up to 2026-11-01T03:00:00.000Z in the time that a request has: continue the list'
  assert.equal(searchedBackTo(text), Date.parse('2026-11-01T03:00:00Z'))
  assert.equal(searchedBackTo('history was searched only in part in the time'), undefined)
  assert.equal(searchedBackTo('the mirror of eu is 3h behind'), undefined)
})

test('decodes UTF-8 bytes', () => {
  const header = Buffer.from('299 - "the clock of “Zürich”"').toString('latin1')
  assert.deepEqual(warningTexts(header), ['the clock of “Zürich”'])
})
