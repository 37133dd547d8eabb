import type { JSX } from 'preact'
import { listEvents } from '../api/events.ts'
import { spanOf } from '../model/range.ts'
import { EventList } from '../parts/events/event-list.tsx'
import { usePage } from '../parts/page.ts'
import { EmptyPanel, ErrorPanel } from '../parts/panels.tsx'
import { useLoad } from '../parts/use-load.ts'

const PAGE_ROWS = 100

/** When something happened, and what. */
export function OverviewView(): JSX.Element {
  const { client, query, nowMs, refresh } = usePage()
  const { data, error, isLoading } = useLoad(
    (signal) =>
      listEvents(client, {
        filters: query,
        span: spanOf(query.range, nowMs),
        order: 'newest',
        limit: PAGE_ROWS,
        signal,
      }),
    [client, query, nowMs],
  )
  if (error !== undefined) return <ErrorPanel error={error} onRetry={refresh} />
  const rows = data?.rows ?? []
  return (
    <>
      <h1 class="hidden">Overview</h1>
      {!isLoading && rows.length === 0 && <EmptyPanel title="No events in this range" />}
      {rows.length > 0 && <EventList rows={rows} label="Events" isBusy={isLoading} />}
    </>
  )
}
