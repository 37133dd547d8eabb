import assert from 'node:assert/strict'
import { describe, mock, test } from 'node:test'
import { setImmediate as tick } from 'node:timers/promises'
import { AppendError, LineQueue, type LineQueueEvent, type LineTarget } from './line-queue.ts'

/** A target whose writes the test ends by hand. */
class ManualTarget implements LineTarget {
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
    assert.ok(pending, 'a write is in progress')
    if (error === undefined) pending.resolve()
    else pending.reject(error)
    await settle()
  }
}

async function settle(): Promise<void> {
  for (let times = 0; times < 3; times++) await tick()
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

/** Waits for the lines that are queued now, and shows whether that wait has ended. */
function waitFor(queue: LineQueue): { hasEnded: boolean } {
  const state = { hasEnded: false }
  void queue.written().then(() => {
    state.hasEnded = true
  })
  return state
}

describe('line queue', () => {
  test('writes lines of one tick together, and lines that arrive meanwhile in the next write', async () => {
    const target = new ManualTarget()
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

  test('lets a caller wait until its own lines are written, and no longer', async () => {
    const target = new ManualTarget()
    const { queue } = queueOn(target)
    queue.add('a\n')
    const first = waitFor(queue)
    await settle()
    // No line is queued, so the caller waits for the write in progress.
    const again = waitFor(queue)
    queue.add('b\n')
    const second = waitFor(queue)
    await settle()
    assert.deepEqual([first.hasEnded, again.hasEnded, second.hasEnded], [false, false, false])
    await target.finish()
    assert.deepEqual([first.hasEnded, again.hasEnded, second.hasEnded], [true, true, false])
    await target.finish()
    assert.equal(second.hasEnded, true)
    await queue.written()
  })

  test('does not let callers wait for a stalled target until it accepts lines again', async () => {
    mock.timers.enable({ apis: ['setTimeout'] })
    try {
      const target = new ManualTarget()
      const { queue, events } = queueOn(target)
      queue.add('a\n')
      const first = waitFor(queue)
      await settle()
      queue.add('b\n')
      const second = waitFor(queue)
      mock.timers.tick(1000)
      await settle()
      assert.deepEqual([first.hasEnded, second.hasEnded], [true, true])
      assert.deepEqual(events, ['stalled'])
      queue.add('c\n')
      await queue.written()

      await target.finish()
      assert.deepEqual(events, ['stalled', 'recovered 0'])
      queue.add('d\n')
      const later = waitFor(queue)
      await settle()
      assert.equal(later.hasEnded, false)
      await target.finish()
      await target.finish()
      assert.equal(later.hasEnded, true)
      assert.deepEqual(target.writes, ['a\n', 'b\nc\n', 'd\n'])
    } finally {
      mock.timers.reset()
    }
  })

  test('retries a failed write from the first byte that was not written', async () => {
    mock.timers.enable({ apis: ['setTimeout'] })
    try {
      const target = new ManualTarget()
      const { queue, events } = queueOn(target)
      queue.add('first\n')
      const waiter = waitFor(queue)
      await target.finish(new AppendError(2, new Error('ENOSPC')))
      assert.equal(waiter.hasEnded, true)
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

  test('drops and counts further lines when it is full', async () => {
    const target = new ManualTarget()
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

  test('writes a long queue in several batches, in order', async () => {
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

  test('writes the queued lines, closes the target, and drops later lines on close', async () => {
    const target = new ManualTarget()
    const { queue } = queueOn(target)
    queue.add('a\n')
    const closed = queue.close(1000)
    await target.finish()
    await closed
    assert.equal(target.isClosed, true)
    assert.equal(queue.add('b\n'), false)
    assert.equal(queue.counts.lost, 1)
  })

  test('closes within a bounded time', async () => {
    const target = new ManualTarget()
    const { queue } = queueOn(target)
    queue.add('a\n')
    await queue.close(5)
    assert.equal(target.isClosed, false)
    await target.finish()
  })

  test('writes no line that it has counted as lost when the time to close has run out', async () => {
    const target = new ManualTarget()
    const { queue } = queueOn(target)
    queue.add('a\n')
    await settle()
    queue.add('b\n')
    queue.add('c\n')
    const waiter = waitFor(queue)
    await queue.close(5)
    assert.deepEqual([queue.counts.lost, queue.counts.bytes], [2, 2])
    await settle()
    assert.equal(waiter.hasEnded, true)
    await target.finish()
    assert.deepEqual(target.writes, ['a\n'])
    assert.deepEqual([queue.counts.lost, queue.counts.bytes], [2, 0])
  })

  test('counts only the lines that were not written when the last write fails', async () => {
    const target = new ManualTarget()
    const { queue } = queueOn(target)
    for (const line of ['a\n', 'b\n', 'c\n']) queue.add(line)
    await settle()
    await queue.close(5)
    await target.finish(new AppendError(3, new Error('ENOSPC')))
    assert.deepEqual(target.writes, ['a\nb\nc\n'])
    assert.deepEqual([queue.counts.lost, queue.counts.bytes], [2, 0])
  })
})
