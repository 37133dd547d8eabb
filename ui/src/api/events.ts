import { type CoreEvent, type EventRow, eventRow, isMuch } from '../model/event-row.ts'
import type { Filters } from '../model/query.ts'
import type { Span } from '../model/range.ts'
import { fieldSelector } from '../model/selector.ts'
import { askWithMemory, type Basis } from './answer.ts'
import type { ApiClient } from './client.ts'
import { eventsPath } from './paths.ts'

export interface EventPage {
  readonly rows: readonly EventRow[]
  /** Token of the next page; empty on the last page. */
  readonly next: string
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
  return {
    rows: (result.items ?? []).map((event) => eventRow(event, filters)),
    next: result.metadata?.continue ?? '',
    resourceVersion: result.metadata?.resourceVersion ?? '',
    basis,
  }
}

/** Several pages of one list. */
export interface EventPages {
  readonly rows: readonly EventRow[]
  /** True if there are more events that were not loaded. */
  readonly hasMore: boolean
  /** From the first page: all pages show the same state. */
  readonly basis: Basis
}

export interface PagesOptions extends EventQuery {
  /** No further page is loaded once there are this many rows, or the rows are large. */
  readonly rowsMax: number
  readonly signal: AbortSignal
  /** Called with the rows loaded so far after every page except the last one. */
  readonly onPage?: (pages: EventPages) => void
}

/** The server's maximum page length. */
const PAGE_ROWS = 500

/** Loads pages of one state of the server until the end of the list or a limit. */
export async function listPages(
  client: Pick<ApiClient, 'get'>,
  options: PagesOptions,
): Promise<EventPages> {
  const { rowsMax, onPage } = options
  const first = await listEvents(client, { ...options, limit: PAGE_ROWS })
  const { basis } = first
  let { rows, next } = first
  while (next !== '' && rows.length < rowsMax && !isMuch(rows)) {
    onPage?.({ rows, hasMore: true, basis })
    const page = await listEvents(client, { ...options, limit: PAGE_ROWS, after: next })
    rows = [...rows, ...page.rows]
    next = page.next
  }
  return { rows, hasMore: next !== '', basis }
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
