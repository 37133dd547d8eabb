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

export interface ListOptions {
  readonly filters: Filters
  readonly span?: Partial<Span> | undefined
  readonly order: 'newest' | 'oldest'
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
export async function listEvents(client: ApiClient, options: ListOptions): Promise<EventPage> {
  const { filters, span, order, limit, after, signal } = options
  const parameters: Record<string, string> = { order, limit: String(limit) }
  const selector = fieldSelector(filters, span)
  if (selector !== '') parameters['fieldSelector'] = selector
  if (after !== undefined && after !== '') parameters['continue'] = after
  const list = await client.get<CoreEventList>(eventsPath(filters), { parameters, signal })
  return {
    rows: (list.items ?? []).map(eventRow),
    next: list.metadata?.continue ?? '',
    resourceVersion: list.metadata?.resourceVersion ?? '',
  }
}
