import type { Clock } from '../lib/clock.ts'

/** The clock must be read at least this often to distinguish a step from a gap between readings. */
export const readEveryMs = 1_000
/** Longer than the event loop ever blocks; a step adds at most this much. */
const stepMsMax = 5_000

/**
 * A monotonic clock that limits each step to a few seconds.
 *
 * The monotonic clock of a process cannot be set, but it can step: because of a hypervisor, a
 * suspended machine, or a library that fakes time. For retention, a step forward would make every
 * event older at once. Cutting off time that really passed only makes events expire late, and the
 * age record (age-record.ts) makes up for a process that was stopped. Must be read every second. A
 * clock that runs up to five times too fast is not detected.
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
