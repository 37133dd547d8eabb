import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { Semaphore } from './semaphore.ts'

test('semaphore: limits concurrent work and starts it in order, even after a failure', async () => {
  const semaphore = new Semaphore(2)
  const begun: number[] = []
  let underWay = 0
  let most = 0
  const work = Array.from({ length: 7 }, (_, index) =>
    semaphore.take(async () => {
      begun.push(index)
      most = Math.max(most, ++underWay)
      await setImmediate()
      underWay--
      if (index === 1) throw new Error('failed')
      return index
    }),
  )
  const ended = await Promise.allSettled(work)
  assert.deepEqual(begun, [0, 1, 2, 3, 4, 5, 6])
  assert.equal(most, 2)
  assert.deepEqual(
    ended.map((outcome) => (outcome.status === 'fulfilled' ? outcome.value : 'failed')),
    [0, 'failed', 2, 3, 4, 5, 6],
  )
  assert.equal(await semaphore.take(async () => 'free again'), 'free again')
})
