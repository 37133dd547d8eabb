import { useEffect, useState } from 'preact/hooks'

/** Relative times are at most this old. */
const TICK_MS = 15_000

/** The time, for texts such as `5m` that stay true while nothing else changes. */
export function useNow(): number {
  const [nowMs, setNowMs] = useState(Date.now)
  useEffect(() => {
    const timer = setInterval(() => setNowMs(Date.now()), TICK_MS)
    return () => clearInterval(timer)
  }, [])
  return nowMs
}
