import type { Writable } from 'node:stream'
import type { Chunk } from './exchange.ts'

/**
 * How much is handed to a connection at once. TLS encrypts a write as a whole, and the memory for
 * the largest one stays with the connection until it closes: 1 MiB for a write of 1 MiB. So a body is
 * sent in pieces that fit into one TLS record (16 KiB) with the headers of the response or the framing
 * of HTTP/2: for such writes nothing is allocated apart.
 */
export const PIECE_BYTES_MAX: number = 15 * 1024
/**
 * Of a response that is sent while it is made. Each write takes a turn of the event loop: pieces of
 * 16 KiB make a list of several megabytes cost half as much again, these cost nothing that can be
 * measured, and a connection keeps 80 KiB for them.
 */
export const STREAM_PIECE_BYTES_MAX: number = 63 * 1024

/** Whether it can be written as it is. A character takes up to three bytes. */
export function fits(chunk: Chunk, bytesMax: number): boolean {
  return chunk.length <= (typeof chunk === 'string' ? bytesMax / 3 : bytesMax)
}

/** Hears of each piece but the last that it has left. */
export type OnPiece = () => void

export interface Sending {
  readonly onPiece?: OnPiece | undefined
  readonly done: () => void
}

/** Writes part of a stream, each piece after the one before has left; `done` follows the last. */
export function writeInPieces(output: Writable, chunk: Chunk, { onPiece, done }: Sending): void {
  if (fits(chunk, STREAM_PIECE_BYTES_MAX)) output.write(chunk, done)
  else send(output, chunk, { bytesMax: STREAM_PIECE_BYTES_MAX, onPiece, done, isEnd: false })
}

/** Writes a whole body, or the last of one, and ends the output. */
export function endInPieces(output: Writable, last: Chunk | undefined, onPiece?: OnPiece): void {
  if (last === undefined || fits(last, PIECE_BYTES_MAX)) output.end(last)
  else send(output, last, { bytesMax: PIECE_BYTES_MAX, onPiece, done: () => {}, isEnd: true })
}

interface SendingAll extends Sending {
  readonly bytesMax: number
  readonly isEnd: boolean
}

function send(
  output: Writable,
  chunk: Chunk,
  { bytesMax, onPiece, done, isEnd }: SendingAll,
): void {
  const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk
  let at = 0
  const next = (): void => {
    if (output.destroyed) {
      done()
      return
    }
    if (at > 0) onPiece?.()
    const piece = bytes.subarray(at, at + bytesMax)
    at += bytesMax
    if (at < bytes.length) output.write(piece, next)
    else if (isEnd) output.end(piece, done)
    else output.write(piece, done)
  }
  next()
}
