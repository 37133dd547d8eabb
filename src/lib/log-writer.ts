/**
 * Carries log lines to standard error without ever waiting for whoever reads them.
 *
 * Lines are collected and written once per turn of the event loop, with writes that return at once
 * when a pipe is full. What could not be written waits in memory, up to a bound; past it lines are
 * dropped and counted, and the count is logged once the pipe moves again. An error (the reader is
 * gone) is treated like a full pipe, because readers come back: a container runtime that restarts
 * opens the other end anew.
 *
 * Not pino's own destination: its writes sit in libuv's thread pool, where one on a full pipe holds
 * up `process.exit` for as long as nobody reads, and its synchronous flush never returns when the
 * reader is gone.
 */
import { fstatSync, writeSync } from 'node:fs'
import process from 'node:process'
import { type Clock, monotonicClock } from './clock.ts'

/** A megabyte holds some thousands of lines: minutes of a quiet server, seconds of a busy one. */
const bufferedBytesMaxDefault = 1024 * 1024
const flushIntervalMsDefault = 5000
/** How soon to look whether a full pipe has room again. */
const retryMs = 100
const closeMsMaxDefault = 2000
const syncMsMaxDefault = 500

export interface LogWriterConfig {
  readonly fd?: number
  readonly clock?: Clock
  readonly bufferedBytesMax?: number
  readonly flushIntervalMs?: number
  /** Replaces the system call, for tests. */
  readonly writeSync?: (fd: number, bytes: Uint8Array) => number
}

export class LogWriter {
  readonly #fd: number
  readonly #clock: Clock
  readonly #bufferedBytesMax: number
  readonly #writeSync: (fd: number, bytes: Uint8Array) => number
  readonly #heartbeat: NodeJS.Timeout
  #retry: NodeJS.Timeout | undefined
  #turn: NodeJS.Immediate | undefined
  /** What a write left over; goes out before the lines. */
  #rest: Uint8Array = new Uint8Array()
  #lines: string[] = []
  #bufferedBytes = 0
  #dropped = 0
  #lastFlushedAt: number
  #onDropped: ((count: number) => void) | undefined
  #closed = false

  constructor(config: LogWriterConfig = {}) {
    this.#fd = config.fd ?? 2
    this.#clock = config.clock ?? monotonicClock
    this.#bufferedBytesMax = config.bufferedBytesMax ?? bufferedBytesMaxDefault
    this.#writeSync = config.writeSync ?? writeSync
    if (this.#fd === 2 && config.writeSync === undefined) makeStderrNonBlocking()
    this.#lastFlushedAt = this.#clock.now()
    this.#heartbeat = setInterval(
      () => this.#pump(),
      config.flushIntervalMs ?? flushIntervalMsDefault,
    ).unref()
  }

  /** Takes one line, its newline included. Dropped when the buffer is full. */
  write(line: string): void {
    const bytes = Buffer.byteLength(line)
    // A burst within one turn is no reason to drop: the pipe may well have room.
    if (this.#bufferedBytes + bytes > this.#bufferedBytesMax && !this.#isBlocked()) this.#pump()
    if (this.#bufferedBytes + bytes > this.#bufferedBytesMax) {
      this.#dropped += 1
      return
    }
    this.#lines.push(line)
    this.#bufferedBytes += bytes
    if (this.#closed) this.#pump()
    else if (!this.#isBlocked()) this.#turn ??= setImmediate(() => this.#pump())
  }

  /** Called with the number of lines lost, once there is room for a line that says so. */
  onDropped(report: (count: number) => void): void {
    this.#onDropped = report
  }

  /**
   * When everything written so far had last left the process, by the clock passed in. Moves on at
   * every flush, also of nothing; stands still while a line cannot be delivered.
   */
  lastFlushedAt(): number {
    return this.#lastFlushedAt
  }

  /** Lines lost since the last report. */
  get dropped(): number {
    return this.#dropped
  }

  /** Writes what is there without giving up the thread, waiting a moment at most. For the end. */
  flushSync(msMax: number = syncMsMaxDefault): void {
    const endsAt = performance.now() + msMax
    const pause = new Int32Array(new SharedArrayBuffer(4))
    while (!this.#pump() && performance.now() < endsAt) Atomics.wait(pause, 0, 0, 10)
  }

  /** Flushes, for a bounded time, and stops the timers. Lines that come later are still tried. */
  async close(msMax: number = closeMsMaxDefault): Promise<void> {
    const endsAt = performance.now() + msMax
    clearInterval(this.#heartbeat)
    while (!this.#pump() && performance.now() < endsAt) {
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    this.#closed = true
    clearTimeout(this.#retry)
  }

  /** Whether the last attempt left something behind, and the next is for the timer to make. */
  #isBlocked(): boolean {
    return this.#retry !== undefined
  }

  /** Writes until all is out or the pipe is full; true when all is out. */
  #pump(): boolean {
    clearImmediate(this.#turn)
    clearTimeout(this.#retry)
    this.#turn = undefined
    this.#retry = undefined
    const done = this.#drain() && this.#reportDropped()
    if (done) this.#lastFlushedAt = this.#clock.now()
    else if (!this.#closed) this.#retry = setTimeout(() => this.#pump(), retryMs).unref()
    return done
  }

  #reportDropped(): boolean {
    const count = this.#dropped
    if (count === 0) return true
    this.#dropped = 0
    this.#onDropped?.(count)
    return this.#drain()
  }

  #drain(): boolean {
    while (this.#bufferedBytes > 0) {
      if (this.#rest.length === 0) {
        this.#rest = Buffer.from(this.#lines.join(''))
        this.#lines = []
        this.#bufferedBytes = this.#rest.length
      }
      try {
        const written = this.#writeSync(this.#fd, this.#rest)
        if (written === 0) return false
        this.#rest = this.#rest.subarray(written)
        this.#bufferedBytes -= written
      } catch {
        // Full (EAGAIN) or gone (EPIPE and worse): there is nowhere to say so. The health check
        // sees it by lastFlushedAt, and the next attempt is due in a moment either way.
        return false
      }
    }
    return true
  }
}

/**
 * Puts the pipe or socket behind standard error into non-blocking mode. Node has no call for that,
 * but does it when it opens its own stream on the descriptor, and undoes it when it exits. Files
 * and terminals stay as they are: they do not fill up.
 */
function makeStderrNonBlocking(): void {
  try {
    const stat = fstatSync(2)
    // The stream must have a listener, or an error on it (which we never cause) ends the process.
    if (stat.isFIFO() || stat.isSocket()) process.stderr.on('error', () => {})
  } catch {
    // No standard error at all: writes will fail, and be treated as a full pipe.
  }
}
