import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Frame, type FrameSplitter, LineSplitter, MessageSplitter } from './watch-frames.ts'

const texts = ['one', '', 'three', 'x'.repeat(40), 'five', 'six']

function lines(): Buffer {
  return Buffer.from(texts.map((text) => `${text}\n`).join(''))
}

function messages(): Buffer {
  return Buffer.concat(
    texts.flatMap((text) => {
      const length = Buffer.alloc(4)
      length.writeUInt32BE(text.length)
      return [length, Buffer.from(text)]
    }),
  )
}

function split(splitter: FrameSplitter, bytes: Buffer, chunkBytes: number): string[] {
  const frames: Frame[] = []
  for (let at = 0; at < bytes.length; at += chunkBytes) {
    frames.push(...splitter.push(bytes.subarray(at, at + chunkBytes)))
  }
  return frames.map(String)
}

for (let chunkBytes = 1; chunkBytes <= 80; chunkBytes += chunkBytes < 12 ? 1 : 17) {
  test(`finds frames in chunks of ${chunkBytes} bytes and skips those that are too long`, () => {
    const expected = texts.map((text) => (text.length > 30 ? 'too-long' : text))
    // An empty line is no frame.
    const inLines = expected.filter((text) => text !== '')
    assert.deepEqual(split(new LineSplitter(30), lines(), chunkBytes), inLines)
    assert.deepEqual(split(new MessageSplitter(30), messages(), chunkBytes), expected)
  })
}

test('buffers no more than the limit of a frame without an end', () => {
  const chunk = Buffer.alloc(1024 * 1024, 'x')
  const head = Buffer.from([0xff, 0xff, 0xff, 0xff])
  for (const splitter of [new LineSplitter(), new MessageSplitter()]) {
    const before = process.memoryUsage().arrayBuffers
    assert.deepEqual([...splitter.push(head)], [])
    for (let count = 0; count < 64; count++) {
      assert.deepEqual([...splitter.push(Buffer.from(chunk))], [])
    }
    const kept = process.memoryUsage().arrayBuffers - before
    assert.ok(kept < 80 * 1024 * 1024, String(kept))
  }
})
