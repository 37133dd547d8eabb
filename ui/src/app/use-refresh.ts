import { useCallback, useEffect, useRef } from 'preact/hooks'
import type { Page } from '../parts/page.ts'

/** Refresh interval of a range that ends now, while the tab is visible. */
const INTERVAL_MS = 30_000
/** Delay of a refresh after the tab becomes visible again, or after a hold ends. */
const CHECK_MS = 2_000

/** Refreshes while `isLive`, unless a hold prevents it. Returns a function that takes a hold. */
export function useRefresh({
  nowMs,
  isLive,
  refresh,
}: Pick<Page, 'nowMs' | 'refresh'> & { readonly isLive: boolean }): Page['hold'] {
  const holds = useRef(new Set<symbol>())
  useEffect(() => {
    if (!isLive) return
    const timer = setInterval(() => {
      const isSeen = document.visibilityState === 'visible'
      if (isSeen && holds.current.size === 0 && Date.now() - nowMs >= INTERVAL_MS) refresh()
    }, CHECK_MS)
    return () => clearInterval(timer)
  }, [isLive, nowMs])
  return useCallback(() => {
    const one = Symbol('hold')
    holds.current.add(one)
    return () => {
      holds.current.delete(one)
    }
  }, [])
}
