import { useEffect, useState } from 'preact/hooks'

/** Maximum age of relative times. */
const TICK_MS = 15_000

/** The current time, for texts such as `5m` that must stay true while nothing else changes. */
export function useNow(tickMs: number = TICK_MS): number {
  const [nowMs, setNowMs] = useState(Date.now)
  useEffect(() => {
    const timer = setInterval(() => setNowMs(Date.now()), tickMs)
    return () => clearInterval(timer)
  }, [])
  return nowMs
}
