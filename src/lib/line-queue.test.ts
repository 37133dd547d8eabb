import assert from 'node:assert/strict'
import { describe, mock, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { AppendError, LineQueue, type LineQueueEvent, type LineTarget } from './line-queue.ts'

/** A target whose writes end when the test says so. */
class Held implements LineTarget {
  readonly writes: string[] = []
  readonly #pending: PromiseWithResolvers<void>[] = []
  isClosed = false

  append(bytes: Buffer): Promise<void> {
    this.writes.push(bytes.toString())
    const pending = Promise.withResolvers<void>()
    this.#pending.push(pending)
    return pending.promise
  }

  async close(): Promise<void> {
    this.isClosed = true
  }

  async finish(error?: unknown): Promise<void> {
    await settle()
    const pending = this.#pending.shift()
    assert.ok(pending, 'there is a write under way')
    if (error === undefined) pending.resolve()
    else pending.reject(error)
    await settle()
  }
}

async function settle(): Promise<void> {
  for (let times = 0; times < 3; times++) await turn()
}

function queueOn(target: LineTarget, bytesMax = 1000): { queue: LineQueue; events: string[] } {
  const events: string[] = []
  const onEvent = (event: LineQueueEvent): void => {
    events.push(event.kind === 'recovered' ? `recovered ${event.lost}` : event.kind)
  }
  return {
    queue: new LineQueue({ target, bytesMax, stallMs: 1000, retryMs: 500, onEvent }),
    events,
  }
}

/** Whether somebody who waits for the lines has been let go by now. */
function watched(queue: LineQueue): { isOut: boolean } {
  const state = { isOut: false }
  void queue.written().then(() => {
    state.isOut = true
  })
  return state
}

describe('line queue', () => {
  test('lines of one turn go out together, and those that come meanwhile with the next write', async () => {
    const target = new Held()
    const { queue } = queueOn(target)
    queue.add('a\n')
    queue.add('b\n')
    await settle()
    queue.add('c\n')
    queue.add('d\n')
    await target.finish()
    await target.finish()
    assert.deepEqual(target.writes, ['a\nb\n', 'c\nd\n'])
    assert.equal(queue.counts.bytes, 0)
  })

  test('whoever waits is let go when its own lines are out, and not before', async () => {
    const target = new Held()
    const { queue } = queueOn(target)
    queue.add('a\n')
    const first = watched(queue)
    await settle()
    // Nothing new: what is under way is what there is to wait for.
    const again = watched(queue)
    queue.add('b\n')
    const second = watched(queue)
    await settle()
    assert.deepEqual([first.isOut, again.isOut, second.isOut], [false, false, false])
    await target.finish()
    assert.deepEqual([first.isOut, again.isOut, second.isOut], [true, true, false])
    await target.finish()
    assert.equal(second.isOut, true)
    await queue.written()
  })

  test('nobody waits longer for a slow target than it may take, until it moves again', async () => {
    mock.timers.enable({ apis: ['setTimeout'] })
    try {
      const target = new Held()
      const { queue, events } = queueOn(target)
      queue.add('a\n')
      const first = watched(queue)
      await settle()
      queue.add('b\n')
      const second = watched(queue)
      mock.timers.tick(1000)
      await settle()
      assert.deepEqual([first.isOut, second.isOut], [true, true])
      assert.deepEqual(events, ['stalled'])
      queue.add('c\n')
      await queue.written()

      await target.finish()
      assert.deepEqual(events, ['stalled', 'recovered 0'])
      queue.add('d\n')
      const later = watched(queue)
      await settle()
      assert.equal(later.isOut, false)
      await target.finish()
      await target.finish()
      assert.equal(later.isOut, true)
      assert.deepEqual(target.writes, ['a\n', 'b\nc\n', 'd\n'])
    } finally {
      mock.timers.reset()
    }
  })

  test('what could not be written is tried again from where it broke off', async () => {
    mock.timers.enable({ apis: ['setTimeout'] })
    try {
      const target = new Held()
      const { queue, events } = queueOn(target)
      queue.add('first\n')
      const waiter = watched(queue)
      await target.finish(new AppendError(2, new Error('ENOSPC')))
      assert.equal(waiter.isOut, true)
      mock.timers.tick(500)
      await target.finish(new Error('unreadable'))
      mock.timers.tick(500)
      await target.finish()
      assert.deepEqual(target.writes, ['first\n', 'rst\n', 'rst\n'])
      assert.deepEqual(events, ['failed', 'recovered 0'])
      assert.equal(queue.counts.failedWrites, 2)
      assert.equal(queue.counts.lost, 0)
    } finally {
      mock.timers.reset()
    }
  })

  test('it holds no more than its bound: what is beyond is dropped and counted', async () => {
    const target = new Held()
    const { queue, events } = queueOn(target, 10)
    assert.equal(queue.add('12345\n'), true)
    await settle()
    assert.equal(queue.add('1234\n'), false)
    assert.equal(queue.add('123\n'), true)
    assert.equal(queue.add('1\n'), false)
    await target.finish()
    assert.equal(queue.add('1234\n'), true)
    await target.finish()
    await target.finish()
    assert.equal(queue.counts.lost, 2)
    assert.deepEqual(target.writes.join(''), '12345\n123\n1234\n')
    assert.deepEqual(events, [])
  })

  test('very many lines go out in pieces, in order', async () => {
    const written: string[] = []
    const target: LineTarget = {
      append: async (bytes) => {
        written.push(bytes.toString())
      },
      close: async () => {},
    }
    const { queue } = queueOn(target, 1_000_000)
    const lines = Array.from({ length: 2500 }, (_, index) => `${index}\n`)
    for (const line of lines) queue.add(line)
    await queue.written()
    assert.equal(written.length, 3)
    assert.equal(written.join(''), lines.join(''))
  })

  test('the end writes what is there, closes the target, and takes no more', async () => {
    const target = new Held()
    const { queue } = queueOn(target)
    queue.add('a\n')
    const closed = queue.close(1000)
    await target.finish()
    await closed
    assert.equal(target.isClosed, true)
    assert.equal(queue.add('b\n'), false)
    assert.equal(queue.counts.lost, 1)
  })

  test('the end waits for a bounded time', async () => {
    const target = new Held()
    const { queue } = queueOn(target)
    queue.add('a\n')
    await queue.close(5)
    assert.equal(target.isClosed, false)
    await target.finish()
  })
})
