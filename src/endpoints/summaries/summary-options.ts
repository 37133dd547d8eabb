/**
 * The options of summaries and histograms. Each can be sent as a query parameter or, by clients
 * that cannot do that, as a field label.
 */
import { parseTimeValue } from '../../api/selectors/time-value.ts'
import { badRequest } from '../../api/status.ts'
import type { ShownField } from '../../codec/encoders/summary-views.ts'
import { ALL_CLUSTERS } from '../../gate/attributes.ts'
import type { Place, ResourceTarget } from '../../gate/target.ts'
import { truncate } from '../../lib/text/truncate.ts'
import { SOURCE_DIMENSIONS, type SourceDimension } from '../../registry/top-sources.ts'
import {
  type GroupField,
  groupFields,
  type HistogramField,
  type TimeWindow,
} from '../../storage/summary.ts'
import { readChoice, readLimitLabel, readOption } from '../request/option-labels.ts'
import { readInteger } from '../request/query-values.ts'

/** Maximum number of groups in a response. */
export const SHOWN_MAX = 500
export const BUCKETS_MAX = 500
/** Maximum number of values with counts of their own in a histogram with a limit. */
export const NAMES_MAX = 50

const HOUR_MS = 3_600_000
const BUCKETS_USUAL = 60

export interface OptionsTarget extends Pick<ResourceTarget, 'cluster' | 'query' | 'options'> {
  readonly place: Place
}

export interface SummaryQuery {
  /** Sorted like `groupFields`, or `user` alone. */
  readonly groupBy: readonly ShownField[]
  readonly order: SummaryOrder
  /** The field whose rates are shown. */
  readonly rateOf: SourceDimension | undefined
}

export type SummaryOrder = (typeof SUMMARY_ORDERS)[number]

const SUMMARY_ORDERS = ['count', 'newest', 'rate'] as const

/** What people call an incident: the same thing happens to the same workload. */
const INCIDENT = 'workload,reason,pattern'

/** Throws a 400 for options that are unknown, contradictory or not possible in this place. */
export function readSummaryQuery(target: OptionsTarget): SummaryQuery {
  const isOfCluster = target.place.kind === 'everything'
  const sent = readOption(target, 'groupBy')
  const groupBy = readGroupBy(sent ?? INCIDENT, target)
  const rateOf = isOfCluster ? rateFieldOf(groupBy) : undefined
  if (!isOfCluster && groupBy.includes('user')) {
    throw badRequest('groupBy=user is possible for all namespaces only')
  }
  const usual = usualOrder(sent, rateOf)
  const order = readChoice('order', readOption(target, 'order') ?? usual, SUMMARY_ORDERS)
  if (order === 'rate' && rateOf === undefined) {
    throw badRequest(
      `order=rate is possible for all namespaces, grouped by one of ${SOURCE_DIMENSIONS.join(', ')}`,
    )
  }
  return { groupBy, order, rateOf }
}

function usualOrder(groupBy: string | undefined, rateOf: ShownField | undefined): SummaryOrder {
  if (groupBy === undefined) return 'newest'
  return rateOf === 'user' ? 'rate' : 'count'
}

interface BoundedWindow {
  readonly sinceMs: number
  readonly untilMs: number
}

/** The windows of a summary that shows what is new. */
export interface Comparison {
  readonly window: BoundedWindow
  readonly newSince: BoundedWindow
}

/**
 * Reads `compare`: the time before the window that it is compared with. Without `since`, the window
 * has the same length. Undefined if it was not sent.
 */
export function readComparison(
  target: OptionsTarget,
  { sinceMs, untilMs, nowMs }: Window,
): Comparison | undefined {
  const text = readOption(target, 'compare')
  if (text === undefined) return undefined
  const lengthMs = /^\d{4}-/.test(text) ? 0 : nowMs - parseTimeValue('compare', text, nowMs)
  const end = untilMs ?? nowMs
  const start = sinceMs ?? end - lengthMs
  if (lengthMs <= 0 || start >= end) {
    throw badRequest('compare needs a duration such as 24h, and a window: since before until')
  }
  return {
    window: { sinceMs: start, untilMs: end },
    newSince: { sinceMs: start - lengthMs, untilMs: start },
  }
}

/** `+` separates fields in a field label, where `,` ends the label. In a URL it is a space. */
const SEPARATORS = /[,+ ]/

