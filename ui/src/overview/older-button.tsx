import type { JSX } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { ErrorPanel } from '../parts/panels.tsx'
import type { NewestEvents } from './use-newest-events.ts'

/** How near the end of the list must be to load what follows. */
const NEAR = '600px'

/** Leads to older events: when it is pressed, or when the user scrolls near it. */
export function OlderButton({ events }: { readonly events: NewestEvents }): JSX.Element | null {
  const button = useRef<HTMLButtonElement>(null)
  const { rows = [], hasOlder, isFull, isLoading, isLoadingOlder, olderError, loadOlder } = events
  const latest = useRef(loadOlder)
  latest.current = loadOlder
  useEffect(() => {
    const element = button.current
    // A failure is not repeated until the user asks for it.
    if (element === null || isLoading || isLoadingOlder || olderError !== undefined) return
    const observer = new IntersectionObserver(
      (entries) => {
        // A short list shows the button at once; whoever has scrolled wants more.
        if (entries.some((entry) => entry.isIntersecting) && window.scrollY > 0) latest.current()
      },
      { rootMargin: NEAR },
    )
    observer.observe(element)
    return () => observer.disconnect()
  }, [rows, isLoading, isLoadingOlder, olderError])
  if (!hasOlder) return null
  if (isFull) {
    return (
      <p class="list-end">
        These are the newest {rows.length.toLocaleString('en')} events. Choose a shorter range or
        more filters to see others.
      </p>
    )
  }
  return (
    <div class="list-end">
      {olderError !== undefined && <ErrorPanel error={olderError} onRetry={loadOlder} isManual />}
      <button ref={button} type="button" onClick={loadOlder}>
        {isLoadingOlder ? 'Loading…' : 'Show older'}
      </button>
    </div>
  )
}
