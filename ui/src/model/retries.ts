/** When to ask again after a failure. */

const FIRST_MS = 1_000
const MOST_MS = 30_000
/** A server that asks for more is asked earlier all the same: a person is waiting. */
const RETRY_AFTER_MS_MAX = 120_000

export interface Failure {
  /** Failures in a row, this one included. */
  readonly count: number
  /** What the server asks for. */
  readonly retryAfterSeconds?: number | undefined
}

/** Doubles with each failure; half of it is random, so that tabs do not all ask at once. */
export function retryDelayMs(
  { count, retryAfterSeconds }: Failure,
  random: () => number = Math.random,
): number {
  const stepMs = Math.min(MOST_MS, FIRST_MS * 2 ** Math.max(0, count - 1))
  const askedMs = Math.min((retryAfterSeconds ?? 0) * 1_000, RETRY_AFTER_MS_MAX)
  // Never earlier than asked for.
  return Math.round(Math.max(askedMs + (random() * stepMs) / 2, (stepMs * (1 + random())) / 2))
}

/** Whether the same request would fail again: the user or an administrator has to do something. */
export function isFinal(code: number): boolean {
  return code >= 400 && code < 500 && code !== 408 && code !== 410 && code !== 429
}