function readGroupBy(text: string, { cluster, place }: OptionsTarget): readonly ShownField[] {
  const wanted = new Set<string>(text.split(SEPARATORS))
  // Objects of the same name in two clusters are two objects, as are workloads in two namespaces.
  const isNamed = wanted.has('object') || wanted.has('workload')
  if (cluster === ALL_CLUSTERS && isNamed) wanted.add('cluster')
  if (place.kind === 'everything' && wanted.has('workload')) wanted.add('namespace')
  if (wanted.size === 1 && wanted.has('user')) return ['user']
  const known: readonly string[] = groupFields
  const unknown = [...wanted].find((field) => !known.includes(field))
  if (unknown === 'user') throw badRequest('groupBy=user cannot be combined with other fields')
  if (unknown !== undefined) {
    throw badRequest(
      `groupBy: unknown field ${JSON.stringify(truncate(unknown))}: write one or more of ` +
        `${groupFields.join(', ')}, separated by a comma or, in a field selector, by +`,
    )
  }
  return groupFields.filter((field) => wanted.has(field))
}

function rateFieldOf(groupBy: readonly ShownField[]): SourceDimension | undefined {
  const [only, second] = groupBy
  return second === undefined ? SOURCE_DIMENSIONS.find((field) => field === only) : undefined
}

/** Returns whether all fields are fields of events. */
export function isOfEvents(groupBy: readonly ShownField[]): groupBy is readonly GroupField[] {
  return !groupBy.includes('user')
}

export interface HistogramQuery {
  readonly by: HistogramField
  /** The start of each bucket, followed by the end of the last one. */
  readonly bounds: readonly number[]
  /** How many values have counts of their own. If undefined, all of them. */
  readonly namesMax: number | undefined
}

/** What the selectors require, and what durations are relative to. */
export interface Window extends TimeWindow {
  readonly nowMs: number
}

export function readHistogramQuery(target: OptionsTarget, window: Window): HistogramQuery {
  const by = readChoice('by', readOption(target, 'by') ?? 'type', groupFields)
  const buckets = readBuckets(readOption(target, 'buckets'))
  const untilMs = window.untilMs ?? window.nowMs
  const sinceMs = window.sinceMs ?? untilMs - HOUR_MS
  if (untilMs - sinceMs < buckets) {
    throw badRequest(
      `${buckets} buckets need a window of at least ${buckets} ms: since must be before until`,
    )
  }
  const namesMax = readNamesMax(target) ?? (hasFewValues(by) ? undefined : NAMES_MAX)
  return { by, bounds: boundsOf(sinceMs, untilMs, buckets), namesMax }
}

/** Ignores a larger parameter, since kubectl sends one by itself. */
function readNamesMax(target: OptionsTarget): number | undefined {
  const label = readLimitLabel(target)
  if (label !== undefined && label > NAMES_MAX) {
    throw badRequest(`limit: a histogram has counts of at most ${NAMES_MAX} values`)
  }
  const parameter = readInteger(target.query, 'limit') ?? 0
  return label ?? (parameter >= 1 && parameter <= NAMES_MAX ? parameter : undefined)
}

/** There are many reasons only by mistake. */
function hasFewValues(by: HistogramField): boolean {
  return by === 'type' || by === 'reason'
}

function readBuckets(text: string | undefined): number {
  if (text === undefined) return BUCKETS_USUAL
  const buckets = /^\d{1,9}$/.test(text) ? Number(text) : 0
  if (buckets >= 1 && buckets <= BUCKETS_MAX) return buckets
  throw badRequest(
    `buckets: ${JSON.stringify(truncate(text))}: write a number from 1 to ${BUCKETS_MAX}`,
  )
}

/**
 * Bounds are whole milliseconds, so the widths of two buckets may differ by one. Long buckets begin at
 * whole hours, for which the archive has counts, apart from the first one.
 */
function boundsOf(sinceMs: number, untilMs: number, buckets: number): readonly number[] {
  const spanMs = untilMs - sinceMs
  const unitMs = spanMs / buckets >= LONG_BUCKET_MS ? HOUR_MS : 1
  return Array.from({ length: buckets + 1 }, (_, index) => {
    const bound = sinceMs + Math.floor((spanMs * index) / buckets)
    const isInner = index > 0 && index < buckets
    return isInner ? Math.floor(bound / unitMs) * unitMs : bound
  })
}

const LONG_BUCKET_MS = 2 * HOUR_MS
