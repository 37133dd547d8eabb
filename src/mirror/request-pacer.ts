import { pause } from '../lib/abort.ts'
import type { Clock } from '../lib/clock.ts'

/** Spaces requests evenly, so that an origin never gets more than `perSecond`. */
export class RequestPacer {
  readonly #clock: Clock
  readonly #everyMs: number
  #nextAt = Number.NEGATIVE_INFINITY

  constructor(clock: Clock, perSecond: number) {
    this.#clock = clock
    this.#everyMs = 1000 / perSecond
  }

  /** Resolves when the next request may be sent, or early when aborted. */
  async turn(signal: AbortSignal): Promise<void> {
    const now = this.#clock.now()
    const at = Math.max(now, this.#nextAt)
    this.#nextAt = at + this.#everyMs
    if (at > now) await pause(at - now, signal)
  }
}
