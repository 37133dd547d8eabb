/** Counts of the archive against those of memory, which has the same events. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parseFieldSelector } from '../../../src/api/selectors/field-selector.ts'
import { parseLabelSelector } from '../../../src/api/selectors/label-selector.ts'
import { storedEvent } from '../../../src/cache/memory/made-events.fixture.ts'
import { defaultMemoryBounds, EventMemory } from '../../../src/cache/memory/memory.ts'
import { SummaryStorage } from '../../../src/cache/summary/summary-storage.ts'
import type { ArchivedGroup } from '../../../src/history/engine/protocol.ts'
import { dateOf } from '../../../src/history/manifest.ts'
import { MadeArchive, type MadeRow } from '../../../src/history/read/archive.fixture.ts'
import { readBuckets } from '../../../src/history/read/buckets-job.ts'
import { readGroups } from '../../../src/history/read/groups-job.ts'
import { aLane } from '../../../src/lib/run-queue.fixture.ts'
import { eventSelector } from '../../../src/registry/read/event-selector.ts'
import type { Span } from '../../../src/storage/occurrences.ts'
import { versionOfChange } from '../../../src/storage/resource-version.ts'
import type { EventScope, StoredEvent } from '../../../src/storage/storage.ts'
import {
  type EventHistogram,
  type GroupField,
  groupFields,
  type SummaryGroup,
  type TimeWindow,
} from '../../../src/storage/summary.ts'
import { occurrencesIn } from '../../../src/storage/trailer.ts'

const HOUR_MS = 3_600_000
const BASE_MS = Date.parse('2026-01-01T12:00:00Z')
const LONG = 'x'.repeat(300)

/** Times are whole seconds, in which memory knows the earlier ones. */
const events = fc.record({
  cluster: fc.constantFrom('a', 'b'),
  namespace: fc.constantFrom('shop', 'shop-1'),
  object: fc.constantFrom('web-7d9f8b6c5-x2k4q', 'web-0', `${LONG}-1`, `${LONG}-2`, '日本'),
  kind: fc.constantFrom('Pod', 'Node'),
  type: fc.constantFrom('Normal', 'Warning'),
  reason: fc.constantFrom('BackOff', 'Pulled', LONG, '_other'),
  note: fc.constantFrom('', 'one 1', 'two', `${LONG}${LONG}${LONG}${LONG}`),
  component: fc.constantFrom('kubelet', ''),
  firstSeconds: fc.nat({ max: 40_000 }),
  lengthSeconds: fc.nat({ max: 20_000 }),
  count: fc.integer({ min: 1, max: 7 }),
  writes: fc.array(
    fc.record({
      laterSeconds: fc.nat({ max: 30_000 }),
      raised: fc.nat({ max: 5 }),
      /** The state before is archived in an earlier segment. */
      isNextSegment: fc.boolean(),
    }),
    { maxLength: 5 },
  ),
})

type MadeEvent = typeof events extends fc.Arbitrary<infer Made> ? Made : never

interface Written {
  /** After the last write. */
  readonly stored: StoredEvent
  readonly rows: readonly MadeRow[]
}

