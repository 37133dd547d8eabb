/**
 * Gzips a watch that begins with a list, as one gzip stream (RFC 1952): the list is compressed, and
 * the changes after it follow in blocks that are not compressed ("stored" blocks of RFC 1951). So a
 * watch that waits for changes holds no compressor, and no change waits in one.
 *
 * The list and each change end with an empty block. Go's decompressor, and so client-go and kubectl,
 * returns data only when it reads one, has 32 KiB, or reaches the end of the stream.
 *
 * Each piece of the list is compressed by itself and ends at a byte, which costs a little of the
 * reduction. Kubernetes ends the gzip stream with each flush and begins another one, which curl and
 * browsers do not read.
 */
import { promisify } from 'node:util'
import { constants, crc32, deflateRaw } from 'node:zlib'
import { Semaphore } from '../../lib/semaphore.ts'

const options = { level: constants.Z_BEST_SPEED, finishFlush: constants.Z_SYNC_FLUSH }
const deflate = promisify<Uint8Array, typeof options, Buffer>(deflateRaw)

/** A compressor takes 268 KB, and Node has four threads for them. */
const compressors = new Semaphore(4)

/** Magic number, deflate, no flags, no time, fastest level, unknown system. */
const HEAD = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 0xff])
/** An empty last block. */
const LAST_BLOCK = Buffer.from([3, 0])
/** An empty block that is not compressed. Z_SYNC_FLUSH ends with the same one. */
const EMPTY_BLOCK = Buffer.from([0, 0, 0, 0xff, 0xff])
/** A block that is not compressed has its length in 16 bits. */
const BLOCK_BYTES_MAX = 0xffff
const BLOCK_HEAD_BYTES = 5

export class WatchGzip {
  #crc = 0
  #bytes = 0
  #hasBegun = false

  /** Frames of the list. At most one call may be pending. */
  async list(frames: Buffer): Promise<Buffer> {
    this.#count(frames)
    const blocks = await compressors.take(() => deflate(frames, options))
    return this.#begun([blocks])
  }

  change(frame: Buffer): Buffer {
    this.#count(frame)
    const parts: Buffer[] = []
    for (let at = 0; at < frame.length; at += BLOCK_BYTES_MAX) {
      const block = frame.subarray(at, at + BLOCK_BYTES_MAX)
      const head = Buffer.alloc(BLOCK_HEAD_BYTES)
      head.writeUInt16LE(block.length, 1)
      head.writeUInt16LE(~block.length & 0xffff, 3)
      parts.push(head, block)
    }
    parts.push(EMPTY_BLOCK)
    return this.#begun(parts)
  }

  /** What follows the last frame. */
  end(): Buffer {
    const trailer = Buffer.alloc(8)
    trailer.writeUInt32LE(this.#crc, 0)
    trailer.writeUInt32LE(this.#bytes, 4)
    return this.#begun([LAST_BLOCK, trailer])
  }

  #count(frames: Buffer): void {
    this.#crc = crc32(frames, this.#crc)
    this.#bytes = (this.#bytes + frames.length) % 2 ** 32
  }

  #begun(parts: readonly Buffer[]): Buffer {
    const all = this.#hasBegun ? parts : [HEAD, ...parts]
    this.#hasBegun = true
    return Buffer.concat(all)
  }
}
