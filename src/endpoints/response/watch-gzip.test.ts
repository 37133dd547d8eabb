import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import { constants, gunzipSync } from 'node:zlib'
import { WatchGzip } from './watch-gzip.ts'

/** What a client has when no more bytes have arrived. */
function soFar(parts: readonly Buffer[]): Buffer {
  return gunzipSync(Buffer.concat(parts), { finishFlush: constants.Z_SYNC_FLUSH })
}

describe('WatchGzip', () => {
  test('every frame can be read as soon as it is sent, and the whole is one gzip stream', async () => {
    const gzip = new WatchGzip()
    const frames = [
      Buffer.from('{"type":"ADDED"}\n'.repeat(1000)),
      randomBytes(100_000),
      Buffer.from('{"type":"BOOKMARK"}\n'),
      randomBytes(0xffff),
      randomBytes(200_000),
    ]
    const parts: Buffer[] = []
    for (const [index, frame] of frames.entries()) {
      parts.push(index < 2 ? await gzip.list(frame) : gzip.change(frame))
      assert.deepEqual(soFar(parts), Buffer.concat(frames.slice(0, index + 1)))
    }
    parts.push(gzip.end())
    assert.deepEqual(gunzipSync(Buffer.concat(parts)), Buffer.concat(frames))
  })

  // Node's decompressor returns every byte that it can decode, but Go's waits for this block.
  test('a list and each change end with an empty block that is not compressed', async () => {
    const gzip = new WatchGzip()
    const frame = Buffer.from('{"type":"ADDED"}\n')
    const last = [0, 0, 0xff, 0xff]
    assert.deepEqual([...(await gzip.list(frame)).subarray(-4)], last)
    for (const each of [frame, randomBytes(0xffff), randomBytes(200_000)]) {
      assert.deepEqual([...gzip.change(each).subarray(-4)], last)
      assert.deepEqual([...(await gzip.list(each)).subarray(-4)], last)
    }
  })

  test('a list is compressed', async () => {
    const frames = Buffer.from('{"type":"ADDED","object":{"kind":"Event"}}\n'.repeat(1000))
    assert.ok((await new WatchGzip().list(frames)).length < frames.length / 10)
  })

  test('a watch that ends before its first frame is an empty gzip stream', () => {
    assert.equal(gunzipSync(new WatchGzip().end()).length, 0)
  })
})
