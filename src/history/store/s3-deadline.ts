import { LinkedAbort } from '../../lib/abort.ts'

/** Bounds of each call to S3. */
export interface S3Timeouts {
  /** From the request to an open connection. */
  readonly connectMs: number
  /** Without a byte in either direction. */
  readonly idleMs: number
  /** For a whole call, and in addition the time that its bytes take at the lowest rate. */
  readonly callMs: number
  readonly bytesPerSecondMin: number
  /** Before the second attempt; each further pause is twice as long. */
  readonly pauseMs: number
}

/** Aborts a call when its caller does, or when it takes too long. */
export class S3Deadline implements Disposable {
  readonly #abort: LinkedAbort
  readonly #timeouts: S3Timeouts
  readonly #startedAt = performance.now()
  #timer: NodeJS.Timeout | undefined
  #isPast = false

  constructor(caller: AbortSignal, timeouts: S3Timeouts, bytes: number) {
    this.#abort = new LinkedAbort(caller)
    this.#timeouts = timeouts
    this.allow(bytes)
  }

  get signal(): AbortSignal {
    return this.#abort.signal
  }

  /** Whether the call took too long. */
  get isPast(): boolean {
    return this.#isPast
  }

  get elapsedMs(): number {
    return performance.now() - this.#startedAt
  }

  /** The time for a call with this many bytes, from its beginning on. */
  allow(bytes: number): void {
    const { callMs, bytesPerSecondMin } = this.#timeouts
    const endsAt = this.#startedAt + callMs + (bytes / bytesPerSecondMin) * 1000
    clearTimeout(this.#timer)
    this.#timer = setTimeout(
      () => {
        this.#isPast = true
        this.#abort.abort()
      },
      Math.max(0, endsAt - performance.now()),
    )
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
    this.#abort[Symbol.dispose]()
  }
}
