import type { Writable } from 'node:stream'
import type { Chunk } from './exchange.ts'

/**
 * The largest single write of a body. TLS encrypts a write as a whole, and a connection retains the
 * buffer of its largest write until it closes: 1 MiB for a write of 1 MiB. So a body is sent in
 * pieces that fit into one TLS record (16 KiB), together with the response headers or the HTTP/2
 * framing: such writes need no additional buffer.
 */
export const PIECE_BYTES_MAX: number = 15 * 1024
/**
 * The same for a streamed response. Each write takes an iteration of the event loop: with pieces of
 * 16 KiB a list of several megabytes takes half as long again. Pieces of this size have no
 * measurable cost, and a connection retains 80 KiB for them.
 */
export const STREAM_PIECE_BYTES_MAX: number = 63 * 1024

/** Whether a chunk can be written as one piece. A character takes up to three bytes. */
export function fits(chunk: Chunk, bytesMax: number): boolean {
  return chunk.length <= (typeof chunk === 'string' ? bytesMax / 3 : bytesMax)
}

/** Called when a piece has been sent, except for the last piece. */
export type OnPiece = () => void

export interface Sending {
  readonly onPiece?: OnPiece | undefined
  readonly done: () => void
}

/**
 * Writes a chunk of a stream. Each piece is written after the previous one has been sent; `done` is
 * called after the last.
 */
export function writeInPieces(output: Writable, chunk: Chunk, { onPiece, done }: Sending): void {
  if (fits(chunk, STREAM_PIECE_BYTES_MAX)) output.write(chunk, done)
  else send(output, chunk, { bytesMax: STREAM_PIECE_BYTES_MAX, onPiece, done, isEnd: false })
}

/** Writes a whole body, or its last chunk, and ends the output. */
export function endInPieces(output: Writable, last: Chunk | undefined, onPiece?: OnPiece): void {
  if (last === undefined || fits(last, PIECE_BYTES_MAX)) output.end(last)
  else send(output, last, { bytesMax: PIECE_BYTES_MAX, onPiece, done: () => {}, isEnd: true })
}

interface PieceOptions extends Sending {
  readonly bytesMax: number
  readonly isEnd: boolean
}

function send(
  output: Writable,
  chunk: Chunk,
  { bytesMax, onPiece, done, isEnd }: PieceOptions,
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
