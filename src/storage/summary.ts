/** The contract of summaries: events counted by group, or by time. */
import type { Version } from './resource-version.ts'
import type { EventScope, EventSelector, ListOptions } from './storage.ts'

/** The fields that events can be grouped by, in the order in which groups show them. */
export const groupFields = [
  'cluster',
  'namespace',
  'workload',
  'type',
  'reason',
  'pattern',
  'kind',
  'object',
  'controller',
] as const

export type GroupField = (typeof groupFields)[number]

/** A histogram with more counts fails with `TooManyGroups`. */
export const GROUPS_MAX = 10_000

/** Longer notes are cut, in characters. A note of `core/v1` can be as long as an event. */
export const NOTE_MAX = 1_024

/** The name under which a histogram counts all values that have no counts of their own. */
export const OTHER_GROUP = '_other'

/** The summaries of one lane are computed one after the other. */
type ComputedOptions = Pick<ListOptions, 'notOlderThan' | 'signal' | 'lane'>

/** Occurrences from `sinceMs` on and before `untilMs`. Undefined: no bound. */
export interface TimeWindow {
  readonly sinceMs?: number | undefined
  readonly untilMs?: number | undefined
}

export interface SummaryOptions extends ComputedOptions {
  /** Has no bounds of time: those are in `window`. */
  readonly selector?: EventSelector | undefined
  /** The occurrences that are counted. Default: all. */
  readonly window?: TimeWindow | undefined
  /**
   * Only groups that are new since then: in this earlier window they occurred not at all, or at less
   * than a tenth of the rate. Both windows have bounds.
   */
  readonly newSince?: TimeWindow | undefined
  /** Default: groups with the most occurrences come first. */
  readonly order?: 'count' | 'newest' | undefined
  /** Distinct fields, in the order of `groupFields`. Empty: one group of all events. */
  readonly groupBy: readonly GroupField[]
  /** How many groups are returned. */
  readonly groupsMax: number
  /** Groups with the highest rank come first, before `order` decides. */
  readonly rankOf?: ((values: readonly string[]) => number) | undefined
}

export interface SummaryGroup {
  /**
   * The value of each field of `groupBy`. An object is `<kind>/<namespace>/<name>`, or `<kind>/<name>`;
   * a workload is `<kind>/<name>`. A long value is shortened to its beginning and a digest.
   */
  readonly values: readonly string[]
  /** If they are grouped by workload: what decided that the event that was seen last belongs to it. */
  readonly workloadRule?: string | undefined
  /** How often the events were observed, within the window. */
  readonly occurrences: number
  /** The occurrences in `newSince`, if there is one. */
  readonly before?: number | undefined
  /** Some occurrences are known only to lie between two times, one of them outside of the window. */
  readonly isEstimated: boolean
  /** The occurrences of Warnings among them. */
  readonly warnings: number
  readonly events: number
  /** The number of distinct objects that the events are about; undefined when it is not known. */
  readonly objects: number | undefined
  /**
   * When the first of the events began, also before the window, and the last occurrence within it;
   * undefined when no event has such a time.
   */
  readonly firstMs: number | undefined
  readonly lastMs: number | undefined
  /**
   * The note of the event that was seen last; if there are several, the one with the first key. A
   * long note is cut.
   */
  readonly note: string
}

export interface EventSummary {
  readonly version: Version
  /** Sorted by rank, `order` and values. */
  readonly groups: readonly SummaryGroup[]
  /** Number of groups that are not returned. */
  readonly hidden: number
}

/** Histograms can be by any of the fields. */
export type HistogramField = GroupField

/** Objects of two clusters, and workloads of two namespaces, differ even if their names do not. */
export function identifiedBy(
  by: HistogramField,
  scope: { readonly cluster: string | undefined; readonly namespace: string | undefined },
): readonly GroupField[] {
  if (by !== 'object' && by !== 'workload') return [by]
  const isNamespace = by === 'workload' && scope.namespace === undefined
  return [
    ...(scope.cluster === undefined ? (['cluster'] as const) : []),
    ...(isNamespace ? (['namespace'] as const) : []),
    by,
  ]
}

export interface HistogramOptions extends ComputedOptions {
  /** Has no bounds of time. */
  readonly selector?: EventSelector | undefined
  /** The start of each bucket, ascending, and then the end of the last one. */
  readonly bounds: readonly number[]
  readonly by: HistogramField
  /**
   * The number of values with counts of their own: those with the most occurrences in all buckets.
   * The others are counted together, as OTHER_GROUP. Without it every value has its own count, and
   * there may be too many.
   */
  readonly namesMax?: number | undefined
}

export interface BucketCount {
  /**
   * The value of the field; for an object in all clusters, preceded by its cluster, for a workload
   * also by its namespace.
   */
  readonly name: string
  /** How often events were observed in the time of the bucket. */
  readonly occurrences: number
  /** The events that were observed in it; one event may be in several buckets. */
  readonly events: number
  /** Set when some occurrences are known only to lie between two times. */
  readonly estimated?: true
}

export interface EventHistogram {
  readonly version: Version
  /** The nonzero counts of each bucket, sorted by name. */
  readonly buckets: readonly (readonly BucketCount[])[]
}

/**
 * Summaries are of one state, as fresh as a list with the same `notOlderThan`. They are computed in
 * memory: `unavailable` until memory has been loaded.
 */
export interface EventSummaries {
  summarize(scope: EventScope, options: SummaryOptions): Promise<EventSummary>
  /** Fails with `TooManyGroups`. */
  histogram(scope: EventScope, options: HistogramOptions): Promise<EventHistogram>
}

/** A histogram would have too many counts. */
export class TooManyGroups extends Error {
  override readonly name = 'TooManyGroups'

  constructor() {
    super(`more than ${GROUPS_MAX} groups`)
  }
}
