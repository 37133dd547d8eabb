import assert from 'node:assert/strict'
import { test } from 'node:test'
import { invalidText } from './field-error.ts'
import { invalid } from './status.ts'

test('invalid: the name of the object is told in the message and in the details', () => {
  const error = invalid({ kind: 'Event', name: 'A' }, [invalidText('metadata.name', 'A', 'is no')])
  assert.equal(error.message, 'Event "A" is invalid: metadata.name: Invalid value: "A": is no')
  assert.equal(error.details?.name, 'A')
})

test('invalid: a name of megabytes is not sent back', () => {
  const name = 'A'.repeat(3_000_000)
  const error = invalid({ kind: 'Event', name }, [invalidText('metadata.name', name, 'is no')])
  assert.ok(JSON.stringify(error.status()).length < 20_000)
  assert.ok(error.details?.name?.startsWith('AAA'))
})

test('invalid quotes a name that has more than one line', () => {
  const { message } = invalid({ kind: 'Event', name: 'a\n' }, [])
  assert.ok(message.startsWith('Event "a\\n" is invalid: '), message)
})
