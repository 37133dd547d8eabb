import { performance } from 'node:perf_hooks'

/** Passed as an argument, so that tests can pass a clock that they move by hand. */
export interface Clock {
  /** Milliseconds since an arbitrary fixed time; never decreases. */
  now(): number
}

/** Counts from the start of the process, unaffected by corrections of the wall clock. */
export const monotonicClock: Clock = { now: () => performance.now() }
