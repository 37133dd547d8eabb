import type { Readable, Writable } from 'node:stream'
import type { Chunk, ExchangeError, Peer, RequestHeaders } from './exchange.ts'

/**
 * One request and its response, independent of the protocol. `protocols/` implements it for
 * HTTP/1.1 and HTTP/2; only there do the two protocols differ.
 */
export interface Wire {
  readonly method: string
  /** Path and query as sent, not decoded. */
  readonly target: string
  readonly headers: RequestHeaders
  /** Alternating names and values, as sent. */
  readonly rawHeaders: readonly string[]
  readonly peer: Peer
  /** The HTTP/2 session, or the HTTP/1.1 socket, that carries the request. */
  readonly connection: object
  readonly input: Readable
  readonly output: Writable
  /** The announced length of the body: infinite when it is not announced, 0 without a body. */
  readonly announcedBytes: number
  /** Frees the target and the headers. They are not read again. */
  releaseHeaders(): void
  /** Bytes of the response that are written to the output and not sent yet. */
  readonly unsentBytes: number
  /**
   * How many pieces of long chunks have been sent. A client that reads slowly makes this number
   * grow; a client that does not read does not.
   */
  readonly sentPieces: number
  /** Sends status and headers. */
  begin(status: number, headers: Record<string, string>, connection: ConnectionAction): void
  /**
   * Sends a chunk. Returns whether the output is writable at once. Otherwise `onWritable` is called
   * when it is, or never if the output closes first. From then on a lent chunk (`isLent`) is not
   * read any more, so its memory can be reused.
   */
  write(chunk: Uint8Array, isLent: boolean, onWritable: () => void): boolean
  /** Sends the last chunk, if any, and ends the response. */
  finish(last: Chunk | undefined): void
  /** Why the rest of the body cannot be read, once known. */
  readonly failure?: ExchangeError | undefined
  /** Called when the rest of the body cannot be read, by the protocol that notices it. */
  onBodyFailed: ((reason: ExchangeError) => void) | undefined
  /** Called once, when the output has closed. */
  onClose: (() => void) | undefined
  /** Returns, once `input` has ended, whether the body is complete; if not, the client disconnected. */
  isBodyWhole(): boolean
  /** Sends `100 Continue` to a client that waits for it (`Expect: 100-continue`). */
  sendContinue(): void
  /** Aborts the response without a proper end, so that the client can see it is incomplete. */
  cut(): void
}

/**
 * What happens to the connection after the response. `drain`: the server is shutting down and the
 * client should not reuse the connection (on HTTP/2 a GOAWAY has already said so). `close`: the
 * connection is closed after this response.
 */
export type ConnectionAction = 'keep' | 'drain' | 'close'
