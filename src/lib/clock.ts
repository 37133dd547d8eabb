import { performance } from 'node:perf_hooks'

/** A clock that is passed as an argument, so that tests can pass one that they move by hand. */
export interface Clock {
  /** Milliseconds since an arbitrary fixed time; never decreases. */
  now(): number
}

/** Counts from the start of the process; corrections of the wall clock do not affect it. */
export const monotonicClock: Clock = { now: () => performance.now() }
