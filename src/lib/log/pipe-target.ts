import { writeSync } from 'node:fs'
import { pause } from '../abort.ts'
import { AppendError, type LineTarget } from './line-queue.ts'

/** The interval at which a write to a full pipe is retried. */
const RETRY_MS = 10

/**
 * Writes lines to standard output. Writes are non-blocking and retried while the pipe is full: a
 * blocking write in libuv's thread pool would delay the exit of the process.
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
