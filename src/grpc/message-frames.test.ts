import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { framed, MessageSplitter, MessageTooLarge } from './message-frames.ts'

const messages = [Buffer.from('one'), Buffer.alloc(0), Buffer.alloc(300, 'x'), Buffer.from('last')]
const maxBytes = 16 * 1024 * 1024
const bytes = Buffer.concat(messages.map(framed))

describe('MessageSplitter', () => {
  test('finds the same messages wherever the bytes are cut', () => {
    for (let cut = 0; cut <= bytes.length; cut++) {
      const splitter = new MessageSplitter(maxBytes)
      const found = [bytes.subarray(0, cut), bytes.subarray(cut)].flatMap((part) => [
        ...splitter.take(part),
      ])
      assert.deepEqual(found, messages, `cut at ${cut}`)
    }
  })

  test('finds messages that arrive byte by byte', () => {
    const splitter = new MessageSplitter(maxBytes)
    const found = [...bytes].flatMap((byte) => [...splitter.take(Buffer.of(byte))])
    assert.deepEqual(found, messages)
  })

  test('joins the chunks of a long message once, even if several of them have its prefix', () => {
    const long = framed(Buffer.alloc(8 * 1024 * 1024))
    const splitter = new MessageSplitter(maxBytes)
    let found = splitter.take(long.subarray(0, 2))
    const startedAt = process.cpuUsage()
    for (let at = 2; at < long.length; at += 8 * 1024) {
      found = splitter.take(long.subarray(at, at + 8 * 1024))
    }
    assert.equal(found[0]?.length, long.length - 5)
    // It would take seconds to join all chunks for each of them.
    assert.ok(process.cpuUsage(startedAt).user < 1_000_000)
  })

  test('throws for a compressed message, since compression is not offered', () => {
    const compressed = framed(Buffer.from('one'))
    compressed[0] = 1
    assert.throws(() => new MessageSplitter(maxBytes).take(compressed), /compressed/)
  })

  test('throws at the prefix of a message over the limit, wherever that is cut', () => {
    const claim = Buffer.from([0, 0xff, 0xff, 0xff, 0xff, 1, 2, 3])
    for (let cut = 0; cut < 5; cut++) {
      const splitter = new MessageSplitter(maxBytes)
      splitter.take(bytes)
      splitter.take(claim.subarray(0, cut))
      assert.throws(() => splitter.take(claim.subarray(cut)), MessageTooLarge, `cut at ${cut}`)
    }
    assert.equal(new MessageSplitter(3).take(framed(Buffer.from('one'))).length, 1)
    assert.throws(() => new MessageSplitter(2).take(framed(Buffer.from('one'))), MessageTooLarge)
  })
})
