import type { X509Certificate } from 'node:crypto'

/**
 * All that the rest of the server sees of a connection. A handler gets a Request and gives a
 * Response; it never touches a socket, so it can be tested with plain objects.
 */

/** Who is at the other end of the connection, as far as the connection itself can tell. */
export interface Peer {
  readonly address: string
  /** The caller is a process on this very host: its address is a loopback address. */
  readonly isLoopback: boolean
  /** The client's certificate, once verified on this connection; undefined in every other case. */
  clientCertificate(): X509Certificate | undefined
}

/** Header names are lower case; a header sent several times is joined with commas. */
export type RequestHeaders = Readonly<Record<string, string | undefined>>

export interface Request {
  readonly method: string
  /** Decoded, without the query. */
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: RequestHeaders
  readonly peer: Peer
  /** Aborts when the client is gone, the request's time is up, or a long request must end. */
  readonly signal: AbortSignal
  /** The whole body; rejects with an ExchangeError if it is too long or never arrives. */
  body(): Promise<Buffer>
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
   * The answer has no natural end (a watch). The request's time limit stops counting, and at
   * shutdown it is ended through its signal instead of being waited for.
   */
  readonly longRunning?: boolean
  /** The connection is of no further use to this caller: close it after the answer. */
  readonly closeConnection?: boolean
}

/** Answers a request. A rejection is a bug and is answered with a bare 500. */
export type Handler = (request: Request) => Promise<Response>

/** What can go wrong with a request's body, in words that mean the same on every protocol. */
export class ExchangeError extends Error {
  override readonly name = 'ExchangeError'
  readonly kind: 'too-large' | 'timeout' | 'gone' | 'shutdown'

  constructor(kind: ExchangeError['kind'], message: string) {
    super(message)
    this.kind = kind
  }
}
