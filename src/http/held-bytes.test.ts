import assert from 'node:assert/strict'
import { test } from 'node:test'
import { heldBytes } from './held-bytes.ts'

test('a response is charged in bytes, also when it is text', () => {
  assert.equal(heldBytes('ok'), 2)
  assert.equal(heldBytes('日本'), 6)
  assert.equal(heldBytes(Buffer.from('日本')), 6)
})
