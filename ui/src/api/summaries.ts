import type { Filters } from '../model/query.ts'
import type { Span } from '../model/range.ts'
import { fieldSelector } from '../model/selector.ts'
import { timeOf } from '../model/times.ts'
import { askWithMemory, type Basis } from './answer.ts'
import type { ApiClient } from './client.ts'
import { computedPath } from './paths.ts'

export interface Bucket {
  readonly fromMs: number
  readonly toMs: number
  /** Occurrences keyed by type, or by the field that `by` names. */
  readonly counts: ReadonlyMap<string, number>
  /** The names whose counts are estimated. */
  readonly estimated: ReadonlySet<string>
}

export interface HistogramOptions {
  readonly filters: Filters
  readonly span: Span
  readonly buckets: number
  readonly by?: string | undefined
  /** Maximum number of names with their own count. */
  readonly limit?: number | undefined
  readonly signal?: AbortSignal | undefined
}

interface BucketCount {
  readonly name?: string
  readonly occurrences?: number
  readonly estimated?: boolean
}

interface HistogramList {
  readonly items?:
    | readonly {
        readonly startTime?: string
        readonly endTime?: string
        readonly counts?: readonly BucketCount[]
      }[]
    | null
}

/** Returns how many events were seen in each part of the span. */
export async function histogram(
  client: ApiClient,
  { filters, span, buckets, by, limit, signal }: HistogramOptions,
): Promise<{ readonly buckets: readonly Bucket[]; readonly basis: Basis }> {
  const parameters: Record<string, string> = {
    fieldSelector: fieldSelector(filters, span),
    buckets: String(buckets),
    ...(by === undefined ? {} : { by }),
    ...(limit === undefined ? {} : { limit: String(limit) }),
  }
  const path = computedPath(filters, 'eventhistograms')
  const { result, basis } = await askWithMemory<HistogramList>(client, path, { parameters, signal })
  const found = (result.items ?? []).map(({ startTime, endTime, counts = [] }) => ({
    fromMs: timeOf(startTime) ?? 0,
    toMs: timeOf(endTime) ?? 0,
    counts: new Map(counts.map(({ name = '', occurrences = 0 }) => [name, occurrences])),
    estimated: new Set(
      counts.filter(({ estimated }) => estimated === true).map(({ name = '' }) => name),
    ),
  }))
  return { buckets: found, basis }
}

/** Events with the same values. */
export interface SourceGroup {
  /** Keyed by the fields of `groupBy`. */
  readonly values: Readonly<Record<string, string>>
  readonly occurrences: number
  /** Whether some occurrences may have been outside of the span, or others within it. */
  readonly isEstimated: boolean
  /** Number of occurrences of type Warning. */
  readonly warnings: number
  readonly events: number
  readonly objects: number
  /**
   * Writes per minute, measured over about the last minute; filters do not apply. Undefined if
   * unknown.
   */
  readonly ratePerMinute: number | undefined
  readonly firstMs: number | undefined
  readonly lastMs: number | undefined
  /** Of the event that was seen last. */
  readonly note: string
}

export interface SummaryOptions {
  readonly filters: Filters
  /** Undefined for all events; without filters, that includes writers that have no event left. */
  readonly span?: Partial<Span> | undefined
  /** Fields, separated by commas. */
  readonly groupBy: string
  /** `newest` puts groups with Warnings first, then those that began last. */
  readonly order: 'count' | 'newest' | 'rate'
  readonly limit: number
  readonly signal?: AbortSignal | undefined
}

interface SummaryList {
  readonly items?:
    | readonly {
        readonly group?: Readonly<Record<string, string>>
        readonly occurrences?: number
        readonly estimated?: boolean
        readonly warnings?: number
        readonly events?: number
        readonly objects?: number
        readonly ratePerMinute?: number
        readonly firstTime?: string
        readonly lastTime?: string
        readonly sampleNote?: string
      }[]
    | null
}

/** Returns the first groups in the given order. */
export async function summary(
  client: ApiClient,
  { filters, span, groupBy, order, limit, signal }: SummaryOptions,
): Promise<{ readonly groups: readonly SourceGroup[]; readonly basis: Basis }> {
  const selector = fieldSelector(filters, span)
  const parameters: Record<string, string> = {
    ...(selector === '' ? {} : { fieldSelector: selector }),
    groupBy,
    order,
    limit: String(limit),
  }
  const path = computedPath(filters, 'eventsummaries')
  const { result, basis } = await askWithMemory<SummaryList>(client, path, { parameters, signal })
  const groups = (result.items ?? []).map(
    ({ group = {}, occurrences = 0, warnings = 0, events = 0, objects = 0, ...rest }) => ({
      ...{ values: group, occurrences, warnings, events, objects },
      isEstimated: rest.estimated === true,
      ratePerMinute: rest.ratePerMinute,
      firstMs: timeOf(rest.firstTime),
      lastMs: timeOf(rest.lastTime),
      note: rest.sampleNote ?? '',
    }),
  )
  return { groups, basis }
}
