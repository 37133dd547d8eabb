import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withFlagName } from './flag-errors.ts'

test('withFlagName: names the flags and then the cause', async () => {
  const cause = new Error('ENOENT: no such file')
  await assert.rejects(withFlagName('--one, --two', Promise.reject(cause)), {
    message: '--one, --two: ENOENT: no such file',
    cause,
  })
  await assert.rejects(withFlagName('--one', Promise.reject('odd')), { message: '--one: odd' })
  assert.equal(await withFlagName('--one', Promise.resolve(1)), 1)
})
