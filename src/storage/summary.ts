/** The contract of summaries: events counted by group, or by time. */
import type { Version } from './resource-version.ts'
import type { EventScope, EventSelector, ListOptions } from './storage.ts'

/** The fields that events can be grouped by, in the order in which groups show them. */
export const groupFields = [
  'cluster',
  'namespace',
  'type',
  'reason',
  'kind',
  'object',
  'controller',
] as const

export type GroupField = (typeof groupFields)[number]

/** A histogram with more counts fails with `TooManyGroups`. */
export const GROUPS_MAX = 10_000

/** The name under which a histogram counts all values that have no counts of their own. */
export const OTHER_GROUP = '_other'

/** The summaries of one lane are computed one after the other. */
type ComputedOptions = Pick<ListOptions, 'notOlderThan' | 'signal' | 'lane'>

export interface SummaryOptions extends ComputedOptions {
  readonly selector?: EventSelector | undefined
  /** Distinct fields, in the order of `groupFields`. Empty: one group of all events. */
  readonly groupBy: readonly GroupField[]
  /** How many groups are returned. */
  readonly groupsMax: number
  /** Groups with the highest rank come first. Without it, only the occurrences count. */
  readonly rankOf?: ((values: readonly string[]) => number) | undefined
}

export interface SummaryGroup {
  /**
   * The value of each field of `groupBy`. An object is `<kind>/<namespace>/<name>`, or `<kind>/<name>`.
   * A long value is shortened to its beginning and a digest.
   */
  readonly values: readonly string[]
  /** How often the events were observed in total. */
  readonly occurrences: number
  /** The occurrences of Warnings among them. */
  readonly warnings: number
  readonly events: number
  /** The number of distinct objects that the events are about. */
  readonly objects: number
  /** Undefined when no event of the group has such a time. */
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
  /** Sorted by descending rank, then by descending occurrences, then by values. */
  readonly groups: readonly SummaryGroup[]
  /** Number of groups that are not returned. */
  readonly hidden: number
}

/** Histograms can be by any of the fields. */
export type HistogramField = GroupField

export interface HistogramOptions extends ComputedOptions {
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
  /** The value of the field; for an object in all clusters, preceded by its cluster. */
  readonly name: string
  readonly occurrences: number
  readonly events: number
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
