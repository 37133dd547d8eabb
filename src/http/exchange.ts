import type { X509Certificate } from 'node:crypto'
import type { Holding } from '../lib/holding.ts'
import type { Pull } from '../lib/pull.ts'

/**
 * All that the rest of the server sees of a connection. A handler gets a Request and gives a
 * Response; it never touches a socket, so it can be tested with plain objects.
 */

/** Who is at the other end of the connection, as far as the connection itself can tell. */
export interface Peer {
  readonly address: string
  /** The caller is a process on this very host: its address is a loopback address. */
  readonly isLoopback: boolean
  /** What the client showed in the handshake; undefined when it showed none, or was not asked. */
  clientCertificate(): PresentedCertificate | undefined
}

/**
 * A certificate whose key the client has proved to hold. Who vouches for it is another question:
 * look at `isVerified` before anything else.
 */
export interface PresentedCertificate {
  readonly leaf: X509Certificate
  /** What came along with it, in the order in which it came. */
  readonly intermediates: readonly X509Certificate[]
  /** One of the authorities of this listener vouched for it at the time of the handshake. */
  readonly isVerified: boolean
}

/** Header names are lower case; a header sent several times is joined with commas. */
export type RequestHeaders = Readonly<Record<string, string | undefined>>

export interface Request {
  readonly method: string
  /** Decoded, without the query. */
  readonly path: string
  readonly query: URLSearchParams
  /**
   * Gone, like the query, once the handler has given its response, and most of them before: see
   * `narrow`. Whoever needs one later copies it, and charges what that takes to `memory`.
   */
  readonly headers: RequestHeaders
  /**
   * Every header as it was sent, name and value by turns: `headers` cannot tell one that was sent
   * twice from one with a comma in it. Without it, none was sent twice.
   */
  readonly rawHeaders?: readonly string[]
  readonly peer: Peer
  /** What is held in memory for it. */
  readonly memory?: Holding
  /**
   * Who asks has been found out: only the headers of `HANDLER_HEADERS` are kept from here on, so that
   * a request that waits does not hold the others.
   */
  narrow?(): void
  /** The most that lies here of the body while nobody asks for it; without it, nothing. */
  readonly unreadBytesMax?: number
  /** Aborts when the client is gone, the request's time is up, or a long request must end. */
  readonly signal: AbortSignal
  /** The whole body; rejects with an ExchangeError if it is too long or never arrives. */
  body(): Promise<Buffer>
}

/** What handlers read. Together they are limited to `HANDLER_HEADER_BYTES_MAX`. */
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

/** Each value of a header by itself, in the order sent. The name is in lower case. */
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
  /** Lower-case names; `content-length` and `date` are added when the answer is sent. */
  readonly headers: Readonly<Record<string, string>>
  /** A stream is written as fast as the client takes it and no faster. */
  readonly body: Chunk | AsyncIterable<Chunk>
  /**
   * Each chunk of the stream is good only until the next is asked for: its memory is used again.
   * A long answer out of fresh memory takes twice as long to make.
   */
  readonly lendsChunks?: boolean
  /**
   * The answer has no natural end (a watch). Once it is settled the request's time limit stops
   * counting, and at shutdown it is ended through its signal instead of being waited for.
   */
  readonly longRunning?: boolean
  /**
   * Of a long answer: resolves when its beginning has been made, and it only waits from then on.
   * Without it, that is so from the start.
   */
  readonly settled?: Promise<void>
  /** The connection is of no further use to this caller: close it after the answer. */
  readonly closeConnection?: boolean
  /** The client leaves too many responses unread: unless a user is known on it, its connection is cut. */
  readonly dropsConnection?: boolean
  /**
   * Called once, when nothing more will be sent: all of it has been, or the client is gone, or it
   * came too late. Must not throw.
   */
  readonly onEnd?: (sent: Sent) => void
}

/** Whether a body comes in pieces. */
export function isStream(body: Response['body']): body is AsyncIterable<Chunk> {
  return typeof body !== 'string' && !(body instanceof Uint8Array)
}

/** Whether it can be taken without promises, which is for answers that thousands get at a time. */
export function isPull(stream: AsyncIterable<Chunk>): stream is AsyncIterable<Chunk> & Pull<Chunk> {
  return 'take' in stream
}

/** Lets a stream that will not be sent know, so that it gives back what it holds. */
export function abandon(body: Response['body']): void {
  // Whatever goes wrong in there concerns nobody any more.
  if (isStream(body))
    body[Symbol.asyncIterator]()
      .return?.()
      .catch(() => {})
}

/** What a client has been sent. Not this answer, if another one had to take its place. */
export interface Sent {
  /** 0 when it left before there was an answer. */
  readonly status: number
  /** Of the body. */
  readonly bytes: number
}

/** Answers a request. A rejection is a bug and is answered with a bare 500. */
export type Handler = (request: Request) => Promise<Response>

/** What can go wrong with a request's body, in words that mean the same on every protocol. */
export class ExchangeError extends Error {
  override readonly name = 'ExchangeError'
  readonly kind: 'too-large' | 'too-much' | 'malformed' | 'timeout' | 'gone' | 'shutdown'

  constructor(kind: ExchangeError['kind'], message: string) {
    super(message)
    this.kind = kind
  }
}
