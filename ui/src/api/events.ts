import { type CoreEvent, type EventRow, eventRow, isMuch } from '../model/event-row.ts'
import type { Filters } from '../model/query.ts'
import type { Span } from '../model/range.ts'
import { fieldSelector } from '../model/selector.ts'
import { askWithMemory, type Basis } from './answer.ts'
import type { ApiClient } from './client.ts'
import { eventsPath } from './paths.ts'

export interface EventPage {
  readonly rows: readonly EventRow[]
  /** Continues the list; empty at its end. */
  readonly next: string
  /** A watch from this version on misses nothing. */
  readonly resourceVersion: string
  readonly basis: Basis
}

/** Which events, in which order. */
export interface EventQuery {
  readonly filters: Filters
  readonly span?: Partial<Span> | undefined
  /** Further terms of the field selector. */
  readonly terms?: readonly string[] | undefined
  readonly order: 'newest' | 'oldest'
}

export interface ListOptions extends EventQuery {
  /** At most 500. */
  readonly limit: number
  /** `next` of the page before. */
  readonly after?: string | undefined
  readonly signal?: AbortSignal | undefined
}

interface CoreEventList {
  readonly metadata?: { readonly continue?: string; readonly resourceVersion?: string }
  readonly items?: readonly CoreEvent[] | null
}

/** One page of a list in the order of time. */
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

/** Several pages of a list. */
export interface EventPages {
  readonly rows: readonly EventRow[]
  /** There are events behind these, which are not loaded. */
  readonly hasMore: boolean
  /** Of the first page: the others are of the same state. */
  readonly basis: Basis
}

export interface PagesOptions extends EventQuery {
  /** No page is loaded when there are so many rows, or rows with many bytes. */
  readonly rowsMax: number
  readonly signal: AbortSignal
  /** Called with what there is after each page but the last one. */
  readonly onPage?: (pages: EventPages) => void
}

/** The longest page that the page asks for. */
const PAGE_ROWS = 500

/** Page after page of one state of the server, until the end or a limit. */
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

/** The URL of the first page of a list. */
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