function written(made: MadeEvent, number: number): Written {
  const { cluster, namespace, firstSeconds, lengthSeconds, writes } = made
  const key = { cluster, namespace, name: `e-${number}` }
  const firstMs = BASE_MS + firstSeconds * 1_000
  let lastMs = firstMs + (made.count > 1 ? lengthSeconds * 1_000 : 0)
  let { count } = made
  let sequence = 1
  let stored = storedEvent(
    key,
    versionOfChange(number + 1, 0),
    bodyOf(made, key, { firstMs, lastMs, count }),
  )
  const rows: MadeRow[] = []
  let spans: readonly Span[] = occurrencesIn(stored.trailer, stored.fields).spans
  const archive = () => {
    rows.push({ stored, date: dateOf(lastMs), again: rows.length > 0, sequence, spans })
    spans = []
  }
  for (const [index, { laterSeconds, raised, isNextSegment }] of writes.entries()) {
    const nextMs = lastMs + laterSeconds * 1_000
    // A row has the states of one day.
    if (isNextSegment || dateOf(nextMs) !== dateOf(lastMs)) {
      archive()
      sequence += Number(isNextSegment)
    }
    const known = occurrencesIn(stored.trailer, stored.fields).spans
    const lastKnownMs = known.at(-1)?.lastMs ?? lastMs
    lastMs = raised === 0 ? lastMs : nextMs
    count += raised
    const version = versionOfChange(number + 1, index + 1)
    stored = storedEvent(key, version, bodyOf(made, key, { firstMs, lastMs, count }), stored)
    if (raised === 1) spans = [...spans, { firstMs: lastMs, lastMs, count: 1 }]
    if (raised > 1)
      spans = [...spans, { firstMs: lastKnownMs, lastMs, count: raised, isOpen: true }]
  }
  archive()
  return { stored, rows }
}

function bodyOf(
  { object, kind, type, reason, note, component }: MadeEvent,
  { namespace, name }: { readonly namespace: string; readonly name: string },
  { firstMs, lastMs, count }: { firstMs: number; lastMs: number; count: number },
): Buffer {
  const uid = `uid-${namespace}-${name}`
  return Buffer.from(
    JSON.stringify({
      metadata: { name, namespace, uid },
      regarding: { kind, name: object, ...(kind === 'Pod' && { namespace }) },
      ...{ type, reason, note, deprecatedSource: { component } },
      deprecatedFirstTimestamp: new Date(firstMs).toISOString().replace('.000Z', 'Z'),
      deprecatedLastTimestamp: new Date(lastMs).toISOString().replace('.000Z', 'Z'),
      deprecatedCount: count,
    }),
  )
}

const windows: fc.Arbitrary<TimeWindow> = fc
  .tuple(
    fc.option(fc.nat({ max: 90_000 }), { nil: undefined }),
    fc.option(fc.nat({ max: 40_000 }), { nil: undefined }),
  )
  .map(([from, length]) => {
    const sinceMs = from === undefined ? undefined : BASE_MS + from * 1_000
    const untilMs = length === undefined ? undefined : (sinceMs ?? BASE_MS) + length * 1_000
    return { sinceMs, untilMs }
  })

const scopes: fc.Arbitrary<EventScope> = fc.constantFrom<EventScope>(
  { cluster: undefined, namespace: undefined },
  { cluster: 'a', namespace: undefined },
  { cluster: 'a', namespace: 'shop' },
)

const selectors = fc.constantFrom(
  '',
  '',
  'type=Warning',
  'mentions=Pod/web-0',
  'text=two',
  'reason=Back*',
)
const groupBys = fc.subarray<GroupField>([...groupFields], { minLength: 0, maxLength: 3 })
const lane = aLane()
const { signal } = new AbortController()

/** The same events in memory and in an archive. */
async function bothOf(archive: MadeArchive, made: readonly MadeEvent[]) {
  const memory = new EventMemory(defaultMemoryBounds, { now: () => 0 })
  const all = made.map(written)
  for (const { stored } of all) memory.put(stored)
  const files = await archive.write(all.flatMap(({ rows }) => rows))
  const summaries = new SummaryStorage({ memory, freshness: { isFresh: async () => true } })
  return { summaries, files }
}

function selectorOf(text: string) {
  return eventSelector(parseLabelSelector(''), parseFieldSelector(text), 0)
}

