import { type CoreEvent, type EventRow, eventRow } from '../model/event-row.ts'
import type { Filters } from '../model/query.ts'
import type { Span } from '../model/range.ts'
import { fieldSelector } from '../model/selector.ts'
import type { ApiClient } from './client.ts'
import { eventsPath } from './paths.ts'

export interface EventPage {
  readonly rows: readonly EventRow[]
  /** Continues the list; empty at its end. */
  readonly next: string
  /** A watch from this version on misses nothing. */
  readonly resourceVersion: string
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
  const list = await client.get<CoreEventList>(eventsPath(filters), { parameters, signal })
  return {
    rows: (list.items ?? []).map(eventRow),
    next: list.metadata?.continue ?? '',
    resourceVersion: list.metadata?.resourceVersion ?? '',
  }
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
