/** Summaries and histograms against plain re-implementations that read every event. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import fc from 'fast-check'
import { patternId, patternOf } from '../../incidents/pattern.ts'
import { aLane } from '../../lib/run-queue.fixture.ts'
import { type Lane, RunQueue } from '../../lib/run-queue.ts'
import { allEvents, isInScope, pathOf } from '../../storage/event-scope.ts'
import { valueRequirement } from '../../storage/requires.ts'
import { versionOfChange, versionOfState } from '../../storage/resource-version.ts'
import type { EventKey, EventScope, EventSelector, StoredEvent } from '../../storage/storage.ts'
import {
  type BucketCount,
  GROUPS_MAX,
  type GroupField,
  groupFields,
  type SummaryGroup,
  type TimeWindow,
  TooManyGroups,
} from '../../storage/summary.ts'
import { madeEvent, storedEvent } from '../memory/made-events.fixture.ts'
import { defaultMemoryBounds, EventMemory } from '../memory/memory.ts'
import { histogram } from './histogram.ts'
import { summarize } from './summarize.ts'
import { SummaryStorage } from './summary-storage.ts'

const { signal } = new AbortController()
const lane = aLane()

interface Fields {
  readonly type: string
  readonly reason: string
  readonly controller: string
  readonly component: string
  readonly kind: string
  readonly object: string
  readonly home: string
  readonly seen: number | undefined
  readonly first: number | undefined
  readonly count: number | undefined
  readonly series: number | undefined
  /** Later writes: by how much each raises the count, and after how many seconds. */
  readonly raises?: readonly (readonly [by: number, after: number])[]
}

const fields: fc.Arbitrary<Fields> = fc.record({
  type: fc.constantFrom('Normal', 'Warning', ''),
  reason: fc.constantFrom('Pulled', 'Failed', 'BackOff', ''),
  controller: fc.constantFrom('kubelet', 'scheduler', ''),
  component: fc.constantFrom('kubelet', 'other', ''),
  kind: fc.constantFrom('Pod', 'pod', 'Node'),
  object: fc.constantFrom('a', 'b', 'c'),
  home: fc.constantFrom('', 'shop'),
  seen: fc.option(fc.integer({ min: 1, max: 50 }), { nil: undefined }),
  first: fc.option(fc.integer({ min: 1, max: 50 }), { nil: undefined }),
  count: fc.option(fc.integer({ min: 0, max: 9 }), { nil: undefined }),
  series: fc.option(fc.integer({ min: 2, max: 9 }), { nil: undefined }),
  raises: fc.array(fc.tuple(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 0, max: 20 })), {
    maxLength: 5,
  }),
})

const keys: fc.Arbitrary<EventKey> = fc.record({
  cluster: fc.constantFrom('local', 'prod'),
  namespace: fc.constantFrom('shop', 'a', 'a-b'),
  name: fc.integer({ min: 0, max: 30 }).map((number) => `e${number}`),
})

const scopes: fc.Arbitrary<EventScope> = fc.constantFrom(
  allEvents,
  { cluster: 'local', namespace: undefined },
  { cluster: 'prod', namespace: 'a' },
  { cluster: 'prod', namespace: 'none' },
)

const selectors: fc.Arbitrary<EventSelector | undefined> = fc.constantFrom<
  EventSelector | undefined
>(
  undefined,
  {
    matches: ({ fields: { type } }) => type === 'Warning',
    requires: { values: [valueRequirement('type', '=', 'Warning')], isAll: true },
  },
  {
    matches: ({ fields: { reason } }) => reason === 'Pulled',
    requires: { values: [valueRequirement('reason', '=', 'Pulled')] },
  },
  { matches: ({ key }) => key.name > 'e2' },
  {
    matches: ({ fields: { lastSeenMs } }) => lastSeenMs >= 10_000 && lastSeenMs < 40_000,
    requires: { sinceMs: 10_000, untilMs: 40_000, isAll: true },
  },
  {
    matches: ({ fields: { note } }) => note.includes('e1') && !note.endsWith('7'),
    requires: { texts: [{ texts: ['e1'], isIn: true, isAnywhere: false }] },
  },
)

