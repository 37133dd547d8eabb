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

export interface Http1Wire extends Wire {
  /** Whoever reads the body, or will, is told; false when it is too late for that to matter. */
  breakOff(error: ExchangeError): boolean
}

/** A request on an HTTP/1.1 connection. */
export function http1Wire(
  request: IncomingMessage,
  response: ServerResponse,
  peer: Peer,
): Http1Wire {
  const hasBody = announcesBody(request.headers as RequestHeaders)
  let hasUnread = false
  let sentPieces = 0
  const onPiece = (): void => {
    sentPieces += 1
  }
  let failure: ExchangeError | undefined
  return {
    method: request.method ?? '',
    get target() {
      return request.url ?? ''
    },
    get headers() {
      return request.headers as RequestHeaders
    },
    get rawHeaders() {
      return request.rawHeaders
    },
    peer,
    connection: request.socket,
    announcedBytes: hasBody ? lengthOf(request.headers as RequestHeaders) : 0,
    forget: () => {
      request.headers = {}
      request.rawHeaders = []
      request.url = ''
    },
    // One that waits behind another on its connection has no socket yet.
    get sentPieces() {
      return sentPieces
    },
    get unsentBytes() {
      return response.socket === null ? 0 : response.writableLength
    },
    input: request,
    output: response,
    begin: (status, answerHeaders, connection) => {
      hasUnread = !request.complete && hasBody
      if (connection !== 'keep' || hasUnread) answerHeaders['connection'] = 'close'
      response.writeHead(status, answerHeaders)
      // A stream may be long in coming; whoever watches wants to know that it has begun.
      if (answerHeaders['content-length'] === undefined) response.flushHeaders()
    },
    // Piece by piece: Node would take 64 KiB and more before it says that the connection is full,
    // and encrypts all it takes at once.
    write: (chunk, _isLent, onRoom) => {
      writeInPieces(response, asBytes(chunk), { onPiece, done: onRoom })
      return false
    },
    finish: (last) => {
      const bytes = last === undefined ? undefined : asBytes(last)
      const drain = (): void => linger(request, () => response.end())
      if (!hasUnread) endInPieces(response, bytes, onPiece)
      else if (bytes === undefined) drain()
      else writeInPieces(response, bytes, { onPiece, done: drain })
    },
    get failure() {
      return failure
    },
    breakOff: (error) => {
      if (request.complete || response.headersSent) return false
      failure = error
      request.emit(BROKEN, error)
      return true
    },
    isBodyWhole: () => request.complete,
    sendContinue: () => response.writeContinue(),
    cut: () => request.socket.destroy(),
  }
}

/** Headers as Node hands them over with a stream, which itself keeps but scheme and authority. */
export interface SentHeaders {
  readonly headers: IncomingHttpHeaders
  readonly rawHeaders: readonly string[]
}

const NOTHING_SENT: SentHeaders = { headers: {}, rawHeaders: [] }

/** A request on an HTTP/2 stream. */
export function http2Wire(stream: ServerHttp2Stream, sent: SentHeaders, peer: Peer): Wire {
  let kept = sent
  let sentPieces = 0
  const onPiece = (): void => {
    sentPieces += 1
  }
  // A stream the client has reset counts as closed before it is destroyed, and throws when used.
  const isOpen = (): boolean => !stream.destroyed && !stream.closed
  return {
    method: sent.headers[':method'] ?? '',
    get target() {
      return kept.headers[':path'] ?? ''
    },
    get headers() {
      return kept.headers as RequestHeaders
    },
    get rawHeaders() {
      return kept.rawHeaders
    },
    peer,
    connection: stream.session ?? stream,
    announcedBytes: stream.endAfterHeaders ? 0 : lengthOf(sent.headers as RequestHeaders),
    forget: () => {
      kept = NOTHING_SENT
    },
    get sentPieces() {
      return sentPieces
    },
    get unsentBytes() {
      return stream.writableLength
    },
    input: stream,
    output: stream,
    begin: (status, answerHeaders, connection) => {
      if (!isOpen() || stream.headersSent) return
      // As names and values by turns: of an object Node would make another.
      const lines = [':status', String(status)]
      for (const name in answerHeaders) {
        const value = answerHeaders[name] ?? ''
        // HTTP/1.1 refuses a line break in a header by itself; HTTP/2 would send it on.
        validateHeaderValue(name, value)
        lines.push(name, value)
      }
      if (connection === 'close') stream.session?.close()
      stream.respond(lines)
    },
    write: (chunk, isLent, onRoom) => {
      if (isLent || !fits(chunk, STREAM_PIECE_BYTES_MAX)) {
        writeInPieces(stream, chunk, { onPiece, done: onRoom })
        return false
      }
      const hasRoom = stream.write(chunk)
      if (!hasRoom) stream.once('drain', onRoom)
      return hasRoom
    },
    finish: (last) => {
      // An answer may overtake the body it did not need; the client is then told to stop sending.
      // Not at once: a reset overtakes what is still to be sent of the answer.
      if (!stream.endAfterHeaders && !stream.readableEnded) {
        stream.once('finish', () => linger(stream, () => stream.close(constants.NGHTTP2_NO_ERROR)))
      }
      endInPieces(stream, last, onPiece)
    },
    // Node ends the input of a stream that was reset, as if the body had come to its end.
    isBodyWhole: isOpen,
    sendContinue: () => {
      if (isOpen() && !stream.headersSent) stream.additionalHeaders({ ':status': 100 })
    },
    // Not close(): before it resets the stream it ends the answer, which then looks complete.
    cut: () => stream.destroy(new Error('the answer was cut')),
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
