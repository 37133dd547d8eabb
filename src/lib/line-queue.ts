/**
 * Carries lines to a file or pipe that may be slow, full or gone, without holding up anybody for
 * long and without growing beyond a bound.
 *
 * Lines that arrive while a write is under way go out with the next one. Whoever wants to know that
 * its lines are out may wait; nobody waits once a write has taken too long or has failed, until the
 * target takes lines again. What cannot be written is tried again and again; beyond the bound, lines
 * are dropped and counted.
 */
import { within } from './abort.ts'
import { type Clock, monotonicClock } from './clock.ts'
import { Latch } from './latch.ts'

/** After trouble there may be very many, and joining them all at once would take its time. */
const BATCH_LINES_MAX = 1000

/** Where lines end up. */
export interface LineTarget {
  /** Takes whole lines. Rejects with an AppendError that says how much of them it took. */
  append(bytes: Buffer): Promise<void>
  close(): Promise<void>
}

/** Some of the bytes, or none, are written: the rest may be tried again. */
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
  /** A write that takes longer is waited for by nobody. */
  readonly stallMs: number
  readonly retryMs: number
  readonly onEvent: (event: LineQueueEvent) => void
  readonly clock?: Clock
}

/** What an operator should hear of. `lost` counts the lines dropped since there was trouble. */
export type LineQueueEvent =
  | { readonly kind: 'stalled' }
  | { readonly kind: 'failed'; readonly error: unknown }
  | { readonly kind: 'recovered'; readonly lost: number }

/** Everything since the start. */
export interface LineQueueCounts {
  readonly lost: number
  readonly failedWrites: number
  /** What waits to be written. */
  readonly bytes: number
}

export class LineQueue {
  readonly #options: LineQueueOptions
  readonly #clock: Clock
  #lines: string[] = []
  /** Of the lines, and of the write under way. */
  #bytes = 0
  #lost = 0
  #lostBeforeTrouble = 0
  #failedWrites = 0
  #isInTrouble = false
  /** Opens when the lines that are collected now are out. */
  #batch = new Latch()
  /** Opens when the write under way is over. */
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

  /** Takes one line, its newline included. False when there is no room for it. */
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

  /** Resolves when every line so far is out, or nobody knows when it will be. */
  async written(): Promise<void> {
    if (this.#isInTrouble || this.#running === undefined) return
    await (this.#lines.length > 0 ? this.#batch : this.#writing).opened
  }

  /** Writes what is there, for a bounded time. Lines that come later are lost. */
  async close(msMax: number): Promise<void> {
    this.#closesAt = this.#clock.now() + msMax
    this.#wakeRetry()
    await within(msMax, this.#running ?? Promise.resolve())
    this.#lost += this.#lines.length
    // A write that hangs would hang here as well; the end of the process closes it too.
    if (this.#running === undefined) await this.#options.target.close()
  }

  async #run(): Promise<void> {
    // What arrives in the same turn goes out together.
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

  /** Comes back when all of it is out, or given up because the end has come. */
  async #write(bytes: Buffer): Promise<void> {
    const stall = setTimeout(() => this.#trouble({ kind: 'stalled' }), this.#options.stallMs)
    let rest = bytes
    try {
      while (rest.length > 0) rest = await this.#append(rest)
      this.#recover()
    } catch {
      this.#lost += newlinesIn(rest)
    } finally {
      clearTimeout(stall)
    }
  }

  /** What is still to be written, a moment after it could not be. Rejects when there is no time left. */
  async #append(bytes: Buffer): Promise<Buffer> {
    try {
      await this.#options.target.append(bytes)
      return bytes.subarray(bytes.length)
    } catch (error) {
      this.#failedWrites += 1
      this.#trouble({ kind: 'failed', error })
      if (this.#isOver()) throw error
      await this.#pause()
      return bytes.subarray(error instanceof AppendError ? error.written : 0)
    }
  }

  #trouble(event: LineQueueEvent): void {
    if (!this.#isInTrouble) {
      this.#isInTrouble = true
      this.#lostBeforeTrouble = this.#lost
      this.#options.onEvent(event)
    }
    // The lines collected since are behind those that do not get out.
    this.#writing.open()
    this.#batch.open()
  }

  #recover(): void {
    if (!this.#isInTrouble) return
    this.#isInTrouble = false
    this.#batch = new Latch()
    this.#options.onEvent({ kind: 'recovered', lost: this.#lost - this.#lostBeforeTrouble })
  }

  #isOver(): boolean {
    return this.#closesAt !== undefined && this.#clock.now() >= this.#closesAt
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      // While closing, the last moments are used for one more try or two.
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
