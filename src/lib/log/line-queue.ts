/**
 * A bounded queue that writes lines to a file or pipe that may be slow, full or gone, without blocking
 * its callers for long.
 *
 * Lines that arrive during a write are batched into the next one. A caller may wait until its lines are
 * written. Once a write fails or stalls, `written()` resolves at once until a write succeeds. Failed
 * writes are retried without limit; when the queue is full, lines are dropped and counted.
 */
import { within } from '../abort.ts'
import { Latch } from '../latch.ts'

/** After an outage the queue may be long; joining all lines at once would block the event loop. */
const BATCH_LINES_MAX = 1000

export interface LineTarget {
  /** Writes whole lines. Rejects with an AppendError that says how many bytes were written. */
  append(bytes: Buffer): Promise<void>
  close(): Promise<void>
}

/** Only the first `written` bytes were written; the rest may be retried. */
export class AppendError extends Error {
  override readonly name = 'AppendError'
  readonly written: number

  constructor(written: number, cause: unknown) {
    super('lines could not be written', { cause })
    this.written = written
  }
}

export interface LineQueueOptions {
  readonly target: LineTarget
  readonly bytesMax: number
  /** When a write takes longer, callers stop waiting for it. */
  readonly stallMs: number
  readonly retryMs: number
  readonly onEvent: (event: LineQueueEvent) => void
}

/** Reported to the operator. `lost` counts the lines dropped since the outage began. */
export type LineQueueEvent =
  | { readonly kind: 'stalled' }
  | { readonly kind: 'failed'; readonly error: unknown }
  | { readonly kind: 'recovered'; readonly lost: number }

export interface LineQueueCounts {
  /** Lines dropped since the queue was created. */
  readonly lost: number
  readonly failedWrites: number
  /** Currently queued, including the write in progress. */
  readonly bytes: number
}

export class LineQueue {
  readonly #options: LineQueueOptions
  #lines: string[] = []
  /** Bytes of the queued lines and the write in progress. */
  #bytes = 0
  #lost = 0
  #lostBeforeOutage = 0
  #failedWrites = 0
  /** Whether a write has failed or stalled and none has succeeded since. */
  #isOutage = false
  /** Opens when the currently queued lines are written. */
  #batch = new Latch()
  /** Opens when the write in progress has ended. */
  #writing = new Latch()
  #running: Promise<void> | undefined
  #retry: { readonly timer: NodeJS.Timeout; readonly wake: () => void } | undefined
  #isClosing = false
  /** The time to close has run out: a write that fails is not retried. */
  #isOver = false

  constructor(options: LineQueueOptions) {
    this.#options = options
  }

  get counts(): LineQueueCounts {
    return { lost: this.#lost, failedWrites: this.#failedWrites, bytes: this.#bytes }
  }

  /** Queues one line, including its newline. Returns false when the queue is full or closing. */
  add(line: string): boolean {
    const bytes = Buffer.byteLength(line)
    if (this.#bytes + bytes > this.#options.bytesMax || this.#isClosing) {
      this.#lost += 1
      return false
    }
    this.#lines.push(line)
    this.#bytes += bytes
    this.#running ??= this.#run()
    return true
  }

  /** Resolves when all lines so far are written, or as soon as there is an outage. */
  async written(): Promise<void> {
    if (this.#isOutage || this.#running === undefined) return
    await (this.#lines.length > 0 ? this.#batch : this.#writing).opened
  }

  /** Writes the queued lines, for a bounded time. Later lines are dropped. */
  async close(msMax: number): Promise<void> {
    this.#isClosing = true
    this.#wakeRetry()
    await within(msMax, this.#running ?? Promise.resolve())
    this.#isOver = true
    this.#dropQueued()
    // While a write hangs, close would hang too. The target is then closed when the process exits.
    if (this.#running === undefined) await this.#options.target.close()
  }

  #dropQueued(): void {
    this.#lost += this.#lines.length
    for (const line of this.#lines) this.#bytes -= Buffer.byteLength(line)
    this.#lines = []
    this.#batch.open()
  }

  async #run(): Promise<void> {
    // Lines of the same event-loop tick are batched into one write.
    await new Promise((resolve) => setImmediate(resolve))
    while (this.#lines.length > 0) {
      const bytes = Buffer.from(this.#lines.splice(0, BATCH_LINES_MAX).join(''))
      this.#writing = this.#lines.length === 0 ? this.#batch : new Latch()
      if (this.#lines.length === 0) this.#batch = new Latch()
      await this.#write(bytes)
      this.#bytes -= bytes.length
      this.#writing.open()
    }
    this.#running = undefined
  }

  /** Resolves when all bytes are written, or dropped because the time to close has run out. */
  async #write(bytes: Buffer): Promise<void> {
    const stall = setTimeout(() => this.#beginOutage({ kind: 'stalled' }), this.#options.stallMs)
    let rest = await this.#append(bytes)
    while (rest.length > 0 && !this.#isOver) {
      await this.#pause()
      rest = await this.#append(rest)
    }
    clearTimeout(stall)
    if (rest.length === 0) this.#endOutage()
    else this.#lost += newlinesIn(rest)
  }

  /** Attempts one write, and returns the bytes that were not written. */
  async #append(bytes: Buffer): Promise<Buffer> {
    try {
      await this.#options.target.append(bytes)
      return bytes.subarray(bytes.length)
    } catch (error) {
      this.#failedWrites += 1
      this.#beginOutage({ kind: 'failed', error })
      return bytes.subarray(error instanceof AppendError ? error.written : 0)
    }
  }

  #beginOutage(event: LineQueueEvent): void {
    if (!this.#isOutage) {
      this.#isOutage = true
      this.#lostBeforeOutage = this.#lost
      this.#options.onEvent(event)
    }
    // Later lines are stuck behind this write, so their callers are released too.
    this.#writing.open()
    this.#batch.open()
  }

  #endOutage(): void {
    if (!this.#isOutage) return
    this.#isOutage = false
    this.#batch = new Latch()
    this.#options.onEvent({ kind: 'recovered', lost: this.#lost - this.#lostBeforeOutage })
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      // While closing, pauses are shorter, so that the remaining time allows some more attempts.
      const ms = this.#isClosing ? this.#options.retryMs / 10 : this.#options.retryMs
      const timer = setTimeout(() => this.#wakeRetry(), ms)
      this.#retry = { timer, wake: resolve }
    })
  }

  #wakeRetry(): void {
    const retry = this.#retry
    if (retry === undefined) return
    this.#retry = undefined
    clearTimeout(retry.timer)
    retry.wake()
  }
}

function newlinesIn(bytes: Buffer): number {
  let count = 0
  for (let at = bytes.indexOf(10); at !== -1; at = bytes.indexOf(10, at + 1)) count += 1
  return count
}
