import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import type { Page } from '../parts/page.ts'

/** A range that ends now is loaded again this often, while somebody can see it. */
const INTERVAL_MS = 30_000
/** How soon a refresh follows when the tab is shown again, or what held it has ended. */
const CHECK_MS = 2_000

/** The time at which ranges end, and what moves it. `isLive`: the range ends now. */
export function useRefresh(isLive: boolean): Pick<Page, 'nowMs' | 'refresh' | 'hold'> {
  const [nowMs, setNowMs] = useState(Date.now)
  const holds = useRef(new Set<symbol>())
  const refresh = useCallback(() => setNowMs(Date.now()), [])
  const hold = useCallback(() => {
    const one = Symbol('hold')
    holds.current.add(one)
    return () => {
      holds.current.delete(one)
    }
  }, [])
  useEffect(() => {
    if (!isLive) return
    const timer = setInterval(() => {
      const isSeen = document.visibilityState === 'visible'
      if (isSeen && holds.current.size === 0 && Date.now() - nowMs >= INTERVAL_MS) refresh()
    }, CHECK_MS)
    return () => clearInterval(timer)
  }, [isLive, nowMs])
  return { nowMs, refresh, hold }
}