const windows: fc.Arbitrary<{ window: TimeWindow; newSince?: TimeWindow }> = fc.constantFrom(
  { window: {} },
  { window: { sinceMs: 20_000 } },
  { window: { untilMs: 30_000 } },
  { window: { sinceMs: 15_000, untilMs: 25_500 } },
  {
    window: { sinceMs: 25_000, untilMs: 60_000 },
    newSince: { sinceMs: 5_000, untilMs: 25_000 },
  },
)

const groupings: fc.Arbitrary<readonly GroupField[]> = fc
  .subarray([...groupFields])
  // Without its cluster, an object would be of several.
  .filter((groupBy) => !groupBy.includes('object') || groupBy.includes('cluster'))
  // The kind of a workload is compared without case.
  .filter((groupBy) => !groupBy.includes('workload') || groupBy.includes('kind'))

function timeOf(seconds: number): string {
  return `${new Date(seconds * 1000).toISOString().slice(0, 19)}Z`
}

/** As it is after all writes. */
function eventOf(key: EventKey, at: number, made: Fields): StoredEvent {
  let event = writtenEvent(key, at, made)
  let { seen = 0, count = 1 } = made
  for (const [by, after] of raisesOf(made)) {
    count = Math.max(1, count) + by
    seen += after
    event = writtenEvent(key, at, { ...made, seen, count }, event)
  }
  return event
}

/** A series would hide the count, and a later first time contradict what was known. */
function raisesOf({
  series,
  seen = 0,
  first = 0,
  raises = [],
}: Fields): NonNullable<Fields['raises']> {
  return series === undefined && seen > 0 && first <= seen ? raises : []
}

function writtenEvent(key: EventKey, at: number, made: Fields, current?: StoredEvent): StoredEvent {
  const body = {
    metadata: { name: key.name, namespace: key.namespace },
    type: made.type,
    reason: made.reason,
    note: `${key.name} ${at}`,
    reportingController: made.controller,
    deprecatedSource: { component: made.component },
    regarding: { kind: made.kind, name: made.object, namespace: made.home },
    ...(made.seen !== undefined && { deprecatedLastTimestamp: timeOf(made.seen) }),
    ...(made.first !== undefined && { deprecatedFirstTimestamp: timeOf(made.first) }),
    ...(made.count !== undefined && { deprecatedCount: made.count }),
    ...(made.series !== undefined && {
      series: {
        count: made.series,
        lastObservedTime: timeOf(made.series).replace('Z', '.000000Z'),
      },
    }),
  }
  return storedEvent(key, versionOfChange(at, 0), Buffer.from(JSON.stringify(body)), current)
}

const secondMs = 1_000

/** When the event of each write was observed, by what the writes said. */
function timesOf(made: Fields, event: StoredEvent): readonly Timed[] {
  const { firstSeenMs: firstMs } = event.fields
  if (raisesOf(made).length === 0) {
    const { lastSeenMs, occurrences } = event.fields
    return distributed(firstMs, lastSeenMs, occurrences, occurrences > 1)
  }
  const count = Math.max(1, made.count ?? 1)
  let lastMs = (made.seen ?? 0) * secondMs
  const times = [...distributed(firstMs, lastMs, count, count > 1)]
  let { seen = 0 } = made
  for (const [by, after] of raisesOf(made)) {
    seen += after
    const nextMs = Math.max(lastMs, seen * secondMs)
    const span = [by === 1 ? nextMs : lastMs, nextMs] as const
    for (let index = 1; index <= by; index++) {
      times.push({ ms: lastMs + ((nextMs - lastMs) * index) / by, span, isEstimated: false })
    }
    lastMs = nextMs
  }
  return times
}

interface Timed {
  readonly ms: number
  /** The occurrences that were told together were between these times. */
  readonly span: readonly [firstMs: number, lastMs: number]
  readonly isEstimated: boolean
}

function distributed(
  firstMs: number,
  lastMs: number,
  count: number,
  isEstimated: boolean,
): readonly Timed[] {
  const fromMs = count > 1 && firstMs > 0 && firstMs < lastMs ? firstMs : lastMs
  const step = count === 1 ? 0 : (lastMs - fromMs) / (count - 1)
  const span = [fromMs, lastMs] as const
  return Array.from({ length: count }, (_, index) => ({
    ms: fromMs + step * index,
    span,
    isEstimated,
  }))
}

