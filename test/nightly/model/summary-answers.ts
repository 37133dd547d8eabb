/** Random summaries and histograms, and what is wrong with the server's answer. */
import type { EventApiUnderTest } from '../../support/event-api.ts'
import type { Random } from '../../support/random.ts'
import { Refused } from './answers.ts'
import type { History } from './history.ts'
import { callOf, fieldSelectorOf, type MadeQuery, madeWatch } from './made-queries.ts'
import { timeOf } from './plain-event.ts'
import type { Window } from './plain-occurrences.ts'
import { answer, momentsOf } from './plain-query.ts'
import {
  ALWAYS,
  GROUP_FIELDS,
  type GroupField,
  type PlainCount,
  type PlainGroup,
  plainHistogram,
  plainSummary,
} from './plain-summary.ts'

/** The query of a summary or a histogram. */
export interface MadeSummary {
  /** The events that it is of. */
  readonly query: MadeQuery
  readonly groupBy: readonly GroupField[]
  /** Set for a histogram. */
  readonly histogram: { readonly buckets: number; readonly by: 'type' | 'reason' } | undefined
  /** The options are field labels, and not parameters. */
  readonly isByLabels: boolean
}

const HOUR_MS = 3_600_000

export function madeSummary(random: Random, nowMs: number): MadeSummary {
  const query = madeWatch(random, nowMs, false)
  const chosen = GROUP_FIELDS.filter(() => random.chance(0.3))
  const histogram = {
    buckets: random.pick([1, 7, 60, 500]),
    by: random.pick(['type', 'reason'] as const),
  }
  return {
    query,
    groupBy: chosen.length === 0 ? ['controller'] : chosen,
    histogram: random.chance(0.4) ? histogram : undefined,
    isByLabels: random.chance(0.5),
  }
}

/** Undefined when the answer is right. */
export async function summaryFault(
  made: MadeSummary,
  asked: { readonly api: EventApiUnderTest; readonly history: History; readonly nowMs: number },
): Promise<string | undefined> {
  const { query, histogram } = made
  const { status, text, json } = await asked.api.call(summaryCall(made))
  if (status !== 200) {
    // The selectors may leave no time between `since` and `until`.
    const isEmptyWindow = histogram !== undefined && text.includes('since must be before until')
    return isEmptyWindow ? undefined : String(new Refused(status, text))
  }
  const version = Number(json.metadata.resourceVersion)
  const window = windowOf(query, asked.nowMs)
  const timeless = query.terms.filter(({ label }) => label !== 'since' && label !== 'until')
  const state = await asked.history.at(version)
  const events = answer(state, { ...query, terms: timeless }, asked.nowMs)
  const [found, expected] =
    histogram === undefined
      ? [json.items.map(groupOf), plainSummary(events, shownFields(made), window)]
      : [
          json.items.map(({ counts }: WireBucket) => counts),
          plainHistogram(events, boundsOf(json.items), histogram.by),
        ]
  const divided = histogram === undefined ? undefined : windowFault(made, json.items, asked.nowMs)
  if (divided !== undefined) return divided
  const at = expected.findIndex(
    (each: unknown, index: number) => JSON.stringify(each) !== JSON.stringify(found[index]),
  )
  if (at === -1 && found.length === expected.length) return undefined
  const [here, there] = [expected, found].map((list) => JSON.stringify(list[Math.max(0, at)]))
  return `${found.length} items, expected ${expected.length}; item ${at} is ${there}, expected ${here}`
}

export function summaryText(made: MadeSummary): string {
  return `${JSON.stringify(made)} fieldSelector ${fieldSelectorOf(made.query)}`
}

interface WireBucket {
  readonly startTime: string
  readonly endTime: string
  readonly counts: readonly PlainCount[]
}

interface WireGroup extends Omit<PlainGroup, 'values' | 'firstMs' | 'lastMs' | 'isEstimated'> {
  readonly group: Readonly<Record<string, string>>
  readonly estimated?: true
  readonly firstTime?: string
  readonly lastTime?: string
}

/** The same object of two clusters is two objects. */
function shownFields({ query, groupBy }: MadeSummary): readonly GroupField[] {
  return query.cluster === '*' && groupBy.includes('object') ? ['cluster', ...groupBy] : groupBy
}

/** The time whose occurrences are counted. */
function windowOf(query: MadeQuery, nowMs: number): Window {
  return {
    sinceMs: momentsOf(query, 'since', nowMs).at(-1) ?? ALWAYS.sinceMs,
    untilMs: momentsOf(query, 'until', nowMs)[0] ?? ALWAYS.untilMs,
  }
}

function groupOf({ group, firstTime, lastTime, ...counts }: WireGroup): PlainGroup {
  return {
    values: GROUP_FIELDS.filter((field) => field in group).map((field) => group[field] ?? ''),
    occurrences: counts.occurrences,
    events: counts.events,
    objects: counts.objects,
    firstMs: timeOf(firstTime),
    lastMs: timeOf(lastTime),
    isEstimated: counts.estimated === true,
  }
}

function summaryCall({
  query,
  groupBy,
  histogram,
  isByLabels,
}: MadeSummary): ReturnType<typeof callOf> {
  const options: Readonly<Record<string, string>> =
    histogram === undefined
      ? { groupBy: groupBy.join(isByLabels ? '+' : ',') }
      : { buckets: String(histogram.buckets), by: histogram.by }
  const labels = Object.entries(options).map(([name, value]) => `${name}=${value}`)
  const selector = fieldSelectorOf(query)
  const call = callOf(
    query,
    isByLabels
      ? { fieldSelector: [...labels, ...(selector === '' ? [] : [selector])].join(',') }
      : options,
  )
  const resource = histogram === undefined ? 'eventsummaries' : 'eventhistograms'
  const path = (call.path ?? '')
    .replace('/apis/events.k8s.io/v1', '/apis/tidings.dev/v1alpha1')
    .replace(/events$/, resource)
  return { ...call, path }
}

function boundsOf(buckets: readonly WireBucket[]): readonly number[] {
  const starts = buckets.map(({ startTime }) => timeOf(startTime) ?? Number.NaN)
  return [...starts, timeOf(buckets.at(-1)?.endTime) ?? Number.NaN]
}

/**
 * The buckets must fill the window without gaps, and have the same width but for a millisecond. Long
 * ones begin at the whole hour before, apart from the first.
 */
function windowFault(
  { query, histogram }: MadeSummary,
  buckets: readonly WireBucket[],
  nowMs: number,
): string | undefined {
  const bounds = boundsOf(buckets)
  const [end = nowMs] = momentsOf(query, 'until', nowMs)
  const start = momentsOf(query, 'since', nowMs).at(-1) ?? end - HOUR_MS
  const width = (end - start) / buckets.length
  const isLong = width >= 2 * HOUR_MS
  const isWhole = buckets.every(({ endTime }, index) => timeOf(endTime) === bounds[index + 1])
  const isEven = bounds.slice(1, -1).every((bound, index) => {
    const even = start + width * (index + 1)
    const wanted = isLong ? Math.floor(even / HOUR_MS) * HOUR_MS : even
    return Math.abs(bound - wanted) <= 1
  })
  const isRight =
    buckets.length === histogram?.buckets && bounds[0] === start && bounds.at(-1) === end
  return isWhole && isEven && isRight
    ? undefined
    : `the window ${start} to ${end} is divided at ${bounds}`
}