test('groups have the numbers of memory', async () => {
  await using archive = await MadeArchive.open()
  let groups = 0
  const property = fc.asyncProperty(
    fc.array(events, { minLength: 1, maxLength: 10 }),
    fc.array(
      fc.record({
        scope: scopes,
        text: selectors,
        window: windows,
        newSince: fc.option(windows, { nil: undefined }),
        groupBy: groupBys,
        order: fc.constantFrom('count' as const, 'newest' as const),
        comparedRowsMax: fc.constantFrom(0, 1_000),
      }),
      { minLength: 1, maxLength: 5 },
    ),
    async (made, queries) => {
      const { summaries, files } = await bothOf(archive, made)
      for (const { scope, text, window, newSince, groupBy, order, comparedRowsMax } of queries) {
        const selector = selectorOf(text)
        const options = { selector, window, groupBy, order, groupsMax: 1_000, lane, signal }
        const expected = await summaries.summarize(scope, options)
        const found = await readGroups(
          archive.connection,
          {
            ...{ ...scope, files, requires: selector?.requires, window, newSince },
            rowsMax: 1_000,
            ...{ groupBy, order, groupsMax: 1_000, bytesMax: 1e9 },
          },
          comparedRowsMax,
        )
        assert.equal(found.isExact, true)
        assert.equal(found.hidden, 0)
        const shown = found.groups.filter(({ occurrences }) => occurrences > 0)
        assert.deepEqual(
          sorted(shown),
          sorted(expected.groups),
          JSON.stringify({ scope, text, window, groupBy }),
        )
        // More may be estimated: an event whose occurrences are known to be outside of the window only by
        // an estimate has none in memory, and so does not count.
        const isEstimated = new Set(found.groups.filter((one) => one.isEstimated).map(nameOf))
        const missing = expected.groups.filter(
          (one) => one.isEstimated && !isEstimated.has(nameOf(one)),
        )
        assert.deepEqual(missing, [])
        groups += found.groups.length
        if (newSince === undefined) continue
        const earlier = await summaries.summarize(scope, { ...options, window: newSince })
        assert.deepEqual(
          found.groups
            .filter(({ before = 0 }) => before > 0)
            .map(({ values, before }) => `${values} ${before}`)
            .sort(),
          earlier.groups.map(({ values, occurrences }) => `${values} ${occurrences}`).sort(),
        )
      }
    },
  )
  await fc.assert(property, { numRuns: 25 })
  assert.ok(groups > 20)
})

function nameOf({ values, firstMs }: SummaryGroup | ArchivedGroup): string {
  return [...values, firstMs].join(' ')
}

type Group = Readonly<Partial<Record<keyof SummaryGroup, unknown>>>

/** Groups that are equal in all that decides their order are in none. */
function sorted(groups: readonly Group[]): readonly string[] {
  return groups.map(({ isEstimated: _, before: __, ...group }) => textOf(group)).sort()
}

function textOf(group: Group): string {
  return JSON.stringify(group, Object.keys(group).sort())
}

/** Whether two values have the same right to be named. */
function isTied({ buckets }: EventHistogram, namesMax = 0): boolean {
  const totals = new Map<string, number>()
  for (const { name, occurrences } of buckets.flat()) {
    totals.set(name, (totals.get(name) ?? 0) + occurrences)
  }
  const sums = [...totals.values()].sort((one, other) => other - one)
  return sums[namesMax - 1] === sums[namesMax]
}

test('histograms have the counts of memory', async () => {
  await using archive = await MadeArchive.open()
  let counts = 0
  const property = fc.asyncProperty(
    fc.array(events, { minLength: 1, maxLength: 10 }),
    fc.array(
      fc.record({
        scope: scopes,
        text: selectors,
        by: fc.constantFrom(...groupFields),
        bounds: fc
          .tuple(
            fc.nat({ max: 60_000 }),
            fc.integer({ min: 1, max: 60_000 }),
            fc.integer({ min: 1, max: 12 }),
            fc.boolean(),
          )
          .map(([from, length, count, isRegular]) =>
            Array.from({ length: count + 1 }, (_, index) => {
              const share = isRegular ? index / count : (index / count) ** 3
              return BASE_MS + from * 1_000 + Math.floor(share * length * 1_000) + index
            }),
          ),
        namesMax: fc.constantFrom(undefined, 1, 2),
      }),
      { minLength: 1, maxLength: 5 },
    ),
    async (made, queries) => {
      const { summaries, files } = await bothOf(archive, made)
      for (const { scope, text, by, bounds, ...wanted } of queries) {
        const selector = selectorOf(text)
        const all = await summaries.histogram(scope, { selector, bounds, by, lane, signal })
        const namesMax = isTied(all, wanted.namesMax) ? undefined : wanted.namesMax
        const options = { selector, bounds, by, namesMax, lane, signal }
        const expected = await summaries.histogram(scope, options)
        const found = await readBuckets(archive.connection, {
          ...{
            ...scope,
            files,
            requires: selector?.requires,
            bounds,
            by,
            namesMax,
            rowsMax: 1_000,
          },
        })
        assert.equal(found.source, 'rows')
        assert.deepEqual(
          found.buckets,
          expected.buckets,
          JSON.stringify({ scope, text, by, namesMax }),
        )
        counts += expected.buckets.flat().length
      }
    },
  )
  await fc.assert(property, { numRuns: 25 })
  assert.ok(counts > 20)
})

