/**
 * Summaries and histograms over both tiers. Occurrences before the start of the window of memory are
 * counted in the archive, all others in memory, so none is counted twice.
 */
import type { EventScope } from '../../storage/storage.ts'
import {
  type BucketCount,
  type EventHistogram,
  type EventSummaries,
  type EventSummary,
  GROUPS_MAX,
  type HistogramOptions,
  OTHER_GROUP,
  type SummaryGroup,
  type SummaryOptions,
  type TimeWindow,
  TooManyGroups,
} from '../../storage/summary.ts'
import type { Archive, ArchiveView } from './archive.ts'

const HOUR_MS = 3_600_000
/** A group at less than this part of its present rate was not there before. */
const NEW_PART = 0.1
/** Values that memory names when there are too many for all of them. */
const NAMES_MAX = 1_000

export class TieredSummaries implements EventSummaries {
  readonly #memory: EventSummaries
  readonly #archive: Archive

  constructor(memory: EventSummaries, archive: Archive) {
    this.#memory = memory
    this.#archive = archive
  }

  async summarize(scope: EventScope, options: SummaryOptions): Promise<EventSummary> {
    const { window = {}, newSince } = options
    const isTimeless = window.sinceMs === undefined && window.untilMs === undefined
    const startMs = isTimeless
      ? undefined
      : await this.#startMs(scope, options.signal, earliest(window, newSince))
    if (startMs === undefined) return this.#memory.summarize(scope, options)
    const view = await this.#archive.open(undefined, options.signal)
    if (view === undefined) return this.#memory.summarize(scope, options)
    const count = (wanted: TimeWindow) =>
      this.#counted(scope, options, { window: wanted, startMs, view })
    const present = await count(window)
    const before = newSince && (await count(newSince))
    const groups = [...present.groups].flatMap(([key, group]) => {
      if (newSince === undefined) return [group]
      const occurrences = before?.groups.get(key)?.occurrences ?? 0
      const isNew =
        occurrences / lengthOf(newSince) < (group.occurrences / lengthOf(window)) * NEW_PART
      return isNew ? [{ ...group, before: occurrences }] : []
    })
    const sorted = groups.sort(comparing(options)).slice(0, options.groupsMax)
    const hidden = present.hidden + groups.length - sorted.length
    return { version: present.version, groups: sorted, hidden }
  }

  async histogram(scope: EventScope, options: HistogramOptions): Promise<EventHistogram> {
    const { bounds, by, namesMax, selector, signal, lane } = options
    const startMs = await this.#startMs(scope, signal, bounds[0])
    const view = startMs === undefined ? undefined : await this.#archive.open(undefined, signal)
    if (startMs === undefined || view === undefined) return this.#memory.histogram(scope, options)
    const at = wholeHour(startMs, this.#archive.completeUntil())
    const { older, newer } = dividedAt(bounds, at)
    const archived: BucketCounts[] = []
    for (const part of byAlignment(older)) {
      const requires = selector?.requires
      archived.push(...(await view.buckets(scope, { requires, bounds: part, by, signal, lane })))
    }
    const live = await this.#allNames(scope, {
      ...options,
      bounds: newer.length > 1 ? newer : bounds.slice(-2),
    })
    const recent = newer.length > 1 ? live.buckets : []
    const buckets = joined(archived, recent, isSplit(bounds, at))
    return { version: live.version, buckets: named(buckets, namesMax) }
  }

  /** All values, or if there are too many, the most frequent. */
  async #allNames(scope: EventScope, options: HistogramOptions): Promise<EventHistogram> {
    try {
      return await this.#memory.histogram(scope, { ...options, namesMax: undefined })
    } catch (error) {
      if (!(error instanceof TooManyGroups) || options.namesMax === undefined) throw error
      return this.#memory.histogram(scope, { ...options, namesMax: NAMES_MAX })
    }
  }

  /** Where memory begins, if the archive has to be read. */
  async #startMs(
    scope: EventScope,
    signal: AbortSignal,
    sinceMs = Number.NEGATIVE_INFINITY,
  ): Promise<number | undefined> {
    const tiers = await this.#archive.tiersOf(scope, signal)
    return tiers === undefined || sinceMs >= tiers.memoryFromMs ? undefined : tiers.splitMs
  }

  /**
   * The groups of one window. Memory counts twice, with and without the time of the archive: the
   * difference is what only memory has.
   */
  async #counted(
    scope: EventScope,
    options: SummaryOptions,
    { window, startMs, view }: CountedWindow,
  ): Promise<Counted> {
    const { selector, groupBy, signal, lane } = options
    const all = { ...options, newSince: undefined, rankOf: undefined, groupsMax: GROUPS_MAX }
    const whole = await this.#memory.summarize(scope, { ...all, window })
    const { sinceMs = Number.NEGATIVE_INFINITY, untilMs = Number.POSITIVE_INFINITY } = window
    if (sinceMs >= startMs) {
      return { ...whole, groups: new Map(whole.groups.map((group) => [keyOf(group), group])) }
    }
    const older = { ...window, untilMs: Math.min(untilMs, startMs) }
    const known = await this.#memory.summarize(scope, { ...all, window: older })
    const archived = await view.groups(scope, {
      requires: selector?.requires,
      window: older,
      groupBy,
      signal,
      lane,
    })
    const groups = new Map(archived.groups.map((group) => [keyOf(group), group]))
    const before = new Map(known.groups.map((group) => [keyOf(group), group]))
    for (const group of whole.groups) {
      const key = keyOf(group)
      const recent = withoutKnown(group, before.get(key))
      const there = groups.get(key)
      if (recent === undefined) continue
      groups.set(key, there === undefined ? recent : sum(there, recent))
    }
    return { version: whole.version, groups, hidden: archived.hidden }
  }
}

