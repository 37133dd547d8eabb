import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { Turns } from './turns.ts'

test('Turns: no more than so many at a time, in the order in which they came, failed or not', async () => {
  const turns = new Turns(2)
  const begun: number[] = []
  let underWay = 0
  let most = 0
  const work = Array.from({ length: 7 }, (_, index) =>
    turns.take(async () => {
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
  assert.equal(await turns.take(async () => 'free again'), 'free again')
})
