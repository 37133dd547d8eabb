import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { describe, test } from 'node:test'
import { AbortListener, aborted, LinkedAbort, pause, repeat } from './abort.ts'

const listenersOf = (signal: AbortSignal): number => getEventListeners(signal, 'abort').length

describe('AbortListener', () => {
  test('is called immediately when the signal has aborted, and leaves no listener', () => {
    let calls = 0
    const signal = AbortSignal.abort()
    new AbortListener(signal, () => calls++)
    assert.equal(calls, 1)
    assert.equal(listenersOf(signal), 0)
  })

  test('is called once when the signal aborts later', () => {
    let calls = 0
    const ending = new AbortController()
    new AbortListener(ending.signal, () => calls++)
    assert.equal(calls, 0)
    ending.abort()
    ending.abort()
    assert.equal(calls, 1)
  })

  test('is not called after it is disposed, and leaves no listener', () => {
    let calls = 0
    const ending = new AbortController()
    {
      using _listener = new AbortListener(ending.signal, () => calls++)
      assert.equal(listenersOf(ending.signal), 1)
    }
    assert.equal(listenersOf(ending.signal), 0)
    ending.abort()
    assert.equal(calls, 0)
  })
})

describe('LinkedAbort', () => {
  test('aborts with each of its parents, including one that has already aborted', () => {
    const parents = [new AbortController(), new AbortController()] as const
    for (const parent of parents) {
      using linked = new LinkedAbort(...parents.map(({ signal }) => signal))
      assert.equal(linked.signal.aborted, parent !== parents[0])
      parent.abort()
      assert.equal(linked.signal.aborted, true)
    }
  })

  test('does not abort its parent, and leaves it no listener', () => {
    const parent = new AbortController()
    const linked = new LinkedAbort(parent.signal)
    linked.abort()
    assert.equal(linked.signal.aborted, true)
    assert.equal(parent.signal.aborted, false)
    linked[Symbol.dispose]()
    assert.equal(listenersOf(parent.signal), 0)
  })

  test('outlives its parent once it is disposed', () => {
    const parent = new AbortController()
    const linked = new LinkedAbort(parent.signal)
    linked[Symbol.dispose]()
    parent.abort()
    assert.equal(linked.signal.aborted, false)
  })
})

test('repeat: runs until the signal aborts, and not at all when it already has', ({ mock }) => {
  mock.timers.enable({ apis: ['setInterval'] })
  const ending = new AbortController()
  let runs = 0
  repeat(100, () => runs++, ending.signal)
  mock.timers.tick(250)
  assert.equal(runs, 2)
  ending.abort()
  repeat(100, () => runs++, ending.signal)
  mock.timers.tick(1000)
  assert.equal(runs, 2)
})

test('aborted: resolves on an abort, even an earlier one', async () => {
  const ending = new AbortController()
  const waiting = aborted(ending.signal)
  ending.abort()
  await waiting
  await aborted(ending.signal)
})

test('pause: ends when its time has passed', async (context) => {
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

test('pause: ends immediately when its signal aborts or is already aborted', async () => {
  const ending = new AbortController()
  const pausing = pause(3_600_000, ending.signal)
  ending.abort()
  await pausing
  await pause(3_600_000, ending.signal)
})

test('pause: leaves no listener at a signal that outlives it', async () => {
  const { signal } = new AbortController()
  await Promise.all(Array.from({ length: 100 }, () => pause(1, signal)))
  assert.equal(listenersOf(signal), 0)
})
