import { readFile, stat } from 'node:fs/promises'

/**
 * The content of a file that an operator named; rejects, naming it, when it is too long or no file. Only
 * a file can be read again and again: of a pipe, nothing is left the second time.
 */
export async function readBounded(path: string, bytesMax: number): Promise<Buffer> {
  const found = await stat(path)
  if (!found.isFile()) throw new Error(`${path} is not a file`)
  if (found.size > bytesMax) throw new Error(`${path} is larger than ${bytesMax} bytes`)
  return readFile(path)
}
