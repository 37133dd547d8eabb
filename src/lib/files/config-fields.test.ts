import assert from 'node:assert/strict'
import { test } from 'node:test'
import { textOf } from './config-fields.ts'

test('textOf: returns a string, and undefined when the field is missing', () => {
  assert.equal(textOf({ server: 'a' }, 'server', ''), 'a')
  assert.equal(textOf({}, 'server', ''), undefined)
})

test('textOf: says what is wrong with a value, and where', () => {
  const messageOf = (value: string | number | boolean | null | string[]) => {
    try {
      textOf({ server: value }, 'server', 'clusters[2]')
      return undefined
    } catch (error) {
      return String(error)
    }
  }
  assert.equal(messageOf(''), 'Error: clusters[2].server: must not be empty')
  assert.equal(messageOf(null), 'Error: clusters[2].server: must be a string')
  assert.equal(messageOf(['a']), 'Error: clusters[2].server: must be a string')
  const inQuotes = 'is not a string: put it in quotes'
  assert.equal(messageOf(12), `Error: clusters[2].server: 12 ${inQuotes}`)
  assert.equal(messageOf(true), `Error: clusters[2].server: true ${inQuotes}`)
})
