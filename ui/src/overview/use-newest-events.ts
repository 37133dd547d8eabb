/**
 * The newest events, and older ones page by page. All pages show one state of the server for as
 * long as it retains that state: a user who returns after a minute continues after the last row
 * shown.
 */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { Basis } from '../api/answer.ts'
import { ApiError, asApiError } from '../api/api-error.ts'
import { type ApiClient, isAborted } from '../api/client.ts'
import { type EventPage, type EventQuery, listPages, type PagesOptions } from '../api/events.ts'
import { type EventRow, isMuch } from '../model/event-row.ts'
import { questionOf } from '../model/query.ts'
import { listedSpan } from '../model/range.ts'
import { usePage } from '../parts/page.ts'
import { type Loaded, useLoad, type Work } from '../parts/use-load.ts'

/** Small, so that the first page is fast. */
const FIRST_ROWS = 100
const OLDER_ROWS = 250
/** More rows would make the page slow, and nobody reads them. */
const ROWS_MAX = 2_000

export interface NewestEvents extends Omit<Loaded<unknown>, 'data'> {
  /** Undefined before the first load. */
  readonly rows: readonly EventRow[] | undefined
  readonly basis: Basis | undefined
  readonly hasOlder: boolean
  /** How far back events were searched for; undefined at the end of the list. */
  readonly reachedMs: number | undefined
  /** True if no further pages are loaded because they would make the page slow or the tab large. */
  readonly isFull: boolean
  /** Whether rows of further pages are shown. */
  readonly isFurther: boolean
  /** Loads further pages. */
  readonly older: Work
  readonly olderError: ApiError | undefined
  readonly loadOlder: () => void
}

/** The first page with its query: later pages belong to the same query. */
interface FirstPage extends EventPage {
  readonly asked: EventQuery
}

interface Older extends Pick<EventPage, 'rows' | 'next' | 'reachedMs'> {
  /** The first page that these rows follow. */
  readonly first: FirstPage | undefined
  readonly isLoading: boolean
  readonly isCancelled: boolean
  readonly error: ApiError | undefined
}

export function useNewestEvents(): NewestEvents {
  const { client, query, nowMs } = usePage()
  const { data, ...load } = useLoad<FirstPage>(
    async (signal, show, before) => {
      const span = listedSpan(query.range, nowMs)
      const asked: EventQuery = before?.asked ?? { filters: query, order: 'newest', span }
      const onPage = (page: EventPage): void => show({ ...page, asked })
      const options = { ...asked, rowsMax: FIRST_ROWS, before, signal, onPage }
      return { ...(await listPages(client, options)), asked }
    },
    { what: [client, questionOf(query)], when: [nowMs] },
  )
  const { older, loadOlder, cancelOlder } = useOlder(client, data)
  const isFull = useMemo(() => older.rows.length >= ROWS_MAX || isMuch(older.rows), [older.rows])
  return {
    rows: data === undefined ? undefined : older.rows,
    basis: data?.basis,
    ...load,
    hasOlder: older.next !== '',
    reachedMs: older.reachedMs,
    isFull,
    isFurther: older.rows.length > (data?.rows.length ?? 0),
    older: { ...older, cancel: cancelOlder, goOn: loadOlder },
    olderError: older.error,
    loadOlder,
  }
}

/** The rows of the first page and those after them. */
function useOlder(
  client: ApiClient,
  first: FirstPage | undefined,
): { readonly older: Older; readonly loadOlder: () => void; readonly cancelOlder: () => void } {
  const [state, setState] = useState<Older>(() => olderAfter(first))
  const controller = useRef<AbortController>(undefined)
  useEffect(() => () => controller.current?.abort(), [first])
  const older = state.first === first ? state : olderAfter(first)
  const loadOlder = async (): Promise<void> => {
    if (first === undefined || older.isLoading || older.next === '') return
    controller.current = new AbortController()
    const { signal } = controller.current
    const begun = { ...older, isLoading: true, isCancelled: false, error: undefined }
    setState(begun)
    const add = ({ rows, next, reachedMs }: EventPage, isLoading: boolean): void => {
      if (signal.aborted) return
      const all = [...older.rows, ...withoutKnown(rows, older.rows)]
      setState({ ...begun, rows: all, next, reachedMs, isLoading })
    }
    const onPage = (page: EventPage): void => add(page, true)
    try {
      const page = await loadBehind(older, (options) =>
        listPages(client, { ...first.asked, ...options, signal, onPage }),
      )
      add(page, false)
    } catch (error) {
      if (signal.aborted || isAborted(error)) return
      setState((now) => ({ ...now, isLoading: false, error: asApiError(error) }))
    }
  }
  const cancelOlder = (): void => {
    if (!older.isLoading) return
    controller.current?.abort()
    setState({ ...older, isLoading: false, isCancelled: true })
  }
  return { older, loadOlder, cancelOlder }
}

function olderAfter(first: FirstPage | undefined): Older {
  const { rows = [], next = '', reachedMs } = first ?? {}
  return { first, rows, next, reachedMs, isLoading: false, isCancelled: false, error: undefined }
}

async function loadBehind(
  { first, rows, next }: Older,
  load: (page: Pick<PagesOptions, 'rowsMax' | 'after' | 'span'>) => Promise<EventPage>,
): Promise<EventPage> {
  const rowsMax = Math.min(OLDER_ROWS, Math.max(1, ROWS_MAX - rows.length))
  try {
    return await load({ rowsMax, after: next, span: first?.asked.span })
  } catch (error) {
    const last = rows.at(-1)
    if (!(error instanceof ApiError && error.code === 410) || last === undefined) throw error
    // The server no longer has the state of the first page. Rows with the same time are returned again.
    return load({ rowsMax, span: { ...first?.asked.span, toMs: last.lastMs + 1 } })
  }
}

/** Returns the rows that are not among the others. */
function withoutKnown(rows: readonly EventRow[], others: readonly EventRow[]): readonly EventRow[] {
  const known = new Set(others.map(({ key }) => key))
  return rows.filter(({ key }) => !known.has(key))
}
