import { performance } from 'node:perf_hooks'

/** The time, as something that can be handed in: tests pass a clock they move by hand. */
export interface Clock {
  /** Milliseconds since some fixed moment; never goes back. */
  now(): number
}

/** Counts from the start of the process and is not moved by corrections of the wall clock. */
export const monotonicClock: Clock = { now: () => performance.now() }
