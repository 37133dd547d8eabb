import type { Readable } from 'node:stream'
import type { ExchangeError, Peer, RequestHeaders } from '../exchange.ts'
import { LINGER_BYTES_MAX, LINGER_MS } from '../limits.ts'

/**
 * What both protocols have in common. A class, not an object literal: a literal with getters makes
 * each object a slow one, which costs 5 µs per request.
 */
export abstract class RequestWire {
  readonly peer: Peer
  onBodyFailed: ((reason: ExchangeError) => void) | undefined
  onClose: (() => void) | undefined
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

  /**
   * Node may keep a closed stream for seconds, until the next full collection; what the request
   * held must not stay with it.
   */
  protected closed(): void {
    const { onClose } = this
    this.onClose = undefined
    this.onBodyFailed = undefined
    onClose?.()
  }
}

/** Infinite when the length is not announced. */
export function announcedLength(headers: RequestHeaders): number {
  return Number(headers['content-length'] ?? Number.POSITIVE_INFINITY)
}

/**
 * Reads and discards a little more of the request body before `done` ends the response. To close
 * while the client still sends would reset the connection, and the client could lose the response.
 */
export function linger(input: Readable, done: () => void): void {
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
