import assert from 'node:assert/strict'
import { test } from 'node:test'
import { headerValues } from './exchange.ts'

test('headerValues returns each value as it was sent, whatever the case of the name', () => {
  const request = {
    headers: { 'x-group': 'a, b, c', 'x-groups': 'd' },
    rawHeaders: ['X-Group', 'a, b', 'X-Groups', 'd', 'x-GROUP', 'c', 'x_group', 'e'],
  }
  assert.deepEqual(headerValues(request, 'x-group'), ['a, b', 'c'])
  assert.deepEqual(headerValues(request, 'x-groups'), ['d'])
})

test('headerValues returns nothing for a header that was not sent, whatever its name', () => {
  for (const name of ['x-else', '__proto__', 'constructor']) {
    assert.deepEqual(headerValues({ headers: {}, rawHeaders: [] }, name), [])
    assert.deepEqual(headerValues({ headers: {} }, name), [])
  }
})

test('headerValues returns the joined value when there are no raw headers', () => {
  assert.deepEqual(headerValues({ headers: { 'x-group': 'a, b' } }, 'x-group'), ['a, b'])
})
