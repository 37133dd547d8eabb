import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { follow } from './follow.ts'

interface Value {
  readonly text: string
}

describe('follow', () => {
  test('reports what is new, once, and a problem once as long as it lasts', async (context) => {
    context.mock.timers.enable({ apis: ['setInterval'] })
    const first: Value = { text: 'first' }
    const second: Value = { text: 'second' }
    const seen: string[] = []
    let answer: () => Value = () => first
    const follower = follow<Value>({
      inUse: first,
      load: async (current) => {
        seen.push(`look with ${current.text}`)
        return answer()
      },
      onChange: ({ text }) => seen.push(text),
      onProblem: (problem) => seen.push(String(problem)),
    })
    const looks = async (next: () => Value, times: number): Promise<string[]> => {
      answer = next
      seen.length = 0
      for (let time = 0; time < times; time++) {
        context.mock.timers.tick(1000)
        await new Promise(setImmediate)
      }
      return seen
    }
    const fail = (): Value => {
      throw new Error('broken')
    }
    assert.deepEqual(await looks(() => first, 1), ['look with first'])
    assert.deepEqual(await looks(fail, 2), ['look with first', 'Error: broken', 'look with first'])
    assert.deepEqual(await looks(() => second, 2), [
      'look with first',
      'second',
      'look with second',
    ])
    assert.deepEqual(await looks(fail, 1), ['look with second', 'Error: broken'])
    follower.stop()
    assert.deepEqual(await looks(() => first, 1), [])
  })

  test('does not look again while a look is under way', async (context) => {
    context.mock.timers.enable({ apis: ['setInterval'] })
    const looks: PromiseWithResolvers<number>[] = []
    const follower = follow({
      inUse: 0,
      load: () => {
        const look = Promise.withResolvers<number>()
        looks.push(look)
        return look.promise
      },
      onChange: () => {},
      onProblem: () => {},
    })
    context.mock.timers.tick(3000)
    assert.equal(looks.length, 1)
    looks[0]?.resolve(0)
    await new Promise(setImmediate)
    context.mock.timers.tick(1000)
    assert.equal(looks.length, 2)
    follower.stop()
  })
})