test('rollups have the occurrences of whole hours, and the events that began in them', async () => {
  await using archive = await MadeArchive.open()
  let counts = 0
  const property = fc.asyncProperty(
    fc.array(events, { minLength: 1, maxLength: 10 }),
    fc.array(
      fc.record({
        scope: scopes,
        text: fc.constantFrom(
          '',
          'type=Warning',
          'reason=Back*',
          'metadata.namespace=shop,type!=x',
        ),
        by: fc.constantFrom<GroupField>(
          'cluster',
          'namespace',
          'type',
          'reason',
          'kind',
          'controller',
        ),
        from: fc.nat({ max: 20 }),
        hours: fc.integer({ min: 1, max: 4 }),
        count: fc.integer({ min: 1, max: 6 }),
      }),
      { minLength: 1, maxLength: 5 },
    ),
    async (made, queries) => {
      const { summaries, files } = await bothOf(archive, made)
      for (const { scope, text, by, from, hours, count } of queries) {
        const selector = selectorOf(text)
        const sinceMs = BASE_MS + from * HOUR_MS
        const bounds = Array.from(
          { length: count + 1 },
          (_, index) => sinceMs + index * hours * HOUR_MS,
        )
        const query = { ...scope, files, requires: selector?.requires }
        const expected = await summaries.histogram(scope, { selector, bounds, by, lane, signal })
        const found = await readBuckets(archive.connection, {
          ...query,
          bounds,
          by,
          namesMax: undefined,
        })
        if (expected.buckets.flat().length > 0) assert.equal(found.source, 'rollups')
        assert.equal(found.isExact, true)
        const occurrencesOf = (buckets: EventHistogram['buckets'] | undefined) =>
          buckets?.map((bucket) =>
            bucket
              .filter(({ occurrences }) => occurrences > 0)
              .map(({ name, occurrences }) => `${name} ${occurrences}`),
          )
        assert.deepEqual(occurrencesOf(found.buckets), occurrencesOf(expected.buckets))
        const window = { sinceMs, untilMs: bounds.at(-1) }
        const groupBy = [by]
        const wanted = { selector, window, groupBy, groupsMax: 1_000, lane, signal }
        const summary = await summaries.summarize(scope, wanted)
        const groups = await readGroups(archive.connection, {
          ...{ ...query, window, newSince: undefined, groupBy, groupsMax: 1_000, bytesMax: 1e9 },
        })
        assert.equal(groups.source, found.source)
        assert.deepEqual(
          groups.groups.map(withoutUnknown).map(textOf).sort(),
          summary.groups.map(withoutUnknown).map(textOf).sort(),
          JSON.stringify({ scope, text, by, window }),
        )
        counts += summary.groups.length
      }
    },
  )
  await fc.assert(property, { numRuns: 25 })
  assert.ok(counts > 20)
})

/** Without what rollups do not know. */
function withoutUnknown(group: Group): Group {
  const { objects: _, isEstimated: __, ...known } = group
  const firstMs = Number(known.firstMs)
  return { ...known, firstMs: firstMs - (firstMs % HOUR_MS) }
}
