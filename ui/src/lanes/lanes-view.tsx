import '../styles/lanes.css'
import type { JSX } from 'preact'
import { useMemo, useRef } from 'preact/hooks'
import { type EventPage, listPages } from '../api/events.ts'
import type { EventRow } from '../model/event-row.ts'
import { counted } from '../model/numbers.ts'
import { LANE_SORTS, type LaneSort, type Query, questionOf } from '../model/query.ts'
import { type Span, spanOf, zoomed } from '../model/range.ts'
import { localTime } from '../model/times.ts'
import { FilterCopyMenu } from '../parts/copy-menu.tsx'
import { usePage } from '../parts/page.ts'
import { EmptyPanel, ErrorPanel } from '../parts/panels.tsx'
import { DataNotes } from '../parts/server/data-notes.tsx'
import { HistoryNote } from '../parts/server/history-note.tsx'
import { HorizonNote } from '../parts/server/horizon-note.tsx'
import { useLoad } from '../parts/use-load.ts'
import { LaneBoard } from './lane-board.tsx'
import { type Lane, lanesOf, sortedLanes } from './lanes.ts'

/**
 * The most rows that a browser draws smoothly and a person reads. A narrower filter or range shows
 * older ones.
 */
const ROWS_MAX = 5_000
const LANES_MAX = 500

/** A constant array, so that memoised values do not change. */
const NO_ROWS: readonly EventRow[] = []

interface LoadedPages extends Pick<EventPage, 'rows' | 'reachedMs'> {
  readonly isLoading: boolean
}

const SORT_TEXTS: Readonly<Record<LaneSort, string>> = {
  newest: 'newest activity',
  warnings: 'most Warnings',
  name: 'name',
}

/** Shows what happened to which object, side by side. */
export function LanesView(): JSX.Element {
  const { client, query, nowMs, refresh, change } = usePage()
  const span = useMemo(() => spanOf(query.range, nowMs), [query.range, nowMs])
  const load = useLoad<EventPage>(
    (signal, onPage, before) =>
      listPages(client, {
        ...{ filters: query, span, order: 'newest' },
        ...{ rowsMax: ROWS_MAX, before, signal, onPage },
      }),
    { what: [client, questionOf(query)], when: [nowMs] },
  )
  const { data, error, isLoading } = load
  const pages: LoadedPages = { rows: NO_ROWS, reachedMs: undefined, ...data, isLoading }
  const { rows } = pages
  const { sort = 'newest' } = query
  const all = useMemo(() => lanesOf(rows), [rows])
  const lanes = useMemo(() => sortedLanes(all, sort).slice(0, LANES_MAX), [all, sort])
  const placeMs = useRef<number | undefined>(undefined)
  const zoomTo = (range: Span): void => change({ range })
  const zoomBy = (factor: number): void => {
    zoomTo(zoomed(span, { factor, centreMs: placeMs.current, nowMs }))
  }
  if (error !== undefined && rows.length === 0) {
    return (
      <>
        <h1 class="hidden">Lanes</h1>
        <ErrorPanel error={error} onRetry={refresh} isBusy={isLoading} />
      </>
    )
  }
  return (
    <>
      <h1 class="hidden">Lanes</h1>
      <DataNotes bases={[data?.basis]} isBusy={isLoading} />
      <HistoryNote
        fromMs={span.fromMs}
        works={[load]}
        reachedMs={load.isPart ? pages.reachedMs : undefined}
      />
      <LaneTools {...{ query, span, pages, zoomBy }} />
      <LaneStatus {...{ pages, lanes, span }} objects={all.length} />
      {error !== undefined && <ErrorPanel error={error} onRetry={refresh} isBusy={isLoading} />}
      {data?.rows.length === 0 && !isLoading && !load.isPart ? (
        <EmptyPanel title="No events in this range">
          Choose a longer range, or fewer filters.
        </EmptyPanel>
      ) : (
        <LaneBoard
          {...{ lanes, span }}
          coveredFromMs={pages.reachedMs ?? span.fromMs}
          onZoom={zoomTo}
          onPlace={(ms) => {
            placeMs.current = ms
          }}
        />
      )}
      <HorizonNote span={span} />
    </>
  )
}

interface LaneToolsProps {
  readonly query: Query
  readonly span: Span
  readonly pages: LoadedPages
  readonly zoomBy: (factor: number) => void
}

function LaneTools({ query, span, pages, zoomBy }: LaneToolsProps): JSX.Element {
  const { change } = usePage()
  const { sort = 'newest' } = query
  return (
    <div class="lanes-tools">
      <label>
        Sort by{' '}
        <select
          value={sort}
          onChange={({ currentTarget }) => {
            const chosen = LANE_SORTS.find((one) => one === currentTarget.value) ?? 'newest'
            change({ sort: chosen }, { isMinor: true })
          }}
        >
          {LANE_SORTS.map((one) => (
            <option key={one} value={one}>
              {SORT_TEXTS[one]}
            </option>
          ))}
        </select>
      </label>
      <span class="lanes-zoom">
        <button type="button" onClick={() => zoomBy(0.5)}>
          Zoom in
        </button>
        <button type="button" onClick={() => zoomBy(2)}>
          Zoom out
        </button>
      </span>
      <FilterCopyMenu span={span} rows={pages.rows} hasMore={pages.reachedMs !== undefined} />
    </div>
  )
}

/** Says how much of the range is shown. */
function LaneStatus({
  pages,
  lanes,
  objects,
}: {
  readonly pages: LoadedPages
  readonly lanes: readonly Lane[]
  readonly objects: number
}): JSX.Element {
  const { rows, isLoading, reachedMs } = pages
  const parts = [`${counted(rows.length, 'event')} of ${counted(objects, 'object')}`]
  if (isLoading) parts.push('loading…')
  if (reachedMs !== undefined && !isLoading) {
    const back = localTime(reachedMs)
    parts.push(`only the newest events, back to ${back}; narrow the range or the filter`)
  }
  if (lanes.length < objects) parts.push(`only the first ${lanes.length} objects are shown`)
  return (
    <p class="lanes-status" role="status">
      {parts.join('; ')}
    </p>
  )
}
