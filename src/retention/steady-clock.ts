import type { Clock } from '../lib/clock.ts'

/** The clock must be read at least this often, to tell a step from a pause between two readings. */
export const readEveryMs = 1_000
/** Longer than the event loop ever blocks; a step adds at most this much. */
const stepMsMax = 5_000

/**
 * A monotonic clock that limits each step to a few seconds.
 *
 * The monotonic clock of a process cannot be set, but it can step: because of a hypervisor, a
 * suspended machine, or a library that fakes time. For retention, a step forward would make every
 * event older at once. Time that is cut off here is at worst counted late; the age record
 * (age-record.ts) makes up for a process that really was stopped. Must be read every second. A
 * clock that runs too fast is not detected, up to five times the true speed.
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
