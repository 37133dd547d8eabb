import type { X509Certificate } from 'node:crypto'
import type { Holding } from '../lib/client-memory/holding.ts'
import type { Pull } from '../lib/pull.ts'
import type { Lane } from '../lib/run-queue.ts'
import type { Span } from '../lib/tracing/span.ts'

/**
 * The interface between HTTP and the rest of the server. A handler takes a Request and returns a
 * Response; it never uses a socket, so it can be tested with plain objects.
 */

/** The client of a connection, as far as the connection itself identifies it. */
export interface Peer {
  readonly address: string
  /** The client is a process on this host: its address is a loopback address. */
  readonly isLoopback: boolean
  /** Undefined when the client presented no certificate, or none was requested. */
  clientCertificate(): PresentedCertificate | undefined
}

/**
 * A certificate from the TLS handshake. The client has proved that it holds the key. That says
 * nothing about who issued the certificate: check `isVerified` first.
 */
export interface PresentedCertificate {
  readonly leaf: X509Certificate
  /** The other certificates that the client sent, in their order. */
  readonly intermediates: readonly X509Certificate[]
  /** The handshake verified it against the authorities of this listener. */
  readonly isVerified: boolean
}

/** Header names are in lower case. A header that was sent several times is joined with commas. */
export type RequestHeaders = Readonly<Record<string, string | undefined>>

export interface Request {
  readonly method: string
  /** Decoded, without the query. */
  readonly path: string
  readonly query: URLSearchParams
  /**
   * Freed, like the query, once the handler has returned its response; most of them earlier, see
   * `narrow`. Code that needs a header later copies it and charges the copy to `memory`.
   */
  readonly headers: RequestHeaders
  /**
   * Alternating names and values, as sent: in `headers`, a header that was sent twice looks like
   * one with a comma in its value. Undefined: no header was sent twice.
   */
  readonly rawHeaders?: readonly string[]
  readonly peer: Peer
  /** The memory charged for this request. */
  readonly memory?: Holding
  /**
   * Called when the user is authorised. Frees all headers except `HANDLER_HEADERS`, so that a
   * queued request does not hold them.
   */
  narrow?(): void
  /**
   * Aborts when the client disconnects, when the time limit of the request is reached, or when a
   * long-running request must end for shutdown.
   */
  readonly signal: AbortSignal
  /** Set once the user is known: long work for the request takes turns in it. */
  lane?: Lane | undefined
  /** Set once the user is known, if the request is recorded; what handlers do is a part of it. */
  span?: Span | undefined
  /**
   * The whole body. Rejects with an ExchangeError if it is too large or never complete. `bytesMax`
   * of the first call is a limit below that of all bodies.
   */
  body(bytesMax?: number): Promise<Buffer>
  /**
   * Reads the body. Resolves, and never rejects, when it is complete, or with the error that `body`
   * rejects with. Undefined when there is no body to wait for.
   */
  received?(bytesMax?: number): Promise<unknown> | undefined
}

/** The headers that handlers read, together at most `HANDLER_HEADER_BYTES_MAX`. */
export const HANDLER_HEADERS: readonly string[] = [
  'accept',
  'accept-encoding',
  'audit-id',
  'content-encoding',
  'content-length',
  'content-type',
  'expect',
  'if-none-match',
  'user-agent',
]

/** The separate values of a header, in the order sent. The name must be in lower case. */
export function headerValues(
  { headers, rawHeaders }: Pick<Request, 'headers' | 'rawHeaders'>,
  name: string,
): readonly string[] {
  const joined = Object.hasOwn(headers, name) ? headers[name] : undefined
  if (joined === undefined) return []
  if (rawHeaders === undefined) return [joined]
  const values: string[] = []
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const sent = rawHeaders[at]
    if (sent?.length === name.length && sent.toLowerCase() === name) {
      values.push(rawHeaders[at + 1] ?? '')
    }
  }
  return values
}

export type Chunk = string | Uint8Array

export interface Response {
  readonly status: number
  /** Names in lower case. `content-length` and `date` are added when the response is sent. */
  readonly headers: Readonly<Record<string, string>>
  /** A stream is sent with backpressure, no faster than the client reads. */
  readonly body: Chunk | AsyncIterable<Chunk>
  /**
   * Each chunk of the stream is valid only until the next one is taken: its buffer is reused.
   * A long response takes twice as long to encode into newly allocated buffers.
   */
  readonly lendsChunks?: boolean
  /**
   * The response has no natural end (a watch). Once it is settled, the time limit of the request no
   * longer applies. At shutdown it is ended through its signal instead of being waited for.
   */
  readonly longRunning?: boolean
  /**
   * Resolves when the initial part of a long-running response has been produced, and it only waits
   * for changes from then on. Undefined: there is no initial part.
   */
  readonly settled?: Promise<void>
  /** Whether the initial part is a list, with a bookmark at its end. */
  readonly isWatchList?: boolean
  /** Close the connection after the response, because the client has no further use for it. */
  readonly closeConnection?: boolean
  /**
   * Called once, when a streamed response only waits for its client: all of it has been produced, or
   * the client has made it wait for a second in total. Must not throw.
   */
  readonly onIdle?: () => void
  /**
   * Called once, when nothing more will be sent: the response is complete, or the client has
   * disconnected, or the response came after the time limit. Must not throw.
   */
  readonly onEnd?: (sent: Sent) => void
}

/** Whether a body is streamed. */
export function isStream(body: Response['body']): body is AsyncIterable<Chunk> {
  return typeof body !== 'string' && !(body instanceof Uint8Array)
}

/** Whether a stream can be read without promises, for responses sent to thousands at a time. */
export function isPull(stream: AsyncIterable<Chunk>): stream is AsyncIterable<Chunk> & Pull<Chunk> {
  return 'take' in stream
}

/** Cancels a stream that will not be sent, so that it releases its memory. */
export function abandon(body: Response['body']): void {
  // The response is discarded, so an error in its stream has no consequence.
  if (isStream(body))
    body[Symbol.asyncIterator]()
      .return?.()
      .catch(() => {})
}

/** What a client was sent: possibly another response that replaced the one of the handler. */
export interface Sent {
  /** 0 when the client disconnected before there was a response. */
  readonly status: number
  /** Length of the body. */
  readonly bytes: number
}

/** Produces the response to a request. A rejection is a bug; the client gets a plain 500. */
export type Handler = (request: Request) => Promise<Response>

/** Why a request or its body was aborted, the same for every protocol. */
export class ExchangeError extends Error {
  override readonly name = 'ExchangeError'
  readonly kind:
    | 'too-large'
    | 'too-much'
    | 'too-slow'
    | 'malformed'
    | 'timeout'
    | 'gone'
    | 'shutdown'

  constructor(kind: ExchangeError['kind'], message: string) {
    super(message)
    this.kind = kind
  }
}
