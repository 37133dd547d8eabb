import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { ConnectionHistory } from './connection-history.ts'

test('connection history: verifies a new connection only after everything was forgotten', () => {
  mock.timers.enable({ apis: ['setTimeout'] })
  let newest = 3
  let forgotten = 0
  const history = new ConnectionHistory(
    () => newest,
    () => {
      forgotten++
    },
  )
  assert.deepEqual([history.isVerified(), history.verified()], [true, 3])
  newest = 4
  assert.deepEqual([history.isVerified(), history.verified()], [false, 0])
  newest = 5
  history.verify()
  assert.equal(forgotten, 0)
  mock.timers.tick(1_000)
  assert.deepEqual([forgotten, history.isVerified(), history.verified()], [1, true, 5])
  mock.timers.tick(10_000)
  assert.equal(forgotten, 1)
  mock.timers.reset()
})
