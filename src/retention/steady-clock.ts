import type { Clock } from '../lib/clock.ts'

/** Read at least this often, so that a step is told from a pause between two readings. */
export const readEveryMs = 1_000
/** Longer than the event loop ever blocks, and what a step can add at most. */
const stepMsMax = 5_000

/**
 * Elapsed time of which no single step can be longer than a few seconds.
 *
 * The monotonic clock of a process cannot be set, but it can step: by a hypervisor, by a machine that
 * was suspended, by a library that fakes time. For retention a step forward would make every event
 * older at once. What is left out here is at most counted too late; the record of ages (age-record.ts)
 * makes up for a process that was in fact stopped. Must be read every second. A clock that runs too
 * fast is not noticed: up to five times the true speed is believed.
 */
export class SteadyClock implements Clock {
  readonly #inner: Clock
  #readAt: number
  #elapsed: number

  constructor(inner: Clock) {
    this.#inner = inner
    this.#readAt = inner.now()
    this.#elapsed = this.#readAt
  }

  now(): number {
    const readAt = this.#inner.now()
    this.#elapsed += Math.min(Math.max(0, readAt - this.#readAt), stepMsMax)
    this.#readAt = readAt
    return this.#elapsed
  }
}
