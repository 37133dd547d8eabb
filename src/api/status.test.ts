import assert from 'node:assert/strict'
import { test } from 'node:test'
import { invalid } from './status.ts'
import { invalidText } from './validation/field-error.ts'

test('invalid puts the name of the object into the message and the details', () => {
  const error = invalid({ kind: 'Event', name: 'A' }, [invalidText('metadata.name', 'A', 'is no')])
  assert.equal(error.message, 'Event "A" is invalid: metadata.name: Invalid value: "A": is no')
  assert.equal(error.details?.name, 'A')
})

test('invalid truncates a name of megabytes', () => {
  const name = 'A'.repeat(3_000_000)
  const error = invalid({ kind: 'Event', name }, [invalidText('metadata.name', name, 'is no')])
  assert.ok(JSON.stringify(error.status()).length < 20_000)
  assert.ok(error.details?.name?.startsWith('AAA'))
})

test('invalid escapes line breaks in a name', () => {
  const { message } = invalid({ kind: 'Event', name: 'a\n' }, [])
  assert.ok(message.startsWith('Event "a\\n" is invalid: '), message)
})
