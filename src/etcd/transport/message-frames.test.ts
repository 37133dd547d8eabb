import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { framed, MessageSplitter } from './message-frames.ts'

const messages = [Buffer.from('one'), Buffer.alloc(0), Buffer.alloc(300, 'x'), Buffer.from('last')]
const bytes = Buffer.concat(messages.map(framed))

describe('MessageSplitter', () => {
  test('messages are the same wherever the bytes are cut', () => {
    for (let cut = 0; cut <= bytes.length; cut++) {
      const splitter = new MessageSplitter()
      const found = [bytes.subarray(0, cut), bytes.subarray(cut)].flatMap((part) => [
        ...splitter.take(part),
      ])
      assert.deepEqual(found, messages, `cut at ${cut}`)
    }
  })

  test('messages can come byte by byte', () => {
    const splitter = new MessageSplitter()
    const found = [...bytes].flatMap((byte) => [...splitter.take(Buffer.of(byte))])
    assert.deepEqual(found, messages)
  })

  test('a compressed message is an error, since none was asked for', () => {
    const compressed = framed(Buffer.from('one'))
    compressed[0] = 1
    assert.throws(() => new MessageSplitter().take(compressed), /compressed/)
  })
})
