import '../styles/overview.css'
import type { JSX } from 'preact'
import { useEffect, useMemo, useState } from 'preact/hooks'
import { counted } from '../model/numbers.ts'
import { FILTERS, NO_FILTERS } from '../model/query.ts'
import { spanOf } from '../model/range.ts'
import { localTime } from '../model/times.ts'
import { FilterCopyMenu } from '../parts/copy-menu.tsx'
import { EventList } from '../parts/events/event-list.tsx'
import { useHold, usePage } from '../parts/page.ts'
import { EmptyPanel, ErrorPanel } from '../parts/panels.tsx'
import { DataNotes } from '../parts/server/data-notes.tsx'
import { HorizonNote } from '../parts/server/horizon-note.tsx'
import { Histogram } from './histogram.tsx'
import { OlderButton } from './older-button.tsx'
import { useBars } from './use-bars.ts'
import { type NewestEvents, useNewestEvents } from './use-newest-events.ts'
import { useZoom } from './use-zoom.ts'

/** Shows when something happened, and what. */
export function OverviewView(): JSX.Element {
  const { query, refresh, nowMs, announce } = usePage()
  const bars = useBars()
  const events = useNewestEvents()
  const { zoomIn, zoomOut } = useZoom()
  const { rows, isLoading } = events
  // A user who may read events is not necessarily allowed to count them.
  const isUncounted = bars.error?.code === 403
  // List errors are shown once; a histogram error is shown separately.
  const error = events.error ?? (isUncounted ? undefined : bars.error)
  const isBusy = isLoading || bars.isLoading
  useEffect(() => {
    if (rows !== undefined && !isLoading) announce(listedText(rows.length))
  }, [isLoading, nowMs])
  const loadedAt = useMemo(() => localTime(Date.now()).slice(11), [rows])
  const isRefused = events.error?.code === 403 || events.error?.code === 400
  return (
    <>
      <h1 class="hidden">Overview</h1>
      {error !== undefined && <ErrorPanel error={error} onRetry={refresh} isBusy={isBusy} />}
      <DataNotes bases={[events.basis, bars.basis]} isBusy={isBusy} />
      {!isRefused && (
        <>
          {events.error !== undefined && rows !== undefined && rows.length > 0 && (
            <p>Below is what was loaded at {loadedAt}.</p>
          )}
          {isUncounted ? (
            <p class="muted">
              There is no histogram: you may read these events, but not their counts (the resource
              eventhistograms of tidings.dev).
            </p>
          ) : (
            <Histogram
              bars={bars.data}
              isLoading={bars.isLoading}
              hasFailed={bars.error !== undefined}
              onZoom={zoomIn}
              onZoomOut={zoomOut}
            />
          )}
          <HorizonNote span={spanOf(query.range, nowMs)} />
          {rows !== undefined && rows.length > 0 && (
            <FilterCopyMenu
              span={spanOf(query.range, nowMs)}
              rows={rows}
              hasMore={events.hasOlder}
            />
          )}
          <Events events={events} hasFailed={error !== undefined} />
        </>
      )}
    </>
  )
}

function listedText(count: number): string {
  return `${counted(count, 'event')} ${count === 1 ? 'is' : 'are'} listed`
}

interface EventsProps {
  readonly events: NewestEvents
  /** True if an error is shown, which "no events" would contradict. */
  readonly hasFailed: boolean
}

function Events({ events, hasFailed }: EventsProps): JSX.Element | null {
  const { rows, isLoading, error, isFurther } = events
  const [isAnyOpen, setIsAnyOpen] = useState(false)
  // A refresh would move the rows that the user is reading.
  useHold(isAnyOpen || isFurther)
  useHold(useIsScrolled())
  if (rows === undefined) {
    const waiting = (
      <p class="list-end" aria-busy="true">
        Loading…
      </p>
    )
    return error === undefined ? waiting : null
  }
  if (rows.length === 0) return hasFailed ? null : <NoEvents />
  return (
    <>
      <EventList rows={rows} label="Events" isBusy={isLoading} onOpen={setIsAnyOpen} />
      <OlderButton events={events} />
    </>
  )
}

function NoEvents(): JSX.Element {
  const { query, change } = usePage()
  const isFiltered = FILTERS.some((name) => query[name] !== '')
  return (
    <EmptyPanel title={isFiltered ? 'No events match the filters' : 'No events in this range'}>
      {isFiltered && (
        <button type="button" onClick={() => change(NO_FILTERS)}>
          Clear all filters
        </button>
      )}
    </EmptyPanel>
  )
}

/** Scroll position beyond which the user has left the top of the list. */
const SCROLLED_PX = 300

function useIsScrolled(): boolean {
  const [isScrolled, setIsScrolled] = useState(false)
  useEffect(() => {
    const onScroll = (): void => setIsScrolled(window.scrollY > SCROLLED_PX)
    window.addEventListener('scroll', onScroll, { passive: true })
    return () => window.removeEventListener('scroll', onScroll)
  }, [])
  return isScrolled
}
