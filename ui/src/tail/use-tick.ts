import { useEffect, useReducer } from 'preact/hooks'

const TICK_MS = 1_000

/**
 * Renders again every second, so that times stay current, while that is wanted and the tab is
 * visible. Returns a number that changes with each tick.
 */
export function useTick(isWanted: boolean): number {
  const [ticks, tick] = useReducer<number, void>((count) => count + 1, 0)
  useEffect(() => {
    if (!isWanted) return
    const tickIfSeen = (): void => {
      if (!document.hidden) tick()
    }
    const timer = setInterval(tickIfSeen, TICK_MS)
    document.addEventListener('visibilitychange', tickIfSeen)
    return () => {
      clearInterval(timer)
      document.removeEventListener('visibilitychange', tickIfSeen)
    }
  }, [isWanted])
  return ticks
}
