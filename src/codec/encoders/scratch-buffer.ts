/**
 * A reusable buffer for the chunks of a response, which are written one after another. The content
 * is valid until space is reserved for the next chunk.
 */
export class ScratchBuffer {
  #bytes: Buffer = Buffer.alloc(0)

  /** A buffer of at least this length. */
  reserve(length: number): Buffer {
    if (this.#bytes.length < length) this.#bytes = Buffer.allocUnsafeSlow(length)
    return this.#bytes
  }
}
