/** Decides when to retry after a failure. */

const FIRST_MS = 1_000
const MOST_MS = 30_000
/** Caps the server's Retry-After: a person is waiting. */
const RETRY_AFTER_MS_MAX = 120_000

export interface Failure {
  /** Consecutive failures, including this one. */
  readonly count: number
  /** The server's Retry-After. */
  readonly retryAfterSeconds?: number | undefined
}

/** Doubles with each failure; half of it is random, so that tabs do not retry in lockstep. */
export function retryDelayMs(
  { count, retryAfterSeconds }: Failure,
  random: () => number = Math.random,
): number {
  const stepMs = Math.min(MOST_MS, FIRST_MS * 2 ** Math.max(0, count - 1))
  const askedMs = Math.min((retryAfterSeconds ?? 0) * 1_000, RETRY_AFTER_MS_MAX)
  // Never earlier than asked for.
  return Math.round(Math.max(askedMs + (random() * stepMs) / 2, (stepMs * (1 + random())) / 2))
}

/**
 * Whether the same request would fail again, until the user or an administrator changes something.
 */
export function isFinal(code: number): boolean {
  return code >= 400 && code < 500 && code !== 408 && code !== 410 && code !== 429
}
