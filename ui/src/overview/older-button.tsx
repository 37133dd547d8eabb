import type { JSX } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { spanOf } from '../model/range.ts'
import { usePage } from '../parts/page.ts'
import { ErrorPanel } from '../parts/panels.tsx'
import { HistoryNote } from '../parts/server/history-note.tsx'
import type { NewestEvents } from './use-newest-events.ts'

/** Distance from the end of the list at which the next page loads. */
const NEAR = '600px'

/** Loads older events when it is pressed, or when the user scrolls near it. */
export function OlderButton({ events }: { readonly events: NewestEvents }): JSX.Element | null {
  const { query, nowMs } = usePage()
  const button = useRef<HTMLButtonElement>(null)
  const { rows = [], hasOlder, isFull, isLoading, isPart, older, olderError, loadOlder } = events
  const { isLoading: isLoadingOlder, isCancelled } = older
  const latest = useRef(loadOlder)
  latest.current = loadOlder
  useEffect(() => {
    const element = button.current
    // After a failure, or when the user has cancelled it, only the user goes on.
    const isManual = olderError !== undefined || isCancelled
    if (element === null || isLoading || isLoadingOlder || isManual) return
    const observer = new IntersectionObserver(
      (entries) => {
        // The button of a short list is visible at once, so only scrolling means that the user wants more.
        if (entries.some((entry) => entry.isIntersecting) && window.scrollY > 0) latest.current()
      },
      { rootMargin: NEAR },
    )
    observer.observe(element)
    return () => observer.disconnect()
  }, [rows, isLoading, isLoadingOlder, olderError, isCancelled])
  // The first page goes on by itself, or with the button above.
  if (!hasOlder || isPart) return null
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
      <HistoryNote
        fromMs={spanOf(query.range, nowMs).fromMs}
        works={[older]}
        reachedMs={events.reachedMs}
        isOnlyProgress
      />
      {olderError !== undefined && <ErrorPanel error={olderError} onRetry={loadOlder} isManual />}
      {!isCancelled && (
        <button ref={button} type="button" onClick={loadOlder}>
          {isLoadingOlder ? 'Loading…' : 'Show older'}
        </button>
      )}
    </div>
  )
}
