import { constants } from 'node:fs'
import { type FileHandle, open, stat } from 'node:fs/promises'

const WRITABLE_BY_ALL = 0o002
const PIECE_BYTES = 64 * 1024
/** A bundle of every authority that browsers trust is a quarter of it. */
export const pemBytesMax: number = 1024 * 1024

/**
 * The content of a file that an operator named; rejects, naming it, when it is too long or no file. Only
 * a file can be read again and again: of a pipe, nothing is left the second time. One that every user of
 * the host can write is refused as well.
 */
export async function readBounded(path: string, bytesMax: number): Promise<Buffer> {
  // To open a pipe would wait for a writer otherwise.
  await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  const found = await file.stat()
  if (!found.isFile()) throw new Error(`${path} is not a file`)
  refuseWritable(path, found.mode)
  return await readAtMost(file, path, bytesMax)
}

/**
 * The content of a certificate or key. It may also come from a pipe, or from a mount that is slow; one
 * that every user of the host can write is refused here, too.
 */
export async function readPem(path: string): Promise<Buffer> {
  await using file = await open(path)
  refuseWritable(path, (await file.stat()).mode)
  return await readAtMost(file, path, pemBytesMax)
}

/**
 * Whether all of these can be read again. What came out of a pipe is there once, and to open the pipe
 * again would take one of the few threads for good.
 */
export async function areFiles(paths: readonly string[]): Promise<boolean> {
  const found = await Promise.all(paths.map((path) => stat(path)))
  return found.every((one) => one.isFile())
}

/** Whatever its size is said to be: it may grow, and a pipe has none. */
async function readAtMost(file: FileHandle, path: string, bytesMax: number): Promise<Buffer> {
  const pieces: Buffer[] = []
  for (let total = 0; total <= bytesMax; ) {
    const piece = Buffer.alloc(Math.min(PIECE_BYTES, bytesMax + 1 - total))
    const { bytesRead } = await file.read(piece)
    if (bytesRead === 0) return Buffer.concat(pieces)
    pieces.push(piece.subarray(0, bytesRead))
    total += bytesRead
  }
  throw new Error(`${path} is larger than ${bytesMax} bytes`)
}

/**
 * Throws for a file that every user of the host can write. Such files say who may come in and what they
 * may do: whoever can write one of them can do everything.
 */
function refuseWritable(path: string, mode: number): void {
  if ((mode & WRITABLE_BY_ALL) === 0) return
  throw new Error(
    `${path} can be written by every user of this host (mode ${modeText(mode)}): chmod o-w it`,
  )
}

/** A mode as chmod takes it: `0640`. */
export function modeText(mode: number): string {
  return (mode & 0o7777).toString(8).padStart(4, '0')
}
