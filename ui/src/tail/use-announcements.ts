import { useEffect, useRef } from 'preact/hooks'
import { usePage } from '../parts/page.ts'
import type { TailFeed } from './tail-feed.ts'

/** More often, a screen reader would never stop talking. */
const SUMMARY_EVERY_MS = 5_000

/** Tells those who do not see the rows how many came. */
export function useAnnouncements(feed: TailFeed | undefined, isPaused: boolean): void {
  const { announce } = usePage()
  const paused = useRef(isPaused)
  paused.current = isPaused
  useEffect(() => {
    if (feed === undefined) return
    let told = counts(feed)
    const timer = setInterval(() => {
      const now = counts(feed)
      const arrived = now.arrived - told.arrived
      if (paused.current || arrived === 0) return
      announce(summary(arrived, now.warnings - told.warnings))
      told = now
    }, SUMMARY_EVERY_MS)
    return () => clearInterval(timer)
  }, [feed])
}

function counts({ buffer, warningCount }: TailFeed): {
  readonly arrived: number
  readonly warnings: number
} {
  return { arrived: buffer.arrivedCount, warnings: warningCount }
}

function summary(arrived: number, warnings: number): string {
  const events = arrived === 1 ? '1 new event' : `${arrived} new events`
  return warnings === 0 ? events : `${events}, ${warnings} of type Warning`
}
