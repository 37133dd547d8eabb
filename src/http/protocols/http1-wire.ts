import type { IncomingMessage, ServerResponse } from 'node:http'
import { incompleteBody } from '../body.ts'
import type { Chunk, ExchangeError, Peer, RequestHeaders } from '../exchange.ts'
import { endInPieces, writeInPieces } from '../pieces.ts'
import type { ConnectionAction, Wire } from '../wire.ts'
import { announcedLength, linger, RequestWire } from './request-wire.ts'

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
    this.announcedBytes = this.#hasBody ? announcedLength(headers) : 0
    this.input = request
    this.output = response
    response.on('close', () => this.closed())
    // The response to a pipelined request is not closed with the connection.
    if (this.#hasBody) request.on('close', () => this.#onClose())
  }

  #onClose(): void {
    if (this.input.complete) return
    this.#failure ??= incompleteBody()
    this.onBodyFailed?.(this.#failure)
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
    // A pipelined response has no socket until the responses before it are sent.
    return this.output.socket === null ? 0 : this.output.writableLength
  }

  releaseHeaders(): void {
    this.input.headers = {}
    this.input.rawHeaders = []
    this.input.url = ''
  }

  begin(status: number, headers: Record<string, string>, connection: ConnectionAction): void {
    this.#hasUnread = !this.input.complete && this.#hasBody
    if (connection !== 'keep' || this.#hasUnread) headers['connection'] = 'close'
    this.output.writeHead(status, headers)
    // The first chunk of a stream may come late; a watching client needs the headers at once.
    if (headers['content-length'] === undefined) this.output.flushHeaders()
  }

  /**
   * Writes in pieces: Node would accept 64 KiB and more before it reports backpressure, and it
   * encrypts all that it accepts at once.
   */
  write(chunk: Uint8Array, _isLent: boolean, onWritable: () => void): boolean {
    writeInPieces(this.output, chunk, { onPiece: this.onPiece, done: onWritable })
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

  /**
   * Fails the body for its reader, now or when it is read. Returns false when that is too late: the
   * body is complete, or the response has begun.
   */
  failBody(error: ExchangeError): boolean {
    if (this.input.complete || this.output.headersSent) return false
    this.#failure = error
    this.onBodyFailed?.(error)
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

/**
 * Node sends the headers together with the first chunk, in the encoding of that chunk. With a
 * string it would encode the bytes of the header values as UTF-8 a second time.
 */
function asBytes(chunk: Chunk): Uint8Array {
  return typeof chunk === 'string' ? Buffer.from(chunk) : chunk
}

function announcesBody(headers: RequestHeaders): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}
