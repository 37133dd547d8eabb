import { readFile, stat } from 'node:fs/promises'

const WRITABLE_BY_ALL = 0o002

/**
 * The content of a file that an operator named; rejects, naming it, when it is too long or no file. Only
 * a file can be read again and again: of a pipe, nothing is left the second time. One that every user of
 * the host can write is refused as well.
 */
export async function readBounded(path: string, bytesMax: number): Promise<Buffer> {
  const found = await stat(path)
  if (!found.isFile()) throw new Error(`${path} is not a file`)
  if (found.size > bytesMax) throw new Error(`${path} is larger than ${bytesMax} bytes`)
  refuseWritable(path, found.mode)
  return readFile(path)
}

/**
 * The content of a certificate or key. It may also come from a pipe, or from a mount that is slow; one
 * that every user of the host can write is refused here, too.
 */
export async function readPem(path: string): Promise<Buffer> {
  const { mode } = await stat(path)
  refuseWritable(path, mode)
  return readFile(path)
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
