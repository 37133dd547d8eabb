import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { LogWriter } from './log-writer.ts'

/** A pipe with limited space, set by the test, and a writer on it with a manual clock. */
function setUp(bufferedBytesMax = 1000): {
  writer: LogWriter
  clock: { ms: number; now(): number }
  pipe: { free: number; error: string | undefined; text: string; writes: number }
} {
  const pipe = { free: 100_000, error: undefined as string | undefined, text: '', writes: 0 }
  const clock = {
    ms: 0,
    now(): number {
      return this.ms
    },
  }
  const writer = new LogWriter({
    clock,
    bufferedBytesMax,
    writeSync: (_fd, bytes) => {
      const code = pipe.error ?? (pipe.free === 0 ? 'EAGAIN' : undefined)
      if (code !== undefined) throw Object.assign(new Error(code), { code })
      const taken = bytes.subarray(0, pipe.free)
      pipe.free -= taken.length
      pipe.text += Buffer.from(taken).toString('latin1')
      pipe.writes += 1
      return taken.length
    },
  })
  return { writer, clock, pipe }
}

const nextTick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

describe('LogWriter', () => {
  test('writes lines of one tick together in the next tick', async () => {
    const { writer, pipe } = setUp()
    writer.write('a\n')
    writer.write('b\n')
    assert.equal(pipe.writes, 0)
    await nextTick()
    assert.equal(pipe.text, 'a\nb\n')
    assert.equal(pipe.writes, 1)
    await writer.close()
  })

  test('advances lastFlushedAt at every completed flush, but not while the pipe is full', async () => {
    const { writer, clock, pipe } = setUp()
    clock.ms = 10
    writer.flushSync(0)
    assert.equal(writer.lastFlushedAt(), 10)

    pipe.free = 3
    writer.write('abcdef\n')
    clock.ms = 20
    writer.flushSync(0)
    clock.ms = 30
    writer.flushSync(0)
    assert.equal(writer.lastFlushedAt(), 10)
    assert.equal(pipe.text, 'abc')

    pipe.free = 100
    clock.ms = 40
    writer.flushSync(0)
    assert.equal(writer.lastFlushedAt(), 40)
    assert.equal(pipe.text, 'abcdef\n')
    await writer.close()
  })

  test('drops lines beyond the limit, and reports them once the pipe has space', async () => {
    const { writer, pipe } = setUp(10)
    writer.onDropped((count) => writer.write(`lost ${count}\n`))
    pipe.free = 0
    for (const line of ['one\n', 'two\n', 'three\n', 'four\n']) writer.write(line)
    writer.flushSync(0)
    assert.equal(writer.dropped, 2)
    pipe.free = 100
    writer.flushSync(0)
    assert.equal(pipe.text, 'one\ntwo\nlost 2\n')
    assert.equal(writer.dropped, 0)
    await writer.close()
  })

  test('completes a partially written line before the lines after it', async () => {
    const { writer, pipe } = setUp()
    pipe.free = 2
    writer.write('é1\n')
    writer.flushSync(0)
    writer.write('é2\n')
    pipe.free = 100
    writer.flushSync(0)
    assert.equal(Buffer.from(pipe.text, 'latin1').toString(), 'é1\né2\n')
    await writer.close()
  })

  test('delivers the buffered lines to a reader that disconnects and returns', async () => {
    const { writer, clock, pipe } = setUp()
    pipe.error = 'EPIPE'
    writer.write('kept\n')
    clock.ms = 10
    writer.flushSync(0)
    assert.equal(writer.lastFlushedAt(), 0)
    pipe.error = undefined
    writer.flushSync(0)
    assert.equal(pipe.text, 'kept\n')
    assert.equal(writer.lastFlushedAt(), 10)
    await writer.close()
  })

  test('gives up on a full pipe on close, and still attempts later lines', async () => {
    const { writer, pipe } = setUp()
    pipe.free = 0
    writer.write('late\n')
    await writer.close(0)
    pipe.free = 100
    writer.write('last\n')
    assert.equal(pipe.text, 'late\nlast\n')
  })
})
