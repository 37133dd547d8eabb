import { type CoreEvent, type EventRow, eventRow, isMuch } from '../model/event-row.ts'
import type { Filters } from '../model/query.ts'
import type { Span } from '../model/range.ts'
import { fieldSelector } from '../model/selector.ts'
import { searchedBackTo } from '../model/server/warnings.ts'
import { askWithMemory, type Basis } from './answer.ts'
import type { ApiClient } from './client.ts'
import { eventsPath } from './paths.ts'

/** One page of a list, or several from its beginning. */
export interface EventPage {
  readonly rows: readonly EventRow[]
  /** Token of the next page; empty on the last page. */
  readonly next: string
  /** How far back events were listed or searched for; undefined at the end of the list. */
  readonly reachedMs: number | undefined
  /** A watch from this version misses no change. */
  readonly resourceVersion: string
  readonly basis: Basis
}

/** Selects and orders events. */
export interface EventQuery {
  readonly filters: Filters
  readonly span?: Partial<Span> | undefined
  /** Additional terms of the field selector. */
  readonly terms?: readonly string[] | undefined
  readonly order: 'newest' | 'oldest'
}

export interface ListOptions extends EventQuery {
  /** At most 500. */
  readonly limit: number
  /** `next` of the previous page. */
  readonly after?: string | undefined
  readonly signal?: AbortSignal | undefined
}

interface CoreEventList {
  readonly metadata?: { readonly continue?: string; readonly resourceVersion?: string }
  readonly items?: readonly CoreEvent[] | null
}

/** Returns one page of a list in time order. */
export async function listEvents(
  client: Pick<ApiClient, 'get'>,
  options: ListOptions,
): Promise<EventPage> {
  const { filters, limit, after, signal } = options
  const parameters = listParameters(options, limit)
  if (after !== undefined && after !== '') parameters['continue'] = after
  const path = eventsPath(filters)
  const { result, basis } = await askWithMemory<CoreEventList>(client, path, { parameters, signal })
  const rows = (result.items ?? []).map((event) => eventRow(event, filters))
  const next = result.metadata?.continue ?? ''
  const [searchedMs] = basis.warnings.flatMap((text) => searchedBackTo(text) ?? [])
  return {
    rows,
    next,
    reachedMs: searchedMs ?? (next === '' ? undefined : rows.at(-1)?.lastMs),
    resourceVersion: result.metadata?.resourceVersion ?? '',
    basis: {
      ...basis,
      warnings: basis.warnings.filter((text) => searchedBackTo(text) === undefined),
    },
  }
}

export interface PagesOptions extends EventQuery {
  /** No further page is loaded once there are this many rows, or the rows are large. */
  readonly rowsMax: number
  /** The pages that were loaded before; the returned ones include them. */
  readonly before?: EventPage | undefined
  /** `next` of the page before the first one to load. */
  readonly after?: string | undefined
  readonly signal: AbortSignal
  /** Called with the pages loaded so far after every page except the last one. */
  readonly onPage?: ((pages: EventPage) => void) | undefined
}

/** The server's maximum page length. */
const PAGE_ROWS = 500

/**
 * Loads pages of one state of the server until the end of the list or a limit. A page of history may
 * have fewer rows than were asked for, or none.
 */
export async function listPages(
  client: Pick<ApiClient, 'get'>,
  options: PagesOptions,
): Promise<EventPage> {
  const { rowsMax, before, onPage } = options
  let pages = before
  while (pages === undefined || !isEnough(pages, rowsMax)) {
    if (pages !== undefined && pages !== before) onPage?.(pages)
    const { rows = [], next: after = options.after } = pages ?? {}
    const limit = Math.min(PAGE_ROWS, rowsMax - rows.length)
    const page = await listEvents(client, { ...options, limit, after })
    // All pages show the state of the first.
    pages = { ...page, rows: [...rows, ...page.rows], basis: pages?.basis ?? page.basis }
  }
  return pages
}

function isEnough({ rows, next }: EventPage, rowsMax: number): boolean {
  return next === '' || rows.length >= rowsMax || isMuch(rows)
}

export function selectorOf({ filters, span, terms = [] }: EventQuery): string {
  return [fieldSelector(filters, span), ...terms].filter((term) => term !== '').join(',')
}

/** The URL of a list's first page. */
export function listUrl(client: ApiClient, query: EventQuery, limit: number): string {
  return client.url(eventsPath(query.filters), listParameters(query, limit))
}

function listParameters(query: EventQuery, limit: number): Record<string, string> {
  const selector = selectorOf(query)
  return {
    order: query.order,
    limit: String(limit),
    ...(selector === '' ? {} : { fieldSelector: selector }),
  }
}
