import { validateHeaderValue } from 'node:http'
import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import { constants } from 'node:http2'
import type { Chunk, Peer, RequestHeaders } from '../exchange.ts'
import { endInPieces, fits, STREAM_PIECE_BYTES_MAX, writeInPieces } from '../pieces.ts'
import type { ConnectionAction, Wire } from '../wire.ts'
import { announcedLength, linger, RequestWire } from './request-wire.ts'

/** Headers as Node passes them with a stream. The stream itself retains only scheme and authority. */
export interface SentHeaders {
  readonly headers: IncomingHttpHeaders
  readonly rawHeaders: readonly string[]
}

const NOTHING_SENT: SentHeaders = { headers: {}, rawHeaders: [] }

/** A request on an HTTP/2 stream. */
export class Http2Wire extends RequestWire implements Wire {
  readonly method: string
  readonly connection: object
  readonly announcedBytes: number
  readonly #stream: ServerHttp2Stream
  #sent: SentHeaders

  constructor(stream: ServerHttp2Stream, sent: SentHeaders, peer: Peer) {
    super(peer)
    this.method = sent.headers[':method'] ?? ''
    this.connection = stream.session ?? stream
    this.announcedBytes = stream.endAfterHeaders
      ? 0
      : announcedLength(sent.headers as RequestHeaders)
    this.#stream = stream
    this.#sent = sent
    stream.on('close', () => this.closed())
  }

  get input(): ServerHttp2Stream {
    return this.#stream
  }

  get output(): ServerHttp2Stream {
    return this.#stream
  }

  get target(): string {
    return this.#sent.headers[':path'] ?? ''
  }

  get headers(): RequestHeaders {
    return this.#sent.headers as RequestHeaders
  }

  get rawHeaders(): readonly string[] {
    return this.#sent.rawHeaders
  }

  get unsentBytes(): number {
    return this.#stream.writableLength
  }

  releaseHeaders(): void {
    this.#sent = NOTHING_SENT
  }

  begin(status: number, headers: Record<string, string>, connection: ConnectionAction): void {
    const stream = this.#stream
    if (!this.#isOpen || stream.headersSent) return
    // An array of alternating names and values: Node would copy an object.
    const pairs = [':status', String(status)]
    for (const name in headers) {
      const value = headers[name] ?? ''
      // Node rejects a line break in a header on HTTP/1.1 only; on HTTP/2 it would send it.
      validateHeaderValue(name, value)
      pairs.push(name, value)
    }
    if (connection === 'close') stream.session?.close()
    // An empty body ends with the headers: a separate end would wait for flow control, as any
    // body does.
    if (headers['content-length'] === '0') stream.respond(pairs, { endStream: true })
    else stream.respond(pairs)
  }

  write(chunk: Uint8Array, isLent: boolean, onWritable: () => void): boolean {
    const stream = this.#stream
    if (isLent || !fits(chunk, STREAM_PIECE_BYTES_MAX)) {
      writeInPieces(stream, chunk, { onPiece: this.onPiece, done: onWritable })
      return false
    }
    const isWritable = stream.write(chunk)
    if (!isWritable) stream.once('drain', onWritable)
    return isWritable
  }

  finish(last: Chunk | undefined): void {
    const stream = this.#stream
    // A response that does not need the request body may end before it. The stream is then reset,
    // so that the client stops sending. Not at once: a reset overtakes the unsent part of the
    // response.
    if (!stream.endAfterHeaders && !stream.readableEnded) {
      stream.once('finish', () => linger(stream, () => stream.close(constants.NGHTTP2_NO_ERROR)))
    }
    if (!stream.writableEnded) endInPieces(stream, last, this.onPiece)
  }

  /** Node ends the input of a reset stream as if the body were complete. */
  isBodyWhole(): boolean {
    return this.#isOpen
  }

  sendContinue(): void {
    if (this.#isOpen && !this.#stream.headersSent) {
      this.#stream.additionalHeaders({ ':status': 100 })
    }
  }

  /** Not close(): it ends the response before the reset, so the response would look complete. */
  cut(): void {
    this.#stream.destroy(new Error('the response was aborted'))
  }

  /** A stream that the client has reset is closed before it is destroyed, and throws when used. */
  get #isOpen(): boolean {
    return !this.#stream.destroyed && !this.#stream.closed
  }
}
