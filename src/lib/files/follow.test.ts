import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { follow } from './follow.ts'

interface Value {
  readonly text: string
}

describe('follow', () => {
  test('reports a new value once, and a problem once while it lasts', async (context) => {
    context.mock.timers.enable({ apis: ['setInterval'] })
    const first: Value = { text: 'first' }
    const second: Value = { text: 'second' }
    const seen: string[] = []
    let content: () => Value = () => first
    const follower = follow<Value>({
      inUse: first,
      load: async (current) => {
        seen.push(`load after ${current.text}`)
        return content()
      },
      onChange: ({ text }) => seen.push(text),
      onProblem: (problem) => seen.push(String(problem)),
    })
    const polls = async (next: () => Value, times: number): Promise<string[]> => {
      content = next
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
    assert.deepEqual(await polls(() => first, 1), ['load after first'])
    assert.deepEqual(await polls(fail, 2), [
      'load after first',
      'Error: broken',
      'load after first',
    ])
    assert.deepEqual(await polls(() => second, 2), [
      'load after first',
      'second',
      'load after second',
    ])
    assert.deepEqual(await polls(fail, 1), ['load after second', 'Error: broken'])
    follower.stop()
    assert.deepEqual(await polls(() => first, 1), [])
  })

  test('reports files that are valid again, with old or new content', async (context) => {
    context.mock.timers.enable({ apis: ['setInterval'] })
    const seen: string[] = []
    let found: () => string = () => 'old'
    const follower = follow({
      inUse: 'old',
      load: async () => found(),
      onChange: (now) => seen.push(`changed to ${now}`),
      onProblem: (problem) => seen.push(String(problem)),
      onRecovered: () => seen.push('recovered'),
      onPoll: (isUsable) => seen.push(isUsable ? 'good' : 'bad'),
    })
    const poll = async (next: () => string): Promise<string[]> => {
      found = next
      seen.length = 0
      context.mock.timers.tick(1000)
      await new Promise(setImmediate)
      return [...seen]
    }
    const fail = (): string => {
      throw new Error('broken')
    }
    assert.deepEqual(await poll(() => 'old'), ['good'])
    assert.deepEqual(await poll(fail), ['Error: broken', 'bad'])
    assert.deepEqual(await poll(fail), ['bad'])
    assert.deepEqual(await poll(() => 'old'), ['recovered', 'good'])
    assert.deepEqual(await poll(() => 'old'), ['good'])
    assert.deepEqual(await poll(fail), ['Error: broken', 'bad'])
    assert.deepEqual(await poll(() => 'new'), ['changed to new', 'good'])
    follower.stop()
  })

  test('reports a value that cannot be applied as a problem', async (context) => {
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
      onRecovered: () => seen.push('recovered'),
      onPoll: (isUsable) => seen.push(isUsable ? 'good' : 'bad'),
    })
    const poll = async (): Promise<void> => {
      context.mock.timers.tick(1000)
      await new Promise(setImmediate)
    }
    await poll()
    await poll()
    isRefused = false
    await poll()
    assert.deepEqual(seen, ['Error: refused', 'bad', 'bad', 'changed to new', 'good'])
    follower.stop()
  })

  for (const outcome of ['a new value', 'a problem']) {
    test(`does not report ${outcome} of a poll in progress after stop`, async (context) => {
      context.mock.timers.enable({ apis: ['setInterval'] })
      const { promise, resolve, reject } = Promise.withResolvers<Value>()
      const reports: unknown[] = []
      const follower = follow<Value>({
        inUse: { text: 'first' },
        load: () => promise,
        onChange: (found) => reports.push(found),
        onProblem: (problem) => reports.push(problem),
        onPoll: (isUsable) => reports.push(isUsable),
      })
      context.mock.timers.tick(1000)
      follower.stop()
      if (outcome === 'a problem') reject(new Error('broken'))
      else resolve({ text: 'second' })
      await new Promise(setImmediate)
      assert.deepEqual(reports, [])
    })
  }

  test('does not start a poll while another is in progress', async (context) => {
    context.mock.timers.enable({ apis: ['setInterval'] })
    const polls: PromiseWithResolvers<number>[] = []
    const follower = follow({
      inUse: 0,
      load: () => {
        const poll = Promise.withResolvers<number>()
        polls.push(poll)
        return poll.promise
      },
      onChange: () => {},
      onProblem: () => {},
    })
    context.mock.timers.tick(3000)
    assert.equal(polls.length, 1)
    polls[0]?.resolve(0)
    await new Promise(setImmediate)
    context.mock.timers.tick(1000)
    assert.equal(polls.length, 2)
    follower.stop()
  })
})