interface CountedWindow {
  readonly window: TimeWindow
  readonly startMs: number
  readonly view: ArchiveView
}

interface Counted extends Pick<EventSummary, 'version' | 'hidden'> {
  readonly groups: ReadonlyMap<string, SummaryGroup>
}

function earliest(window: TimeWindow, newSince: TimeWindow | undefined): number | undefined {
  return newSince === undefined
    ? window.sinceMs
    : Math.min(window.sinceMs ?? 0, newSince.sinceMs ?? 0)
}

function lengthOf({ sinceMs = 0, untilMs = 0 }: TimeWindow): number {
  return untilMs - sinceMs
}

function keyOf({ values }: SummaryGroup): string {
  return JSON.stringify(values)
}

/** Undefined when nothing is left. */
function withoutKnown(
  group: SummaryGroup,
  known: SummaryGroup | undefined,
): SummaryGroup | undefined {
  if (known === undefined) return group
  const occurrences = group.occurrences - known.occurrences
  if (occurrences <= 0) return undefined
  return {
    ...group,
    occurrences,
    warnings: Math.max(0, group.warnings - known.warnings),
    events: Math.max(0, group.events - known.events),
    objects: difference(group.objects, known.objects),
  }
}

function difference(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? undefined : Math.max(0, one - other)
}

function sumOf(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? undefined : one + other
}

/** `recent` is later: its note is the one that is shown. */
function sum(archived: SummaryGroup, recent: SummaryGroup): SummaryGroup {
  const firsts = [archived.firstMs, recent.firstMs].filter((ms) => ms !== undefined)
  return {
    ...recent,
    occurrences: archived.occurrences + recent.occurrences,
    warnings: archived.warnings + recent.warnings,
    events: archived.events + recent.events,
    objects: sumOf(archived.objects, recent.objects),
    isEstimated: archived.isEstimated || recent.isEstimated,
    firstMs: firsts.length === 0 ? undefined : Math.min(...firsts),
    lastMs: recent.lastMs ?? archived.lastMs,
  }
}

type Compare = (one: SummaryGroup, other: SummaryGroup) => number