function memoryOf(events: readonly StoredEvent[]): EventMemory {
  const memory = new EventMemory(defaultMemoryBounds, { now: () => 0 })
  for (const event of events) memory.put(event)
  memory.reach(versionOfState(events.length + 1))
  return memory
}

const madeFrom = new WeakMap<StoredEvent, Fields>()

/** One event for each key, sorted by key. */
function stored(list: readonly (readonly [EventKey, Fields])[]): readonly StoredEvent[] {
  const byPath = new Map<string, StoredEvent>()
  for (const [at, [key, made]] of list.entries()) {
    const event = eventOf(key, at + 1, made)
    madeFrom.set(event, made)
    byPath.set(pathOf(key), event)
  }
  return [...byPath].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, event]) => event)
}

function shownValue(
  { key, fields: { regarding, ...own } }: StoredEvent,
  field: GroupField,
): string {
  switch (field) {
    case 'cluster':
    case 'namespace':
      return key[field]
    case 'kind':
      return regarding.kind
    case 'object':
      return [regarding.kind, regarding.namespace, regarding.name]
        .filter((part) => part !== '')
        .join('/')
    case 'controller':
      return own.reportingController || own.sourceComponent
    case 'workload':
      return `${regarding.kind}/${regarding.name}`
    case 'pattern':
      return patternId(patternOf(own.note))
    default:
      return own[field]
  }
}

interface Seen {
  readonly event: StoredEvent
  readonly count: number
  readonly before: number
  readonly firstMs: number
  readonly lastMs: number
  readonly isEstimated: boolean
}

/** What of an event is within a window. */
function seenIn(event: StoredEvent, window: TimeWindow, newSince?: TimeWindow): Seen {
  const { firstSeenMs, lastSeenMs, occurrences } = event.fields
  const { sinceMs = Number.NEGATIVE_INFINITY } = window
  const made = madeFrom.get(event)
  assert.ok(made)
  const all = timesOf(made, event)
  const times = all.filter(({ ms }) => isWithin(window, ms))
  const before = newSince === undefined ? [] : all.filter(({ ms }) => isWithin(newSince, ms))
  const isWhole = isWithin(window, lastSeenMs) && (firstSeenMs >= sinceMs || occurrences === 1)
  const isCut = all.some(({ span: [fromMs, toMs] }) => {
    const { untilMs = Number.POSITIVE_INFINITY } = window
    return [sinceMs, untilMs].some((ms) => fromMs < ms && ms <= toMs)
  })
  return {
    event,
    count: times.length,
    before: before.length,
    firstMs: firstSeenMs,
    lastMs: isWhole ? lastSeenMs : Math.floor(times.at(-1)?.ms ?? 0),
    isEstimated: !isWhole && isCut,
  }
}

function isWithin({ sinceMs, untilMs }: TimeWindow, ms: number): boolean {
  return ms >= (sinceMs ?? Number.NEGATIVE_INFINITY) && ms < (untilMs ?? Number.POSITIVE_INFINITY)
}

function lengthOf({ sinceMs = 0, untilMs = 0 }: TimeWindow): number {
  return untilMs - sinceMs
}

interface PlainOptions {
  readonly groupBy: readonly GroupField[]
  readonly rankOf: (values: readonly string[]) => number
  readonly window: TimeWindow
  readonly newSince?: TimeWindow | undefined
  readonly order?: 'count' | 'newest' | undefined
}

