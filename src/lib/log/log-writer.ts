/**
 * Writes log lines to standard error without ever blocking on its reader.
 *
 * Lines are batched and written once per event-loop tick, with non-blocking writes. Lines that do
 * not fit into a full pipe are buffered in memory, up to a limit. Beyond it lines are dropped and
 * counted, and the count is logged once the pipe has space again. An error (the reader is gone) is
 * treated like a full pipe, because readers come back: a container runtime that restarts reopens the
 * other end.
 *
 * Writes do not run in libuv's thread pool, where a write to a full pipe would block `process.exit`
 * until the pipe is read.
 */
import { fstatSync, writeSync } from 'node:fs'
import process from 'node:process'
import { type Clock, monotonicClock } from '../clock.ts'

/** Some thousands of lines: minutes of a quiet server, seconds of a busy one. */
const bufferedBytesMaxDefault = 1024 * 1024
const flushIntervalMsDefault = 5000
/** The interval at which a write to a full pipe is retried. */
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
  #nextTick: NodeJS.Immediate | undefined
  /** Bytes that a partial write left over; they are written before the lines. */
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

  /** Buffers one line, including its newline. Drops it when the buffer is full. */
  write(line: string): void {
    const bytes = Buffer.byteLength(line)
    // A burst within one tick need not lose lines: the pipe may still have space.
    if (this.#bufferedBytes + bytes > this.#bufferedBytesMax && !this.#isBlocked()) this.#pump()
    if (this.#bufferedBytes + bytes > this.#bufferedBytesMax) {
      this.#dropped += 1
      return
    }
    this.#lines.push(line)
    this.#bufferedBytes += bytes
    if (this.#closed) this.#pump()
    else if (!this.#isBlocked()) this.#nextTick ??= setImmediate(() => this.#pump())
  }

  /** Sets the callback that receives the number of dropped lines once it can be logged. */
  onDropped(report: (count: number) => void): void {
    this.#onDropped = report
  }

  /**
   * When the buffer was last empty, by the configured clock. Advances at every flush, even of an empty
   * buffer, but not while a line cannot be written.
   */
  lastFlushedAt(): number {
    return this.#lastFlushedAt
  }

  /** Lines dropped since the last report. */
  get dropped(): number {
    return this.#dropped
  }

  /** Writes the buffer synchronously, for at most `msMax`. Only for use just before an exit. */
  flushSync(msMax: number = syncMsMaxDefault): void {
    const endsAt = performance.now() + msMax
    const pause = new Int32Array(new SharedArrayBuffer(4))
    while (!this.#pump() && performance.now() < endsAt) Atomics.wait(pause, 0, 0, 10)
  }

  /** Flushes for a bounded time and stops the timers. Later lines are still attempted once. */
  async close(msMax: number = closeMsMaxDefault): Promise<void> {
    const endsAt = performance.now() + msMax
    clearInterval(this.#heartbeat)
    while (!this.#pump() && performance.now() < endsAt) {
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    this.#closed = true
    clearTimeout(this.#retry)
  }

  /** Whether the last attempt left bytes behind, so that the timer will make the next one. */
  #isBlocked(): boolean {
    return this.#retry !== undefined
  }

  /** Writes until the buffer is empty or the pipe is full. Returns whether the buffer is empty. */
  #pump(): boolean {
    clearImmediate(this.#nextTick)
    clearTimeout(this.#retry)
    this.#nextTick = undefined
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
        // The pipe is full (EAGAIN) or gone (EPIPE and others), so this cannot be logged. The
        // health check sees it in lastFlushedAt, and the retry timer handles both cases.
        return false
      }
    }
    return true
  }
}

/**
 * Puts the pipe or socket behind standard error into non-blocking mode. Node has no call for that,
 * but does it when it opens its own stream on the descriptor, and undoes it when it exits. Files
 * and terminals are left as they are: they do not fill up.
 */
function makeStderrNonBlocking(): void {
  try {
    const stat = fstatSync(2)
    // The stream needs a listener, or an error on it (which we never cause) ends the process.
    if (stat.isFIFO() || stat.isSocket()) process.stderr.on('error', () => {})
  } catch {
    // There is no standard error: writes will fail and be treated as a full pipe.
  }
}
