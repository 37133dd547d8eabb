import { writeSync } from 'node:fs'
import { pause } from './abort.ts'
import { AppendError, type LineTarget } from './line-queue.ts'

/** How soon to look whether a full pipe has room again. */
const RETRY_MS = 10

/**
 * Standard output, as a place for lines. Writes return at once when the pipe is full, and are tried
 * again: one that waits in libuv's thread pool would hold up the end of the process.
 */
export class PipeTarget implements LineTarget {
  readonly #fd: number

  /** Node puts a pipe into non-blocking mode when it opens its own stream on it. */
  constructor(stream: NodeJS.WriteStream & { readonly fd: number }) {
    this.#fd = stream.fd
    // Without a listener an error on the stream, which we never cause, ends the process.
    stream.on('error', () => {})
  }

  async append(bytes: Buffer): Promise<void> {
    let written = 0
    while (written < bytes.length) {
      try {
        written += writeSync(this.#fd, bytes, written)
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN')
          throw new AppendError(written, error)
        await pause(RETRY_MS)
      }
    }
  }

  async close(): Promise<void> {}
}
