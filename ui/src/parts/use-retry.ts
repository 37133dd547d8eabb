import { useEffect, useRef } from 'preact/hooks'
import { retryDelayMs } from '../model/retries.ts'

export interface RetryOptions {
  /** Another object for each failure; undefined when all is well. */
  readonly failure: object | undefined
  /** What the server asks for. */
  readonly retryAfterSeconds?: number | undefined
  /** Something is under way that a retry would cancel: it is waited for, however long it takes. */
  readonly isBusy: boolean
  /** Undefined where nothing is tried again. */
  readonly retry: (() => void) | undefined
}

/**
 * Tries again after each failure, once, while somebody looks; later and later as long as it fails.
 * Returns after how many milliseconds.
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
