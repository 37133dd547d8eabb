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
import { HistoryNote } from '../parts/server/history-note.tsx'
import { HorizonNote } from '../parts/server/horizon-note.tsx'
import { Histogram } from './histogram.tsx'
import { IncidentTable } from './incident-table.tsx'
import { OlderButton } from './older-button.tsx'
import { useBars } from './use-bars.ts'
import { useIncidents } from './use-incidents.ts'
import { type NewestEvents, useNewestEvents } from './use-newest-events.ts'
import { useZoom } from './use-zoom.ts'

/** Shows what is going on, when it began, and each event. */
export function OverviewView(): JSX.Element {
  const { query, refresh, nowMs, announce } = usePage()
  const bars = useBars()
  const events = useNewestEvents()
  // Last, since the server computes one answer per user at a time.
  const incidents = useIncidents()
  const { zoomIn, zoomOut } = useZoom()
  const { rows, isLoading } = events
  // A user who may read events is not necessarily allowed to count them.
  const isUncounted = bars.error?.code === 403
  const isUnsummarized = incidents.error?.code === 403
  // One error is enough: the others mostly have the same cause.
  const error =
    events.error ??
    (isUncounted ? undefined : bars.error) ??
    (isUnsummarized ? undefined : incidents.error)
  const isBusy = isLoading || bars.isLoading || incidents.isLoading
  useEffect(() => {
    if (rows !== undefined && !isLoading) announce(listedText(rows.length))
  }, [isLoading, nowMs])
  const loadedAt = useMemo(() => localTime(Date.now()).slice(11), [rows])
  const isRefused = events.error?.code === 403 || events.error?.code === 400
  return (
    <>
      <h1 class="hidden">Overview</h1>
      {error !== undefined && <ErrorPanel error={error} onRetry={refresh} isBusy={isBusy} />}
      <DataNotes bases={[events.basis, bars.basis, incidents.data?.basis]} isBusy={isBusy} />
      <HistoryNote
        fromMs={spanOf(query.range, nowMs).fromMs}
        works={[bars, events, incidents]}
        reachedMs={events.isPart ? events.reachedMs : undefined}
      />
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
              hasFailed={bars.error !== undefined || bars.isCancelled}
              onZoom={zoomIn}
              onZoomOut={zoomOut}
            />
          )}
          {isUnsummarized ? (
            <p class="muted">
              There are no incidents: you may read these events, but not their summaries (the
              resource eventsummaries of tidings.dev).
            </p>
          ) : (
            <IncidentTable incidents={incidents} />
          )}
          <HorizonNote span={spanOf(query.range, nowMs)} />
          {rows !== undefined && rows.length > 0 && (
            <FilterCopyMenu
              span={spanOf(query.range, nowMs)}
              rows={rows}
              hasMore={events.hasOlder}
            />
          )}
          <Events
            events={events}
            hasFailed={error !== undefined}
            isOngoing={(incidents.data?.groups.length ?? 0) > 0}
          />
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
  /** True if something happened in the range, whenever it was last seen. */
  readonly isOngoing: boolean
}

function Events({ events, hasFailed, isOngoing }: EventsProps): JSX.Element | null {
  const { rows, isLoading, isCancelled, isPart, error, isFurther } = events
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
    return error === undefined && !isCancelled ? waiting : null
  }
  if (rows.length === 0) {
    if (hasFailed || isPart) return null
    return isOngoing ? <OnlyLaterEvents /> : <NoEvents />
  }
  return (
    <>
      <EventList rows={rows} label="Events" isBusy={isLoading} onOpen={setIsAnyOpen} />
      <OlderButton events={events} />
    </>
  )
}

function OnlyLaterEvents(): JSX.Element {
  return (
    <EmptyPanel title="No event was last seen in this range">
      Those of the incidents above were seen again after it: choose a range that ends now to list
      them.
    </EmptyPanel>
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
