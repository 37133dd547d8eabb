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

  test('tells when files can be used again, whether or not they say something else', async (context) => {
    context.mock.timers.enable({ apis: ['setInterval'] })
    const seen: string[] = []
    let found: () => string = () => 'old'
    const follower = follow({
      inUse: 'old',
      load: async () => found(),
      onChange: (now) => seen.push(`changed to ${now}`),
      onProblem: (problem) => seen.push(String(problem)),
      onMended: () => seen.push('mended'),
      onLook: (isUsable) => seen.push(isUsable ? 'good' : 'bad'),
    })
    const look = async (next: () => string): Promise<string[]> => {
      found = next
      seen.length = 0
      context.mock.timers.tick(1000)
      await new Promise(setImmediate)
      return [...seen]
    }
    const fail = (): string => {
      throw new Error('broken')
    }
    assert.deepEqual(await look(() => 'old'), ['good'])
    assert.deepEqual(await look(fail), ['Error: broken', 'bad'])
    assert.deepEqual(await look(fail), ['bad'])
    assert.deepEqual(await look(() => 'old'), ['mended', 'good'])
    assert.deepEqual(await look(() => 'old'), ['good'])
    assert.deepEqual(await look(fail), ['Error: broken', 'bad'])
    assert.deepEqual(await look(() => 'new'), ['changed to new', 'good'])
    follower.stop()
  })

  test('what cannot be put to use is no more in use than what cannot be read', async (context) => {
    context.mock.timers.enable({ apis: ['setInterval'] })
    const seen: string[] = []
    let isRefused = true
    const follower = follow({
      inUse: 'old',
      load: async () => 'new',
      onChange: (now) => {
        if (isRefused) throw new Error('refused')
        seen.push(`changed to ${now}`)
      },
      onProblem: (problem) => seen.push(String(problem)),
      onMended: () => seen.push('mended'),
      onLook: (isUsable) => seen.push(isUsable ? 'good' : 'bad'),
    })
    const look = async (): Promise<void> => {
      context.mock.timers.tick(1000)
      await new Promise(setImmediate)
    }
    await look()
    await look()
    isRefused = false
    await look()
    assert.deepEqual(seen, ['Error: refused', 'bad', 'bad', 'changed to new', 'good'])
    follower.stop()
  })

  for (const outcome of ['something new', 'a problem']) {
    test(`of a look that is under way when it is stopped nothing is reported: ${outcome}`, async (context) => {
      context.mock.timers.enable({ apis: ['setInterval'] })
      const { promise, resolve, reject } = Promise.withResolvers<Value>()
      const heard: unknown[] = []
      const follower = follow<Value>({
        inUse: { text: 'first' },
        load: () => promise,
        onChange: (found) => heard.push(found),
        onProblem: (problem) => heard.push(problem),
        onLook: (isUsable) => heard.push(isUsable),
      })
      context.mock.timers.tick(1000)
      follower.stop()
      if (outcome === 'a problem') reject(new Error('broken'))
      else resolve({ text: 'second' })
      await new Promise(setImmediate)
      assert.deepEqual(heard, [])
    })
  }

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
