import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatQuantity, parseQuantity } from './quantity.ts'

test('parseQuantity reads a whole number with or without a unit', () => {
  const read = ['0', '1', '500k', '512Mi', '2Gi', '3G', '1Ki'].map(parseQuantity)
  assert.deepEqual(read, [0, 1, 500_000, 512 * 1024 ** 2, 2 * 1024 ** 3, 3_000_000_000, 1024])
  for (const wrong of ['', 'Mi', '-1', '1.5Gi', '1mi', '1 Gi', '1Ti', '1e3', '1234567890123456']) {
    assert.equal(parseQuantity(wrong), undefined, wrong)
  }
})

test('formatQuantity uses the largest unit that divides the value', () => {
  const texts = [0, 1, 1000, 1024, 512 * 1024 ** 2, 2 * 1024 ** 3, 1536 * 1024 ** 2]
  assert.deepEqual(texts.map(formatQuantity), ['0', '1', '1000', '1Ki', '512Mi', '2Gi', '1536Mi'])
})
