import assert from 'node:assert/strict'
import { test } from 'node:test'
import { about } from './about.ts'

test('a failure names the flags, and then what is wrong', async () => {
  const cause = new Error('ENOENT: no such file')
  await assert.rejects(about('--one, --two', Promise.reject(cause)), {
    message: '--one, --two: ENOENT: no such file',
    cause,
  })
  await assert.rejects(about('--one', Promise.reject('odd')), { message: '--one: odd' })
  assert.equal(await about('--one', Promise.resolve(1)), 1)
})
