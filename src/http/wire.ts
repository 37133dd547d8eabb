import type { IncomingMessage, ServerResponse } from 'node:http'
import { validateHeaderValue } from 'node:http'
import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import { constants } from 'node:http2'
import type { Readable, Writable } from 'node:stream'
import type { Chunk, ExchangeError, Peer, RequestHeaders } from './exchange.ts'
import { LINGER_BYTES_MAX, LINGER_MS } from './limits.ts'
import { endInPieces, fits, STREAM_PIECE_BYTES_MAX, writeInPieces } from './pieces.ts'

/** One request as its protocol offers it: the only place where the two protocols differ. */
export interface Wire {
  readonly method: string
  /** As sent: not decoded, with its query. */
  readonly target: string
  readonly headers: RequestHeaders
  /** Name and value by turns, as sent. */
  readonly rawHeaders: readonly string[]
  readonly peer: Peer
  /** What it came on: an HTTP/2 session, or the socket of HTTP/1.1. */
  readonly connection: object
  readonly input: Readable
  readonly output: Writable
  /** How long the body is said to be; infinite when that is not said, 0 when there is none. */
  readonly announcedBytes: number
  /** Nobody will ask for target and headers again. */
  forget(): void
  /** Handed over for the response and not sent yet, in bytes. */
  readonly unsentBytes: number
  /** Pieces of longer chunks that have been sent: whether it changes tells a slow client from none. */
  readonly sentPieces: number
  /** Sends status and headers. */
  begin(status: number, headers: Record<string, string>, connection: ConnectionFate): void
  /**
   * Sends a piece. True when there is room for more at once; else `onRoom` is called when there is,
   * which may be never if the output closes before. A piece that is `lent` is not looked at any
   * more from then on.
   */
  write(chunk: Chunk, isLent: boolean, onRoom: () => void): boolean
  /** Sends the last piece, if any, and ends the answer. */
  finish(last: Chunk | undefined): void
  /** Why the rest of the body will never come, once that is known; `input` then emits BROKEN. */
  readonly failure?: ExchangeError | undefined
  /** Once `input` has ended: that was the end of the body, and not of the client. */
  isBodyWhole(): boolean
  /** Tells a client that asked first (`Expect: 100-continue`) that its body is wanted. */
  sendContinue(): void
  /** Ends the request without an orderly end of the answer: the client must see that it was cut. */
  cut(): void
}

/**
 * What is to become of the connection after this answer. `leave`: the server is going away and
 * the client should not come back on it; HTTP/2 has already been told by GOAWAY. `close`: this
 * client has no further business here.
 */
export type ConnectionFate = 'keep' | 'leave' | 'close'

/** What `input` emits when it turns out halfway that nobody can read it. */
export const BROKEN = 'broken'

/**
 * What the requests of both protocols have in common. A class and no literal: getters of a literal make
 * each object a slow one, at 5 µs a request.
 */
abstract class RequestWire {
  readonly peer: Peer
  #sentPieces = 0
  protected readonly onPiece = (): void => {
    this.#sentPieces += 1
  }

  protected constructor(peer: Peer) {
    this.peer = peer
  }

  get sentPieces(): number {
    return this.#sentPieces
  }
}

/** A request on an HTTP/1.1 connection. */
export class Http1Wire extends RequestWire implements Wire {
  readonly method: string
  readonly connection: object
  readonly announcedBytes: number
  readonly input: IncomingMessage
  readonly output: ServerResponse
  readonly #hasBody: boolean
  #hasUnread = false
  #failure: ExchangeError | undefined

  constructor(request: IncomingMessage, response: ServerResponse, peer: Peer) {
    super(peer)
    const headers = request.headers as RequestHeaders
    this.method = request.method ?? ''
    this.connection = request.socket
    this.#hasBody = announcesBody(headers)
    this.announcedBytes = this.#hasBody ? lengthOf(headers) : 0
    this.input = request
    this.output = response
  }

  get target(): string {
    return this.input.url ?? ''
  }

  get headers(): RequestHeaders {
    return this.input.headers as RequestHeaders
  }

  get rawHeaders(): readonly string[] {
    return this.input.rawHeaders
  }

  get failure(): ExchangeError | undefined {
    return this.#failure
  }

  get unsentBytes(): number {
    // One that waits behind another on its connection has no socket yet.
    return this.output.socket === null ? 0 : this.output.writableLength
  }

  forget(): void {
    this.input.headers = {}
    this.input.rawHeaders = []
    this.input.url = ''
  }

