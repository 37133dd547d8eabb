import type { Pull } from '../lib/pull.ts'
import { type Chunk, isPull } from './exchange.ts'
import type { Wire } from './wire.ts'

/**
 * Sends a streamed response body with backpressure. Never writes to an output that is not
 * writable: a client that does not read costs one chunk, not a queue.
 */
export class BodyWriter {
  readonly #wire: Wire
  readonly #onEnded: (failure?: { readonly thrown: unknown }) => void
  #onWritable: (() => void) | undefined
  #bytes = 0
  #waitedMs = 0
  /** Time at which the output stopped being writable. */
  #waitsSince: number | undefined
  #pull: Pull<Chunk> | undefined

  /** `onEnded` is called when the source has ended, with the error if the source threw one. */
  constructor(wire: Wire, onEnded: (failure?: { readonly thrown: unknown }) => void) {
    this.#wire = wire
    this.#onEnded = onEnded
  }

  /** Bytes written so far. */
  get bytes(): number {
    return this.#bytes
  }

  /** Total time during which the output was not writable. */
  waitedMs(now: number): number {
    return this.#waitedMs + (this.#waitsSince === undefined ? 0 : now - this.#waitsSince)
  }

  /** Bytes that the source retains for this client only. */
  get heldBytes(): number {
    return this.#pull?.heldBytes ?? 0
  }

  send(chunks: AsyncIterable<Chunk>, isLent: boolean): void {
    if (isPull(chunks)) this.#sendPull(chunks)
    else void this.#sendIterable(chunks, isLent)
  }

  /** The output is closed. Wakes a writer that waits for it, so that it stops. */
  close(): void {
    this.#wake()
  }

  async #sendIterable(chunks: AsyncIterable<Chunk>, isLent: boolean): Promise<void> {
    try {
      for await (const chunk of chunks) {
        if (this.#isOutputClosed()) return
        if (this.#write(chunk, isLent)) continue
        await new Promise<void>((resolve) => {
          this.#onWritable = resolve
        })
      }
      this.#onEnded()
    } catch (thrown) {
      this.#onEnded({ thrown })
    }
  }

  /** Sends while the source has chunks and the output is writable, and again when either wakes it. */
  #sendPull(pull: Pull<Chunk>): void {
    this.#pull = pull
    const sendMore = (): void => {
      try {
        for (let chunk = pull.take(sendMore); chunk !== undefined; chunk = pull.take(sendMore)) {
          if (this.#isOutputClosed()) pull.stop()
          else if (!this.#write(chunk, false)) {
            this.#onWritable = sendMore
            return
          }
        }
        if (pull.isOver && !this.#isOutputClosed()) this.#onEnded()
      } catch (thrown) {
        pull.stop()
        this.#onEnded({ thrown })
      }
    }
    sendMore()
  }

  #isOutputClosed(): boolean {
    const { output } = this.#wire
    return output.destroyed || output.writableEnded
  }

  /** Returns whether the output is writable; if not, `#onWritable` is called when it is or closes. */
  #write(chunk: Chunk, isLent: boolean): boolean {
    // Encoded here, because the length of a string is not that of its bytes.
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk
    this.#bytes += bytes.length
    const isWritable = this.#wire.write(bytes, isLent, this.#wake)
    if (!isWritable) this.#waitsSince = performance.now()
    return isWritable
  }

  readonly #wake = (): void => {
    this.#waitedMs = this.waitedMs(performance.now())
    this.#waitsSince = undefined
    const onWritable = this.#onWritable
    this.#onWritable = undefined
    onWritable?.()
  }
}
