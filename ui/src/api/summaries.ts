import type { Filters } from '../model/query.ts'
import type { Span } from '../model/range.ts'
import { fieldSelector } from '../model/selector.ts'
import type { ApiClient } from './client.ts'
import { computedPath } from './paths.ts'

export interface Bucket {
  readonly fromMs: number
  readonly toMs: number
  /** Occurrences by name: the types, or what `by` says. */
  readonly counts: ReadonlyMap<string, number>
}

export interface HistogramOptions {
  readonly filters: Filters
  readonly span: Span
  readonly buckets: number
  readonly by?: string | undefined
  /** Only so many names have counts of their own. */
  readonly limit?: number | undefined
  readonly signal?: AbortSignal | undefined
}

interface HistogramList {
  readonly items?:
    | readonly {
        readonly startTime?: string
        readonly endTime?: string
        readonly counts?: readonly { readonly name?: string; readonly occurrences?: number }[]
      }[]
    | null
}

/** How many events were seen in each part of the span. */
export async function histogram(
  client: ApiClient,
  { filters, span, buckets, by, limit, signal }: HistogramOptions,
): Promise<readonly Bucket[]> {
  const parameters: Record<string, string> = {
    fieldSelector: fieldSelector(filters, span),
    buckets: String(buckets),
    ...(by === undefined ? {} : { by }),
    ...(limit === undefined ? {} : { limit: String(limit) }),
  }
  const path = computedPath(filters, 'eventhistograms')
  const list = await client.get<HistogramList>(path, { parameters, signal })
  return (list.items ?? []).map(({ startTime = '', endTime = '', counts = [] }) => ({
    fromMs: Date.parse(startTime),
    toMs: Date.parse(endTime),
    counts: new Map(counts.map(({ name = '', occurrences = 0 }) => [name, occurrences])),
  }))
}
