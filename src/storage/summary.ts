/** The contract of summaries: events counted by group, or by time. */
import type { Version } from './resource-version.ts'
import type { EventScope, EventSelector, ListOptions } from './storage.ts'

/** What events can be grouped by, in the order in which groups show it. */
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

/** More counts than this are not in a histogram: `TooManyGroups`. */
export const GROUPS_MAX = 10_000

/** The name under which a histogram counts all values that have no counts of their own. */
export const OTHER_GROUP = '_other'

/** The summaries of one lane are computed one after the other. */
type ComputedOptions = Pick<ListOptions, 'notOlderThan' | 'signal' | 'lane'>

export interface SummaryOptions extends ComputedOptions {
  readonly selector?: EventSelector | undefined
  /** In the order of `groupFields`, each once. Empty: one group of all. */
  readonly groupBy: readonly GroupField[]
  /** How many groups are returned. */
  readonly groupsMax: number
  /** Groups with the highest rank come first. Without it, only the occurrences count. */
  readonly rankOf?: ((values: readonly string[]) => number) | undefined
}

export interface SummaryGroup {
  /**
   * The value of each field of `groupBy`. An object is `<kind>/<namespace>/<name>`, or `<kind>/<name>`.
   * Of a long value the beginning and a digest.
   */
  readonly values: readonly string[]
  /** All times that the events were observed. */
  readonly occurrences: number
  /** Those of them that are Warnings. */
  readonly warnings: number
  readonly events: number
  /** Different objects that the events are about. */
  readonly objects: number
  /** Undefined when no event of the group has such a time. */
  readonly firstMs: number | undefined
  readonly lastMs: number | undefined
  /**
   * The note of the event that was seen last; of several, the one with the first key. Of a long
   * note the beginning.
   */
  readonly note: string
}

export interface EventSummary {
  readonly version: Version
  /** By descending rank, then by descending occurrences, then by values. */
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
   * Only so many values have counts of their own, those with the most occurrences in all buckets;
   * the others are counted together, as OTHER_GROUP. Without it all have, and there may be too many.
   */
  readonly namesMax?: number | undefined
}

export interface BucketCount {
  /** The value of the field; of an object in all clusters also its cluster. */
  readonly name: string
  readonly occurrences: number
  readonly events: number
}

export interface EventHistogram {
  readonly version: Version
  /** For each bucket: by name, without zeros. */
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

/** There are more counts in a histogram than are counted. */
export class TooManyGroups extends Error {
  override readonly name = 'TooManyGroups'

  constructor() {
    super(`more than ${GROUPS_MAX} groups`)
  }
}