function plainSummary(
  events: readonly StoredEvent[],
  { groupBy, rankOf, window, newSince, order }: PlainOptions,
): readonly SummaryGroup[] {
  const groups = new Map<string, Seen[]>()
  for (const event of events) {
    const seen = seenIn(event, window, newSince)
    if (seen.count + seen.before === 0) continue
    const key = JSON.stringify(groupBy.map((field) => shownValue(event, field)))
    groups.set(key, [...(groups.get(key) ?? []), seen])
  }
  const sum = (members: readonly Seen[]) => members.reduce((total, { count }) => total + count, 0)
  const made: SummaryGroup[] = []
  const isNew = (count: number, before: number): boolean => {
    if (newSince === undefined) return true
    return before / lengthOf(newSince) < (count / lengthOf(window)) * 0.1
  }
  for (const [key, all] of groups) {
    const members = all.filter(({ count }) => count > 0)
    const before = all.reduce((total, one) => total + one.before, 0)
    if (members.length === 0 || !isNew(sum(members), before)) continue
    const lastMs = Math.max(...members.map((one) => one.lastMs))
    const firsts = members.map((one) => one.firstMs).filter((ms) => ms !== 0)
    const objects = members.map(
      ({ event }) => `${event.key.cluster} ${shownValue(event, 'object')}`,
    )
    made.push({
      values: JSON.parse(key),
      ...(groupBy.includes('workload') && { workloadRule: 'self' }),
      occurrences: sum(members),
      ...(newSince !== undefined && { before }),
      isEstimated: members.some(({ isEstimated }) => isEstimated),
      warnings: sum(members.filter(({ event: { fields: own } }) => own.type === 'Warning')),
      events: members.length,
      objects: new Set(objects).size,
      firstMs: firsts.length === 0 ? undefined : Math.min(...firsts),
      lastMs: lastMs === 0 ? undefined : lastMs,
      note: members.find((one) => one.lastMs === lastMs)?.event.fields.note ?? '',
    })
  }
  const newest = (one: SummaryGroup, other: SummaryGroup) =>
    Number(other.warnings > 0) - Number(one.warnings > 0) ||
    (other.firstMs ?? 0) - (one.firstMs ?? 0)
  return made.sort(
    (one, other) =>
      rankOf(other.values) - rankOf(one.values) ||
      (order === 'newest' ? newest(one, other) : 0) ||
      other.occurrences - one.occurrences ||
      compareLists(one.values, other.values),
  )
}

function compareLists(one: readonly string[], other: readonly string[]): number {
  const at = one.findIndex((value, index) => value !== other[index])
  return at === -1 ? 0 : (one[at] ?? '') < (other[at] ?? '') ? -1 : 1
}

const plainFields = {
  type: 'Normal',
  reason: 'R',
  controller: 'c',
  component: '',
  kind: 'Pod',
  object: 'p',
  home: 'shop',
  seen: 1,
  first: 1,
  count: 1,
  series: undefined,
}

