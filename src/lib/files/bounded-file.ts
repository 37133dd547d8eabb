import { constants } from 'node:fs'
import { type FileHandle, open, stat } from 'node:fs/promises'

const WRITABLE_BY_ALL = 0o002
const PIECE_BYTES = 64 * 1024
/** Four times the size of a bundle of all authorities that browsers trust. */
export const pemBytesMax: number = 1024 * 1024

/**
 * Reads a file that an operator configured. Rejects, with the path in the message, when the file is
 * too long, is not a regular file, or is writable by every user of the host. A pipe is rejected because
 * such files are read again while the server runs, and a pipe can be read only once.
 */
export async function readBounded(path: string, bytesMax: number): Promise<Buffer> {
  // Without O_NONBLOCK, opening a pipe would wait for a writer.
  await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  const found = await file.stat()
  if (!found.isFile()) throw new Error(`${path} is not a file`)
  refuseWritable(path, found.mode)
  return await readAtMost(file, path, bytesMax)
}

/**
 * Reads a certificate or key, which may also come from a pipe or a slow mount. Rejects a file that
 * every user of the host can write.
 */
export async function readPem(path: string): Promise<Buffer> {
  await using file = await open(path)
  refuseWritable(path, (await file.stat()).mode)
  return await readAtMost(file, path, pemBytesMax)
}

/**
 * Whether all of these are regular files, which can be read again. A pipe can be read only once,
 * and opening it again would block a thread of libuv's small pool forever.
 */
export async function areFiles(paths: readonly string[]): Promise<boolean> {
  const found = await Promise.all(paths.map((path) => stat(path)))
  return found.every((stats) => stats.isFile())
}

/** Does not rely on the size in `stat`: a file may grow, and a pipe has no size. */
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
 * Throws for a file that every user of the host can write. These files configure authentication and
 * authorization, so a user that can write one of them has all permissions.
 */
function refuseWritable(path: string, mode: number): void {
  if ((mode & WRITABLE_BY_ALL) === 0) return
  throw new Error(
    `${path} can be written by every user of this host (mode ${modeText(mode)}): chmod o-w it`,
  )
}

/** A mode in the notation of chmod: `0640`. */
export function modeText(mode: number): string {
  return (mode & 0o7777).toString(8).padStart(4, '0')
}
