import assert from 'node:assert/strict'
import { test } from 'node:test'
import { headerValues } from './exchange.ts'

test('header values: each as it was sent, in any case of the name', () => {
  const request = {
    headers: { 'x-group': 'a, b, c', 'x-groups': 'd' },
    rawHeaders: ['X-Group', 'a, b', 'X-Groups', 'd', 'x-GROUP', 'c', 'x_group', 'e'],
  }
  assert.deepEqual(headerValues(request, 'x-group'), ['a, b', 'c'])
  assert.deepEqual(headerValues(request, 'x-groups'), ['d'])
})

test('header values: none for what was not sent, whatever its name', () => {
  for (const name of ['x-else', '__proto__', 'constructor']) {
    assert.deepEqual(headerValues({ headers: {}, rawHeaders: [] }, name), [])
    assert.deepEqual(headerValues({ headers: {} }, name), [])
  }
})

test('header values: without the headers as sent, the one there is', () => {
  assert.deepEqual(headerValues({ headers: { 'x-group': 'a, b' } }, 'x-group'), ['a, b'])
})