describe('a summary', () => {
  test('is what a plain re-implementation makes of the same events', async () => {
    const made = fc.array(fc.tuple(keys, fields), { maxLength: 120 })
    const groupsMax = fc.constantFrom(1, 3, 500)
    const isRanked = fc.boolean()
    await fc.assert(
      fc.asyncProperty(
        fc.record({
          made,
          scope: scopes,
          selector: selectors,
          groupBy: groupings,
          groupsMax,
          isRanked,
          timed: windows,
          order: fc.constantFrom('count' as const, 'newest' as const, undefined),
        }),
        async ({ made: list, scope, selector, groupBy, order, timed, ...others }) => {
          const events = stored(list)
          const memory = memoryOf(events)
          const { groupsMax: max } = others
          const rankOf = others.isRanked
            ? ([value = '']: readonly string[]) => value.length
            : undefined
          const counted = { groupBy, order, ...timed }
          const options = { scope, selector, ...counted, groupsMax: max, rankOf, signal, lane }
          const found = await summarize(memory, memory.peek(), options)
          const matching = events.filter(
            (event) => isInScope(scope, event.key) && (selector?.matches(event) ?? true),
          )
          const expected = plainSummary(matching, { ...counted, rankOf: rankOf ?? (() => 0) })
          assert.deepEqual(found.groups, expected.slice(0, max))
          assert.equal(found.hidden, Math.max(0, expected.length - max))
          assert.equal(found.version, memory.version)
        },
      ),
      { numRuns: 300 },
    )
  })

  test('of more groups than are shown is exact, by count and by rank', async () => {
    const count = 12_000
    const memory = memoryOf(
      Array.from({ length: count }, (_, at) =>
        eventOf({ cluster: 'local', namespace: 'shop', name: `e${at}` }, at + 1, {
          ...plainFields,
          controller: `c${at}`,
          object: `p${at}`,
          count: at % 4_001,
        }),
      ),
    )
    const top = async (
      groupBy: readonly GroupField[],
      rankOf?: (values: readonly string[]) => number,
    ) => {
      const options = { scope: allEvents, groupBy, groupsMax: 5, rankOf, signal, lane }
      const { groups, hidden } = await summarize(memory, memory.peek(), options)
      assert.equal(hidden, count - 5)
      return groups.map(({ values, occurrences, objects }) => [...values, occurrences, objects])
    }
    assert.deepEqual(await top(['cluster', 'object']), [
      ['local', 'Pod/shop/p4000', 4_000, 1],
      ['local', 'Pod/shop/p8001', 4_000, 1],
      ['local', 'Pod/shop/p3999', 3_999, 1],
      ['local', 'Pod/shop/p8000', 3_999, 1],
      ['local', 'Pod/shop/p3998', 3_998, 1],
    ])
    // The last ones in the order of keys.
    const ranks = new Map([...Array(4).keys()].map((at) => [`c${9_996 + at}`, at + 1]))
    assert.deepEqual(await top(['controller'], ([value = '']) => ranks.get(value) ?? 0), [
      ['c9999', 1_997, 1],
      ['c9998', 1_996, 1],
      ['c9997', 1_995, 1],
      ['c9996', 1_994, 1],
      ['c4000', 4_000, 1],
    ])
  })

  test('of groups that tie holds the event loop for some milliseconds only', async () => {
    const memory = memoryOf(
      Array.from({ length: 10_000 }, (_, at) =>
        eventOf({ cluster: 'local', namespace: 'shop', name: `e${at}` }, at + 1, {
          ...plainFields,
          reason: `R${(at * 7_919) % 10_000}`,
        }),
      ),
    )
    let turns = 0
    const timer = setInterval(() => turns++, 1)
    const options = { scope: allEvents, groupBy: ['reason'] as const, groupsMax: 2, signal, lane }
    const { groups, hidden } = await summarize(memory, memory.peek(), options)
    clearInterval(timer)
    assert.deepEqual(
      groups.map(({ values: [value] }) => value),
      ['R0', 'R1'],
    )
    assert.equal(hidden, 9_998)
    assert.ok(turns > 0)
  })

  test('counts one state even when events change while it is computed', async () => {
    const events = Array.from({ length: 30_000 }, (_, at) =>
      eventOf({ cluster: 'local', namespace: 'shop', name: `e${at}` }, at + 1, {
        ...plainFields,
        reason: at % 2 === 0 ? 'Even' : 'Odd',
        object: `p${at % 100}`,
        seen: at + 1,
      }),
    )
    const memory = memoryOf(events)
    const state = memory.peek()
    using _pin = memory.pin(state)
    let isDone = false
    const computed = summarize(memory, state, {
      scope: allEvents,
      groupBy: ['reason'],
      groupsMax: 500,
      signal,
      lane,
    }).finally(() => {
      isDone = true
    })
    let changes = 0
    for (; !isDone; changes++) {
      const version = versionOfChange(40_000 + changes, 0)
      memory.delete({ cluster: 'local', namespace: 'shop', name: `e${29_999 - changes}` }, version)
      memory.reach(version)
      await setImmediate()
    }
    const { groups, version } = await computed
    assert.equal(version, state.version)
    assert.deepEqual(
      groups.map(({ values: [reason], events: count, note }) => [reason, count, note]),
      [
        ['Even', 15_000, 'e29998 29999'],
        ['Odd', 15_000, 'e29999 30000'],
      ],
    )
  })

  const eventsWithReasons = (count: number) =>
    Array.from({ length: count }, (_, at) =>
      eventOf({ cluster: 'local', namespace: 'shop', name: `e${at}` }, at + 1, {
        type: 'Normal',
        reason: `R${at}`,
        controller: 'c',
        component: '',
        kind: 'Pod',
        object: 'p',
        home: 'shop',
        seen: 5,
        first: 1,
        count: 1,
        series: undefined,
      }),
    )

  test('shortens long values and notes, and distinguishes long values', async () => {
    const long = 'x'.repeat(100_000)
    const events = ['a', 'b'].map((end, at) => {
      const key = { cluster: 'local', namespace: 'shop', name: end }
      const regarding = { kind: long, namespace: long, name: long + end }
      const body = { metadata: key, regarding, note: long, reportingController: long }
      const text = Buffer.from(JSON.stringify(body))
      return storedEvent(key, versionOfChange(at + 1, 0), text)
    })
    const memory = memoryOf(events)
    const { groups } = await summarize(memory, memory.peek(), {
      scope: allEvents,
      groupBy: ['kind', 'object', 'controller'],
      groupsMax: 9,
      signal,
      lane,
    })
    assert.equal(groups.length, 2)
    assert.equal(new Set(groups.map(({ values }) => values[1])).size, 2)
    for (const { values, note } of groups) {
      assert.ok(values.every((value) => value.startsWith('xxx') && value.length <= 3 * 256))
      assert.equal(note, `${'x'.repeat(1_023)}…`)
    }
  })

  test('has any number of groups, a histogram only with a limit', async () => {
    const memory = memoryOf(eventsWithReasons(GROUPS_MAX + 1))
    const state = memory.peek()
    const options = { scope: allEvents, groupsMax: 1, signal, lane }
    const { groups, hidden } = await summarize(memory, state, { ...options, groupBy: ['reason'] })
    assert.deepEqual([groups.length, hidden], [1, GROUPS_MAX])
    const counts = { scope: allEvents, by: 'reason', bounds: [0, 10_000], signal, lane } as const
    await assert.rejects(histogram(memory, state, counts), TooManyGroups)
    const { buckets } = await histogram(memory, state, { ...counts, namesMax: 1 })
    assert.deepEqual(buckets, [
      [
        { name: 'R0', occurrences: 1, events: 1 },
        { name: '_other', occurrences: GROUPS_MAX, events: GROUPS_MAX },
      ],
    ])
  })

  test('a reason that is called as the others are is counted among them', async () => {
    const reasons = ['_other', '_other', 'Kept', 'Kept', 'Kept', 'Rare']
    const memory = memoryOf(
      reasons.map((reason, at) =>
        madeEvent(
          { cluster: 'local', namespace: 'shop', name: `e${at}` },
          versionOfChange(at + 1, 0),
          {
            reason,
            lastSeenMs: 5_000,
          },
        ),
      ),
    )
    const options = { scope: allEvents, by: 'reason', bounds: [0, 10_000], signal, lane } as const
    const { buckets } = await histogram(memory, memory.peek(), { ...options, namesMax: 2 })
    assert.deepEqual(buckets, [
      [
        { name: 'Kept', occurrences: 3, events: 3 },
        { name: '_other', occurrences: 3, events: 3 },
      ],
    ])
  })

  test('of many groups with the same count has the first ones by value', async () => {
    const memory = memoryOf(eventsWithReasons(GROUPS_MAX))
    const options = { scope: allEvents, groupsMax: 3, signal, lane, groupBy: ['reason'] } as const
    const { groups, hidden } = await summarize(memory, memory.peek(), options)
    assert.deepEqual(
      groups.map(({ values }) => values[0]),
      ['R0', 'R1', 'R10'],
    )
    assert.equal(hidden, GROUPS_MAX - 3)
  })

  test('ends with its signal', async () => {
    const memory = memoryOf(eventsWithReasons(GROUPS_MAX))
    const end = new AbortController()
    const reads = { count: 0 }
    // Slow enough that there is more than one slice.
    const selector: EventSelector = {
      matches: ({ fields: { reason } }) => {
        reads.count++
        end.abort()
        return reason !== ''
      },
    }
    await assert.rejects(
      summarize(memory, memory.peek(), {
        scope: allEvents,
        selector,
        groupBy: ['reason'],
        groupsMax: 1,
        signal: end.signal,
        lane,
      }),
      { kind: 'timeout' },
    )
    assert.ok(reads.count < GROUPS_MAX, `${reads.count}`)
  })
})

