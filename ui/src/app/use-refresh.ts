import { useCallback, useEffect, useRef } from 'preact/hooks'
import type { Page } from '../parts/page.ts'

/** A range that ends now is loaded again this often, while somebody can see it. */
const INTERVAL_MS = 30_000
/** How soon a refresh follows when the tab is shown again, or what held it has ended. */
const CHECK_MS = 2_000

/** Refreshes what `isLive`, unless the returned function holds it. */
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
