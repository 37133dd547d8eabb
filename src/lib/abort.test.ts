import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pause } from './abort.ts'

test('a pause ends when its time has passed', async (context) => {
  const { mock } = context
  mock.timers.enable({ apis: ['setTimeout'] })
  let ended = false
  const pausing = pause(100).then(() => {
    ended = true
  })
  mock.timers.tick(99)
  await Promise.resolve()
  assert.equal(ended, false)
  mock.timers.tick(1)
  await pausing
})

test('a pause ends at once when its signal aborts or is already aborted', async () => {
  const ending = new AbortController()
  const pausing = pause(3_600_000, ending.signal)
  ending.abort()
  await pausing
  await pause(3_600_000, ending.signal)
})