test('a histogram is what a plain re-implementation makes of the same events', async () => {
  const made = fc.array(fc.tuple(keys, fields), { maxLength: 120 })
  const bounds = fc
    .uniqueArray(fc.integer({ min: 0, max: 60_000 }), { minLength: 2, maxLength: 12 })
    .map((list) => list.sort((one, other) => one - other))
  const by = fc.constantFrom(...groupFields.filter((field) => field !== 'workload'))
  const namesMax = fc.constantFrom(undefined, 1, 2, 50)
  await fc.assert(
    fc.asyncProperty(
      fc.record({ made, scope: scopes, selector: selectors, bounds, by, namesMax }),
      async ({ made: list, scope, selector, bounds: starts, by: field, namesMax: max }) => {
        const events = stored(list)
        const memory = memoryOf(events)
        const options = { scope, selector, bounds: starts, by: field, namesMax: max, signal, lane }
        const found = await histogram(memory, memory.peek(), options)
        const within = events
          .filter((event) => isInScope(scope, event.key) && (selector?.matches(event) ?? true))
          .map((event) => ({ event, times: timesOf(madeFrom.get(event) ?? plainFields, event) }))
        const nameOf = ({ event }: Observed) => {
          const isNamed = field === 'object' && scope.cluster === undefined
          return `${isNamed ? `${event.key.cluster}/` : ''}${shownValue(event, field)}`
        }
        const own = new Set(
          plainCounts(within, nameOf, { sinceMs: starts[0], untilMs: starts.at(-1) })
            .sort((one, other) => other.occurrences - one.occurrences)
            .slice(0, max)
            .map(({ name }) => name),
        )
        const expected = starts.slice(0, -1).map((startMs, index) => {
          const endMs = starts[index + 1] ?? 0
          return plainCounts(within, (one) => (own.has(nameOf(one)) ? nameOf(one) : '_other'), {
            sinceMs: startMs,
            untilMs: endMs,
          })
        })
        assert.deepEqual(found, { version: memory.version, buckets: expected })
      },
    ),
    { numRuns: 300 },
  )
})

