/**
 * Splits the body of a watch into its frames: lines of JSON, or length-prefixed protobuf messages. A
 * frame that exceeds the limit is skipped without being buffered, and reported as `too-long`.
 */

/** Larger than any event that fits into etcd, even if every character is escaped. */
const frameBytesMaxDefault = 8 * 1024 * 1024
const lineFeed = 0x0a
const lengthBytes = 4

export type Frame = Buffer | 'too-long'

export interface FrameSplitter {
  /** The frames that this chunk completes. */
  push(chunk: Buffer): Generator<Frame, void, undefined>
}

/** The beginning of a frame whose end has not arrived. */
class PartialFrame {
  readonly #bytesMax: number
  #parts: Buffer[] = []
  #bytes = 0
  #isTooLong = false

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  add(part: Buffer): void {
    if (part.length === 0) return
    this.#bytes += part.length
    if (this.#bytes > this.#bytesMax) {
      this.#isTooLong = true
      this.#parts = []
    }
    if (!this.#isTooLong) this.#parts.push(part)
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Returns the completed frame and starts the next one. */
  take(): Frame {
    const [first = Buffer.alloc(0), ...others] = this.#parts
    const whole = others.length === 0 ? first : Buffer.concat(this.#parts)
    const frame = this.#isTooLong ? 'too-long' : whole
    this.#parts = []
    this.#bytes = 0
    this.#isTooLong = false
    return frame
  }
}

export class LineSplitter implements FrameSplitter {
  readonly #line: PartialFrame

  constructor(bytesMax: number = frameBytesMaxDefault) {
    this.#line = new PartialFrame(bytesMax)
  }

  *push(chunk: Buffer): Generator<Frame, void, undefined> {
    let from = 0
    for (;;) {
      const end = chunk.indexOf(lineFeed, from)
      if (end < 0) break
      this.#line.add(chunk.subarray(from, end))
      from = end + 1
      if (this.#line.bytes > 0) yield this.#line.take()
    }
    this.#line.add(chunk.subarray(from))
  }
}

export class MessageSplitter implements FrameSplitter {
  readonly #head = new PartialFrame(lengthBytes)
  readonly #message: PartialFrame
  /** The length of the current message. */
  #length: number | undefined

  constructor(bytesMax: number = frameBytesMaxDefault) {
    this.#message = new PartialFrame(bytesMax)
  }

  *push(chunk: Buffer): Generator<Frame, void, undefined> {
    let from = 0
    while (from < chunk.length || this.#length === 0) {
      const part = this.#length === undefined ? this.#head : this.#message
      const wanted = (this.#length ?? lengthBytes) - part.bytes
      const to = Math.min(chunk.length, from + wanted)
      part.add(chunk.subarray(from, to))
      if (to - from < wanted) return
      from = to
      const frame = part.take()
      if (part === this.#head) this.#length = (frame as Buffer).readUInt32BE()
      else {
        this.#length = undefined
        yield frame
      }
    }
  }
}