  begin(status: number, headers: Record<string, string>, connection: ConnectionFate): void {
    this.#hasUnread = !this.input.complete && this.#hasBody
    if (connection !== 'keep' || this.#hasUnread) headers['connection'] = 'close'
    this.output.writeHead(status, headers)
    // A stream may be long in coming; whoever watches wants to know that it has begun.
    if (headers['content-length'] === undefined) this.output.flushHeaders()
  }

  /**
   * Piece by piece: Node would take 64 KiB and more before it says that the connection is full, and
   * encrypts all it takes at once.
   */
  write(chunk: Chunk, _isLent: boolean, onRoom: () => void): boolean {
    writeInPieces(this.output, asBytes(chunk), { onPiece: this.onPiece, done: onRoom })
    return false
  }

  finish(last: Chunk | undefined): void {
    const { input, output, onPiece } = this
    const bytes = last === undefined ? undefined : asBytes(last)
    const drain = (): void => linger(input, () => output.end())
    if (!this.#hasUnread) endInPieces(output, bytes, onPiece)
    else if (bytes === undefined) drain()
    else writeInPieces(output, bytes, { onPiece, done: drain })
  }

  /** Whoever reads the body, or will, is told; false when it is too late for that to matter. */
  breakOff(error: ExchangeError): boolean {
    if (this.input.complete || this.output.headersSent) return false
    this.#failure = error
    this.input.emit(BROKEN, error)
    return true
  }

  isBodyWhole(): boolean {
    return this.input.complete
  }

  sendContinue(): void {
    this.output.writeContinue()
  }

  cut(): void {
    this.input.socket.destroy()
  }
}

/** Headers as Node hands them over with a stream, which itself keeps but scheme and authority. */
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
    this.announcedBytes = stream.endAfterHeaders ? 0 : lengthOf(sent.headers as RequestHeaders)
    this.#stream = stream
    this.#sent = sent
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

  forget(): void {
    this.#sent = NOTHING_SENT
  }

  begin(status: number, headers: Record<string, string>, connection: ConnectionFate): void {
    const stream = this.#stream
    if (!this.#isOpen || stream.headersSent) return
    // As names and values by turns: of an object Node would make another.
    const lines = [':status', String(status)]
    for (const name in headers) {
      const value = headers[name] ?? ''
      // HTTP/1.1 refuses a line break in a header by itself; HTTP/2 would send it on.
      validateHeaderValue(name, value)
      lines.push(name, value)
    }
    if (connection === 'close') stream.session?.close()
    // An empty body is one with the headers: by itself it would wait for room, as any body does.
    if (headers['content-length'] === '0') stream.respond(lines, { endStream: true })
    else stream.respond(lines)
  }

  write(chunk: Chunk, isLent: boolean, onRoom: () => void): boolean {
    const stream = this.#stream
    if (isLent || !fits(chunk, STREAM_PIECE_BYTES_MAX)) {
      writeInPieces(stream, chunk, { onPiece: this.onPiece, done: onRoom })
      return false
    }
    const hasRoom = stream.write(chunk)
    if (!hasRoom) stream.once('drain', onRoom)
    return hasRoom
  }

  finish(last: Chunk | undefined): void {
    const stream = this.#stream
    // An answer may overtake the body it did not need; the client is then told to stop sending.
    // Not at once: a reset overtakes what is still to be sent of the answer.
    if (!stream.endAfterHeaders && !stream.readableEnded) {
      stream.once('finish', () => linger(stream, () => stream.close(constants.NGHTTP2_NO_ERROR)))
    }
    if (!stream.writableEnded) endInPieces(stream, last, this.onPiece)
  }

  /** Node ends the input of a stream that was reset, as if the body had come to its end. */
  isBodyWhole(): boolean {
    return this.#isOpen
  }

  sendContinue(): void {
    if (this.#isOpen && !this.#stream.headersSent) {
      this.#stream.additionalHeaders({ ':status': 100 })
    }
  }

  /** Not close(): before it resets the stream it ends the answer, which then looks complete. */
  cut(): void {
    this.#stream.destroy(new Error('the answer was cut'))
  }

  /** A stream the client has reset counts as closed before it is destroyed, and throws when used. */
  get #isOpen(): boolean {
    return !this.#stream.destroyed && !this.#stream.closed
  }
}

/**
 * Headers leave together with the first piece, in its encoding: behind a string, Node would encode
 * the bytes of their values as UTF-8 once more.
 */
function asBytes(chunk: Chunk): Uint8Array {
  return typeof chunk === 'string' ? Buffer.from(chunk) : chunk
}

function lengthOf(headers: RequestHeaders): number {
  return Number(headers['content-length'] ?? Number.POSITIVE_INFINITY)
}

function announcesBody(headers: RequestHeaders): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

/**
 * Closing while the client still sends would reset the connection and could take the answer
 * with it. So a little more is read and thrown away before the answer is declared finished.
 */
function linger(input: Readable, done: () => void): void {
  let dropped = 0
  const stop = (): void => {
    clearTimeout(timer)
    input.off('data', onData).off('end', stop).off('close', stop)
    done()
  }
  const onData = (chunk: Buffer): void => {
    dropped += chunk.length
    if (dropped > LINGER_BYTES_MAX) stop()
  }
  const timer = setTimeout(stop, LINGER_MS)
  input.on('data', onData).on('end', stop).on('close', stop)
  input.resume()
}