interface Observed {
  readonly event: StoredEvent
  readonly times: readonly Timed[]
}

/** By name. */
function plainCounts(
  observed: readonly Observed[],
  nameOf: (one: Observed) => string,
  bucket: TimeWindow,
): BucketCount[] {
  const inBucket = (one: Observed) => one.times.filter(({ ms }) => isWithin(bucket, ms))
  const present = observed.filter((one) => inBucket(one).length > 0)
  const names = [...new Set(present.map(nameOf))].sort()
  return names.map((name) => {
    const members = present.filter((one) => nameOf(one) === name)
    const times = members.flatMap(inBucket)
    const isEstimated = times.some(
      ({ span, isEstimated: isFirst }) => isFirst || !span.every((ms) => isWithin(bucket, ms)),
    )
    return {
      name,
      occurrences: times.length,
      events: members.length,
      ...(isEstimated && { estimated: true as const }),
    }
  })
}

test('summaries of one owner are computed one after the other, beside those of another', async () => {
  const waiting: (() => void)[] = []
  const isFresh = () => new Promise<boolean>((resolve) => waiting.push(() => resolve(true)))
  const storage = new SummaryStorage({
    memory: memoryOf([]),
    freshness: { isFresh },
  })
  const ended: string[] = []
  const ask = async (owner: string, name: string) => {
    await storage.summarize(allEvents, { lane: aLane(owner), groupBy: [], groupsMax: 1, signal })
    ended.push(name)
  }
  const asked = ['a1', 'a2', 'a3', 'b1', 'b2'].map((name) => ask(name.slice(0, 1), name))
  await setImmediate()
  assert.equal(waiting.length, 2)
  // The one of `b` is the second, although two more of `a` came before it.
  waiting.pop()?.()
  await asked[3]
  assert.deepEqual(ended, ['b1'])
  while (ended.length < asked.length) {
    waiting.shift()?.()
    await setImmediate()
  }
  assert.deepEqual(
    ended.filter((name) => name.startsWith('a')),
    ['a1', 'a2', 'a3'],
  )
})

test('owners whose lanes are busy do not keep others from their summaries', async () => {
  const queue = new RunQueue()
  const freshness = { isFresh: async () => true }
  const storage = new SummaryStorage({ memory: memoryOf([]), freshness })
  const ask = (lane: Lane) =>
    storage.summarize(allEvents, { lane, groupBy: [], groupsMax: 1, signal })
  const searches: Promise<void>[] = []
  const busy = ['a', 'b'].map((owner) => {
    const lane = queue.userLane(owner)
    for (let search = 0; search < 300; search++) searches.push(lane.next())
    return ask(lane)
  })
  let hasBusyEnded = false
  void Promise.race(busy).then(() => {
    hasBusyEnded = true
  })
  await ask(queue.userLane('c'))
  assert.equal(hasBusyEnded, false)
  await Promise.all([...busy, ...searches])
})
