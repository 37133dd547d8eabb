/**
 * Messages between the server and the process with DuckDB, over a socket: the length of each in four
 * bytes, then its structured clone.
 */
import type { Socket } from 'node:net'
import { deserialize, serialize } from 'node:v8'

/** No message is longer. A caller gives the changes of a segment in several calls. */
export const FRAME_BYTES_MAX: number = 64 * 1024 * 1024

const HEADER_BYTES = 4

/** A message that is too long is not sent. */
export class FrameTooLarge extends Error {
  override readonly name = 'FrameTooLarge'

  constructor(bytes: number) {
    super(`a message of ${bytes} bytes is longer than ${FRAME_BYTES_MAX}`)
  }
}

/** Throws `FrameTooLarge`, or a `DataCloneError` for what cannot be cloned. */
export function encodeFrame(message: unknown): readonly [header: Buffer, body: Buffer] {
  const body = serialize(message)
  if (body.length > FRAME_BYTES_MAX) throw new FrameTooLarge(body.length)
  const header = Buffer.allocUnsafe(HEADER_BYTES)
  header.writeUInt32LE(body.length)
  return [header, body]
}

export function sendFrame(socket: Socket, [header, body]: ReturnType<typeof encodeFrame>): void {
  socket.cork()
  socket.write(header)
  socket.write(body)
  socket.uncork()
}

/** Puts the messages together again. `accept` throws when the other side sends anything else. */
export class FrameReader {
  readonly #receive: (message: unknown) => void
  readonly #header: Buffer = Buffer.alloc(HEADER_BYTES)
  #body: Buffer | undefined
  /** Bytes of the header, or of the body if there is one, that have come. */
  #filled = 0

  constructor(receive: (message: unknown) => void) {
    this.#receive = receive
  }

  accept(chunk: Buffer): void {
    let at = 0
    while (at < chunk.length) {
      const target = this.#body ?? this.#header
      const copied = chunk.copy(target, this.#filled, at)
      at += copied
      this.#filled += copied
      if (this.#filled === target.length) this.#finish()
    }
  }

  #finish(): void {
    this.#filled = 0
    const body = this.#body
    if (body === undefined) {
      const length = this.#header.readUInt32LE()
      if (length === 0 || length > FRAME_BYTES_MAX) {
        throw new Error(`the length of a message is ${length}`)
      }
      this.#body = Buffer.allocUnsafeSlow(length)
      return
    }
    this.#body = undefined
    this.#receive(deserialize(body))
  }
}
