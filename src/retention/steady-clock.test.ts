import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SteadyClock } from './steady-clock.ts'

test('steady clock: counts elapsed time, but only a few seconds of a step', () => {
  const time = { now: 500 }
  const clock = new SteadyClock({ now: () => time.now })
  assert.equal(clock.now(), 500)
  for (let second = 1; second <= 60; second++) {
    time.now += 1_000
    assert.equal(clock.now(), 500 + second * 1_000)
  }
  time.now += 86_400_000
  assert.equal(clock.now(), 60_500 + 5_000)
  time.now -= 86_400_000
  assert.equal(clock.now(), 65_500)
  time.now += 1_000
  assert.equal(clock.now(), 66_500)
})
