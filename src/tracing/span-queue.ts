import { within } from '../lib/abort.ts'
import type { RecordedSpan } from './trace.ts'

/** A busy server that records each request fills the queue in a few seconds. */
const QUEUE_SPANS_MAX = 4096
const QUEUE_BYTES_MAX = 8 * 1024 * 1024
/** The limits of one export, whose encoding takes a few milliseconds. */
const EXPORT_SPANS_MAX = 256
const EXPORT_BYTES_MAX = 256 * 1024
/** How long the first span waits for others. */
const EXPORT_EVERY_MS = 1_000
/** The pause after a failed export. */
const RETRY_MS = 5_000

export interface SpanQueueOptions {
  /**
   * Sends the spans, and resolves to the number that the collector rejected; rejects when they did
   * not arrive within its own time limit.
   */
  readonly send: (spans: readonly RecordedSpan[]) => Promise<number>
  /** Called when exports begin to fail. */
  readonly onFailing: (error: unknown) => void
  /** Called when an export succeeds again, with the number of spans lost meanwhile. */
  readonly onRecovered: (lost: number) => void
  readonly spansMax?: number | undefined
  readonly exportEveryMs?: number | undefined
  readonly retryMs?: number | undefined
}

/**
 * The spans that wait for their export. Requests never wait for it: spans that do not fit, or that
 * could not be sent, are dropped and counted. One export runs at a time.
 */
export class SpanQueue {
  /**
   * The spans that the collector accepted, that did not fit into the queue, and that could not be
   * sent or were rejected.
   */
  readonly counts: { sent: number; refused: number; lost: number } = {
    sent: 0,
    refused: 0,
    lost: 0,
  }
  readonly #options: SpanQueueOptions
  readonly #spansMax: number
  readonly #exportEveryMs: number
  #waiting: RecordedSpan[] = []
  #bytes = 0
  #timer: NodeJS.Timeout | undefined
  #exporting: Promise<void> | undefined
  /** The number of dropped spans when exports began to fail; undefined while they succeed. */
  #failingSince: number | undefined
  #isClosing = false

  constructor(options: SpanQueueOptions) {
    this.#options = options
    this.#spansMax = options.spansMax ?? QUEUE_SPANS_MAX
    this.#exportEveryMs = options.exportEveryMs ?? EXPORT_EVERY_MS
  }

  get waiting(): number {
    return this.#waiting.length
  }

  add(span: RecordedSpan): void {
    const { bytes } = span
    if (this.#waiting.length >= this.#spansMax || this.#bytes + bytes > QUEUE_BYTES_MAX) {
      this.counts.refused += 1
      return
    }
    this.#waiting.push(span)
    this.#bytes += bytes
    if (this.#exporting !== undefined) return
    if (this.#waiting.length === EXPORT_SPANS_MAX && this.#failingSince === undefined) {
      this.#exportSoon(0)
    } else if (this.#timer === undefined) {
      this.#exportSoon(this.#exportEveryMs)
    }
  }

  /** Sends the waiting spans for at most this time; the rest is lost. */
  async close(msMax: number): Promise<void> {
    this.#isClosing = true
    clearTimeout(this.#timer)
    await within(msMax, this.#drain())
    this.counts.lost += this.#waiting.length
    this.#waiting = []
    this.#bytes = 0
  }

  async #drain(): Promise<void> {
    await this.#exporting
    while (this.#waiting.length > 0) if (!(await this.#exportSome())) return
  }

  #exportSoon(ms: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#exporting = this.#exportAll().then((hasSent) => {
        this.#exporting = undefined
        // The waiting spans must not depend on further ones to be sent.
        if (this.#isClosing) return
        if (!hasSent) this.#exportSoon(this.#options.retryMs ?? RETRY_MS)
        else if (this.#waiting.length > 0) this.#exportSoon(this.#exportEveryMs)
      })
    }, ms).unref()
  }

  /** Resolves to whether the collector accepted them. */
  async #exportAll(): Promise<boolean> {
    while (this.#waiting.length > 0 && !this.#isClosing) {
      if (!(await this.#exportSome())) return false
    }
    return true
  }

  async #exportSome(): Promise<boolean> {
    const spans = this.#takeSome()
    let rejected: number
    try {
      const reported = await this.#options.send(spans)
      rejected = Math.min(spans.length, Math.max(0, reported))
    } catch (error) {
      this.#failingSince ??= this.#beginFailing(error)
      this.counts.lost += spans.length
      return false
    }
    this.counts.sent += spans.length - rejected
    this.counts.lost += rejected
    if (this.#failingSince !== undefined) {
      const { lost, refused } = this.counts
      this.#options.onRecovered(lost + refused - this.#failingSince)
      this.#failingSince = undefined
    }
    return true
  }

  /** Removes the spans of the next export from the queue, at least one. */
  #takeSome(): RecordedSpan[] {
    let count = 0
    let taken = 0
    for (const { bytes } of this.#waiting) {
      if (count === EXPORT_SPANS_MAX || (count > 0 && taken + bytes > EXPORT_BYTES_MAX)) break
      count += 1
      taken += bytes
    }
    this.#bytes -= taken
    return this.#waiting.splice(0, count)
  }

  #beginFailing(error: unknown): number {
    this.#options.onFailing(error)
    return this.counts.lost + this.counts.refused
  }
}
