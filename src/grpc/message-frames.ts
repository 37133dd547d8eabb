/** Messages on a gRPC stream: one byte for compression, four for the length, then the message. */

const prefixBytes = 5

export function framed(message: Buffer): Buffer {
  const frame = Buffer.allocUnsafe(prefixBytes + message.length)
  frame[0] = 0
  frame.writeUInt32BE(message.length, 1)
  message.copy(frame, prefixBytes)
  return frame
}

/** The server announced a message that is longer than any that it may send here. */
export class MessageTooLarge extends Error {
  override readonly name = 'MessageTooLarge'
}

/**
 * Splits received bytes into messages. A message within one chunk is a view of it, not a copy. A
 * message that is longer than `maxBytes` is not buffered.
 */
export class MessageSplitter {
  readonly #maxBytes: number
  #chunks: Buffer[] = []
  #length = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /**
   * The messages that are complete with this chunk. Throws when one is compressed, or with
   * MessageTooLarge; the splitter must not be used afterwards.
   */
  take(chunk: Buffer): readonly Buffer[] {
    this.#chunks.push(chunk)
    this.#length += chunk.length
    const messages: Buffer[] = []
    if (this.#length < prefixBytes) return messages
    // Parts of a long message are joined once, when the last of them has arrived.
    if (this.#chunks.length > 1 && this.#length < prefixBytes + this.#nextLength()) return messages
    const bytes = this.#joined()
    let at = 0
    while (at + prefixBytes <= bytes.length) {
      if (bytes[at] !== 0) throw new Error('a compressed message, which was not offered')
      const end = at + prefixBytes + this.#lengthAt(bytes, at)
      if (end > bytes.length) break
      messages.push(bytes.subarray(at + prefixBytes, end))
      at = end
    }
    this.#chunks = at === bytes.length ? [] : [bytes.subarray(at)]
    this.#length = bytes.length - at
    return messages
  }

  #lengthAt(bytes: Buffer, at: number): number {
    const length = bytes.readUInt32BE(at + 1)
    if (length <= this.#maxBytes) return length
    throw new MessageTooLarge(
      `a message of ${length} bytes, and at most ${this.#maxBytes} are accepted`,
    )
  }

  /** The length of the first message. Joins the chunks if its prefix is in several of them. */
  #nextLength(): number {
    const [first] = this.#chunks
    const isWhole = first !== undefined && first.length >= prefixBytes
    return this.#lengthAt(isWhole ? first : this.#joined(), 0)
  }

  #joined(): Buffer {
    const [first] = this.#chunks
    if (this.#chunks.length === 1 && first !== undefined) return first
    const joined = Buffer.concat(this.#chunks, this.#length)
    this.#chunks = [joined]
    return joined
  }
}