/** The order of memory; see `topGroups`. */
function comparing({ rankOf, order }: Pick<SummaryOptions, 'rankOf' | 'order'>): Compare {
  const byOrder: Compare =
    order === 'newest'
      ? (one, other) =>
          Number(other.warnings > 0) - Number(one.warnings > 0) ||
          (other.firstMs ?? 0) - (one.firstMs ?? 0)
      : () => 0
  return (one, other) =>
    (rankOf === undefined ? 0 : rankOf(other.values) - rankOf(one.values)) ||
    byOrder(one, other) ||
    other.occurrences - one.occurrences ||
    compareValues(one, other)
}

function compareValues({ values: one }: SummaryGroup, { values: other }: SummaryGroup): number {
  for (const [index, value] of one.entries()) {
    const otherValue = other[index] ?? ''
    if (value !== otherValue) return value < otherValue ? -1 : 1
  }
  return 0
}

type BucketCounts = readonly BucketCount[]

/** The next whole hour, if the archive is complete until then: it has counts of whole hours. */
function wholeHour(ms: number, completeUntilMs: number): number {
  const next = Math.ceil(ms / HOUR_MS) * HOUR_MS
  return next <= completeUntilMs ? next : ms
}

function dividedAt(
  bounds: readonly number[],
  atMs: number,
): { readonly older: readonly number[]; readonly newer: readonly number[] } {
  const older = bounds.filter((bound) => bound < atMs)
  const newer = bounds.filter((bound) => bound > atMs)
  return {
    older: newer.length === 0 && !bounds.includes(atMs) ? older : [...older, atMs],
    newer: newer.length === 0 ? [] : [atMs, ...newer],
  }
}

function isSplit(bounds: readonly number[], atMs: number): boolean {
  return !bounds.includes(atMs) && atMs < (bounds.at(-1) ?? 0)
}

/** Buckets of whole hours apart from the others, which the archive has to read row by row. */
function* byAlignment(bounds: readonly number[]): Iterable<readonly number[]> {
  const isWhole = (at: number) =>
    (bounds[at] ?? 0) % HOUR_MS === 0 && (bounds[at + 1] ?? 0) % HOUR_MS === 0
  for (let from = 0; from < bounds.length - 1; ) {
    let to = from + 1
    while (to < bounds.length - 1 && isWhole(to) === isWhole(from)) to++
    yield bounds.slice(from, to + 1)
    from = to
  }
}

/** `isOneSplit`: the last bucket of the one and the first of the other are one bucket. */
function joined(
  older: readonly BucketCounts[],
  newer: readonly BucketCounts[],
  isOneSplit: boolean,
): readonly BucketCounts[] {
  if (!isOneSplit) return [...older, ...newer]
  const [first = [], ...rest] = newer
  return [...older.slice(0, -1), total([...(older.at(-1) ?? []), ...first]), ...rest]
}

/** One count for each name, sorted by name. */
function total(counts: BucketCounts, nameOf = ({ name }: BucketCount) => name): BucketCounts {
  const sums = new Map<string, BucketCount>()
  for (const count of counts) {
    const name = nameOf(count)
    const { occurrences = 0, events = 0, estimated } = sums.get(name) ?? {}
    const isEstimated = estimated === true || count.estimated === true
    sums.set(name, {
      name,
      occurrences: occurrences + count.occurrences,
      events: events + count.events,
      ...(isEstimated && { estimated: true }),
    })
  }
  return [...sums.values()].sort((one, other) => (one.name < other.name ? -1 : 1))
}

/** Counts all but the most frequent names together. */
function named(
  buckets: readonly BucketCounts[],
  namesMax: number | undefined,
): readonly BucketCounts[] {
  if (namesMax === undefined) {
    if (buckets.reduce((count, bucket) => count + bucket.length, 0) > GROUPS_MAX) {
      throw new TooManyGroups()
    }
    return buckets
  }
  const top = total(buckets.flat())
    .filter(({ name }) => name !== OTHER_GROUP)
    .sort((one, other) => other.occurrences - one.occurrences || (one.name < other.name ? -1 : 1))
    .slice(0, namesMax)
  const shown = new Set(top.map(({ name }) => name))
  return buckets.map((bucket) =>
    total(bucket, ({ name }) => (shown.has(name) ? name : OTHER_GROUP)),
  )
}
