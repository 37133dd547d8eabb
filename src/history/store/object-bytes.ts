/** What can be done with the pieces of an object, whatever store they come from. */
import { createHash } from 'node:crypto'
import { type FileHandle, open, rm } from 'node:fs/promises'
import { collectBytes } from '../../lib/bytes/collect-bytes.ts'
import { fileError } from './file-errors.ts'
import { StoreError } from './object-store.ts'

/** How a file is read: long enough for disks, short enough for many readers. */
const PIECE_BYTES = 256 * 1024

export interface Digest {
  readonly bytes: number
  /** SHA-256 in hex. */
  readonly sha256: string
}

export async function digestOf(pieces: AsyncIterable<Buffer>): Promise<Digest> {
  const hash = createHash('sha256')
  let bytes = 0
  for await (const piece of pieces) {
    bytes += piece.length
    hash.update(piece)
  }
  return { bytes, sha256: hash.digest('hex') }
}

/** All pieces; fails when they are more than `bytesMax`. `what` is the name of the object. */
export async function collect(
  what: string,
  pieces: AsyncIterable<Buffer>,
  bytesMax: number,
): Promise<Buffer> {
  const bytes = await collectBytes(pieces, bytesMax)
  if (bytes !== 'too-long') return bytes
  throw new StoreError('unavailable', `${what} is longer than ${bytesMax} bytes`)
}

/**
 * Writes a file that must not exist yet, and returns its size. If that fails, removes it. A durable file
 * is on the disk when this resolves.
 */
export async function writeNewFile(
  path: string,
  pieces: AsyncIterable<Buffer>,
  options: { readonly isDurable: boolean } = { isDurable: false },
): Promise<number> {
  const writing = (error: unknown): never => {
    throw fileError('write', path, error)
  }
  const file = await open(path, 'wx').catch(writing)
  try {
    const bytes = await writePieces(file, path, pieces)
    if (options.isDurable) await file.sync().catch(writing)
    // Some file systems over a network report a full disk only here.
    await file.close().catch(writing)
    return bytes
  } catch (error) {
    // The first error counts, not one of the cleanup.
    await file.close().catch(() => {})
    await rm(path, { force: true }).catch(() => {})
    throw error
  }
}

async function writePieces(
  file: FileHandle,
  path: string,
  pieces: AsyncIterable<Buffer>,
): Promise<number> {
  let bytes = 0
  for await (const piece of pieces) {
    await writeAll(file, piece).catch((error) => {
      throw fileError('write', path, error)
    })
    bytes += piece.length
  }
  return bytes
}

/** A file piece by piece. The handle stays open. */
export async function* piecesOf(file: FileHandle): AsyncGenerator<Buffer> {
  for (;;) {
    const piece = Buffer.allocUnsafe(PIECE_BYTES)
    const { bytesRead } = await file.read(piece, 0, PIECE_BYTES)
    if (bytesRead === 0) return
    yield piece.subarray(0, bytesRead)
  }
}

async function writeAll(file: FileHandle, piece: Buffer): Promise<void> {
  for (let at = 0; at < piece.length; ) {
    at += (await file.write(piece, at)).bytesWritten
  }
}
