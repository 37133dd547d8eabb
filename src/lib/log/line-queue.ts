/**
 * A bounded queue that writes lines to a file or pipe that may be slow, full or gone, without
 * blocking its callers for long.
 *
 * Lines that arrive during a write are batched into the next one. A caller may wait until its lines
 * are written. After a write that failed or took too long, no caller has to wait any more, until
 * the target accepts lines again. Failed writes are retried without limit; when the queue is full,
 * lines are dropped and counted.
 */
import { within } from '../abort.ts'
import { type Clock, monotonicClock } from '../clock.ts'
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
  readonly clock?: Clock
}

/** Reported to the operator. `lost` counts the lines dropped since the outage began. */
export type LineQueueEvent =
  | { readonly kind: 'stalled' }
  | { readonly kind: 'failed'; readonly error: unknown }
  | { readonly kind: 'recovered'; readonly lost: number }

export interface LineQueueCounts {
  /** Since the start. */
  readonly lost: number
  /** Since the start. */
  readonly failedWrites: number
  /** Queued now, the write in progress included. */
  readonly bytes: number
}

export class LineQueue {
  readonly #options: LineQueueOptions
  readonly #clock: Clock
  #lines: string[] = []
  /** Of the queued lines and of the write in progress. */
  #bytes = 0
  #lost = 0
  #lostBeforeOutage = 0
  #failedWrites = 0
  /** A write has failed or stalled, and none has succeeded since. */
  #isOutage = false
  /** Opens when the lines that are queued now are written. */
  #batch = new Latch()
  /** Opens when the write in progress has ended. */
  #writing = new Latch()
  #running: Promise<void> | undefined
  #retry: { readonly timer: NodeJS.Timeout; readonly wake: () => void } | undefined
  #closesAt: number | undefined

  constructor(options: LineQueueOptions) {
    this.#options = options
    this.#clock = options.clock ?? monotonicClock
  }

  get counts(): LineQueueCounts {
    return { lost: this.#lost, failedWrites: this.#failedWrites, bytes: this.#bytes }
  }

  /** Queues one line, its newline included. False when the line is dropped: the queue is full. */
  add(line: string): boolean {
    const bytes = Buffer.byteLength(line)
    if (this.#bytes + bytes > this.#options.bytesMax || this.#closesAt !== undefined) {
      this.#lost += 1
      return false
    }
    this.#lines.push(line)
    this.#bytes += bytes
    this.#running ??= this.#run()
    return true
  }

  /** Resolves when all lines so far are written. During an outage it resolves at once. */
  async written(): Promise<void> {
    if (this.#isOutage || this.#running === undefined) return
    await (this.#lines.length > 0 ? this.#batch : this.#writing).opened
  }

  /** Writes the queued lines, for a bounded time. Later lines are dropped. */
  async close(msMax: number): Promise<void> {
    this.#closesAt = this.#clock.now() + msMax
    this.#wakeRetry()
    await within(msMax, this.#running ?? Promise.resolve())
    this.#lost += this.#lines.length
    // While a write hangs, close would hang too. The target is then closed when the process exits.
    if (this.#running === undefined) await this.#options.target.close()
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
    let rest = bytes
    try {
      while (rest.length > 0) rest = await this.#append(rest)
      this.#endOutage()
    } catch {
      this.#lost += newlinesIn(rest)
    } finally {
      clearTimeout(stall)
    }
  }

  /** One attempt; returns the rest, after a pause if it failed. Rejects when no time is left. */
  async #append(bytes: Buffer): Promise<Buffer> {
    try {
      await this.#options.target.append(bytes)
      return bytes.subarray(bytes.length)
    } catch (error) {
      this.#failedWrites += 1
      this.#beginOutage({ kind: 'failed', error })
      if (this.#isOver()) throw error
      await this.#pause()
      return bytes.subarray(error instanceof AppendError ? error.written : 0)
    }
  }

  #beginOutage(event: LineQueueEvent): void {
    if (!this.#isOutage) {
      this.#isOutage = true
      this.#lostBeforeOutage = this.#lost
      this.#options.onEvent(event)
    }
    // Lines queued meanwhile are blocked by the current write, so their callers stop waiting too.
    this.#writing.open()
    this.#batch.open()
  }

  #endOutage(): void {
    if (!this.#isOutage) return
    this.#isOutage = false
    this.#batch = new Latch()
    this.#options.onEvent({ kind: 'recovered', lost: this.#lost - this.#lostBeforeOutage })
  }

  #isOver(): boolean {
    return this.#closesAt !== undefined && this.#clock.now() >= this.#closesAt
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      // While closing, pauses are shorter, so that the remaining time allows some more attempts.
      const ms = this.#closesAt === undefined ? this.#options.retryMs : this.#options.retryMs / 10
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
