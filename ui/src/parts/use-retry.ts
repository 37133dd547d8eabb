import { useEffect, useRef } from 'preact/hooks'
import { retryDelayMs } from '../model/retries.ts'

export interface RetryOptions {
  /** A new object for each failure; undefined after a success. */
  readonly failure: object | undefined
  /** The server's Retry-After. */
  readonly retryAfterSeconds?: number | undefined
  /** True while something is under way that a retry would cancel; the retry waits for it. */
  readonly isBusy: boolean
  /** Undefined if nothing should be retried. */
  readonly retry: (() => void) | undefined
}

/**
 * Retries once after each failure while the tab is visible, with growing delays. Returns the
 * current delay in milliseconds.
 */
export function useRetry(options: RetryOptions): number {
  const { failure, retryAfterSeconds, isBusy, retry } = options
  const row = useRef({ failure, count: 0, delayMs: 0 })
  if (failure === undefined) row.current = { failure, count: 0, delayMs: 0 }
  else if (row.current.failure !== failure || row.current.count === 0) {
    const count = row.current.count + 1
    row.current = { failure, count, delayMs: retryDelayMs({ count, retryAfterSeconds }) }
  }
  const { delayMs } = row.current
  const latest = useRef(retry)
  latest.current = retry
  const isWaiting = failure !== undefined && retry !== undefined && !isBusy
  useEffect(() => {
    if (!isWaiting) return
    const run = (): void => {
      if (document.visibilityState !== 'visible') return
      document.removeEventListener('visibilitychange', run)
      latest.current?.()
    }
    const timer = setTimeout(() => {
      document.addEventListener('visibilitychange', run)
      run()
    }, delayMs)
    return () => {
      clearTimeout(timer)
      document.removeEventListener('visibilitychange', run)
    }
  }, [failure, isWaiting])
  return delayMs
}
