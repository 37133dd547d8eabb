/**
 * Memory to write pieces of an answer into, one after another. What is in it is good until room is
 * made for the next piece.
 */
export class Room {
  #bytes: Buffer = Buffer.alloc(0)

  /** At least this many bytes. */
  make(length: number): Buffer {
    if (this.#bytes.length < length) this.#bytes = Buffer.allocUnsafeSlow(length)
    return this.#bytes
  }
}
