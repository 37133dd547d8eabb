import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { ValuePattern } from '../../api/selectors/value-pattern.ts'
import { aLane } from '../../lib/run-queue.fixture.ts'
import type { ObjectReference } from '../../storage/event-fields.ts'
import { allEvents, isInScope, pathOf } from '../../storage/event-scope.ts'
import {
  type Mention,
  type Requires,
  type ValueField,
  type ValueRequirement,
  valueRequirement,
} from '../../storage/requires.ts'
import { type Version, versionOfChange, versionOfState } from '../../storage/resource-version.ts'
import type {
  EventKey,
  EventScope,
  EventSelector,
  ListOrder,
  StoredEvent,
} from '../../storage/storage.ts'
import { countIn, readPage } from '../read/page.ts'
import { COLUMNS } from './columns.ts'
import { madeEvent, madePut, storedEvent } from './made-events.fixture.ts'
import { defaultMemoryBounds, EventMemory, type State } from './memory.ts'
import { orderKey } from './order-key.ts'

const { signal } = new AbortController()
const clock = { now: () => 0 }

/** All properties of an event, as text. */
function textOf(stored: StoredEvent): string {
  return `${pathOf(stored.key)}@${stored.version} ${stored.body}`
}

/** The expected contents: a map for each version. */
class Model {
  readonly now = new Map<string, StoredEvent>()

  copy(): readonly StoredEvent[] {
    const byBytes = ([key]: [string, unknown], [other]: [string, unknown]) =>
      Buffer.compare(Buffer.from(key), Buffer.from(other))
    return [...this.now.entries()].sort(byBytes).map(([, stored]) => stored)
  }
}

const names = fc.constantFrom('a', 'b', 'b-1', 'b.1', 'c', 'zz', 'ä', '日本', '\u{1f600}', 'ﬀ')
const clusters = fc.constantFrom('local', 'prod', 'local-2')
const keys: fc.Arbitrary<EventKey> = fc.record({
  cluster: clusters,
  namespace: names,
  name: names,
})
const steps = fc.array(
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        do: fc.constant('put' as const),
        key: keys,
        fields: fc.record({
          reason: fc.constantFrom('Pulled', 'Failed', ''),
          uid: fc.constantFrom('u1', 'u2', 'u3'),
          type: fc.constantFrom('Normal', 'Warning'),
          controller: fc.constantFrom('kubelet', 'scheduler', ''),
          component: fc.constantFrom('kubelet', 'node-agent', ''),
          object: fc.constantFrom('p', 'q'),
          note: fc.string(),
          related: fc.option(fc.constantFrom('n1', 'n2', 'p'), { nil: undefined }),
          lastSeenMs: fc.integer({ min: 1, max: 12 }),
        }),
      }),
    },
    { weight: 3, arbitrary: fc.record({ do: fc.constant('delete' as const), key: keys }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('keep' as const) }) },
  ),
  { minLength: 100, maxLength: 400, size: 'max' },
)

function patternsOf(...texts: readonly string[]): fc.Arbitrary<readonly ValuePattern[]> {
  const exact = fc.constantFrom(...texts).map((text) => ({ text, isPrefix: false }))
  const prefix = fc
    .constantFrom(...texts.filter((text) => text !== ''))
    .map((text) => ({ text: [...text].slice(0, 2).join(''), isPrefix: true }))
  return fc.array(fc.oneof({ weight: 3, arbitrary: exact }, { weight: 1, arbitrary: prefix }), {
    minLength: 1,
    maxLength: 3,
  })
}

function some<T>(...values: readonly T[]): fc.Arbitrary<readonly T[]> {
  return fc.array(fc.constantFrom(...values), { minLength: 1, maxLength: 3 })
}

const valuesOf: Readonly<Record<ValueField, fc.Arbitrary<readonly ValuePattern[]>>> = {
  reason: patternsOf('Pulled', 'Failed', 'Pushed', '', 'None'),
  type: patternsOf('Normal', 'Warning'),
  reportingController: patternsOf('kubelet', 'none', ''),
  controller: patternsOf('kubelet', 'node-agent', 'none', ''),
  'regarding.kind': patternsOf('Pod', 'Node'),
}

const valueRequirements: fc.Arbitrary<ValueRequirement> = fc
  .constantFrom(...(Object.keys(valuesOf) as ValueField[]))
  .chain((field) =>
    fc.record({
      field: fc.constant(field),
      operator: fc.constantFrom('=' as const, '=' as const, '!=' as const),
      patterns: valuesOf[field],
    }),
  )

const requires: fc.Arbitrary<Requires> = fc.record(
  {
    names: patternsOf('a', 'b', 'b.1', 'ä', '日本', '\u{1f600}'),
    namespaces: patternsOf('a', 'b', 'b-1', 'zz', '日本'),
    values: fc.array(valueRequirements, { minLength: 1, maxLength: 3 }),
    regardingUids: some('u1', 'u2', 'none'),
    regarding: some({ kind: 'Pod', name: 'p' }, { kind: 'Pod', name: 'q' }),
    mentions: some<Mention>(
      { kind: 'Pod', name: 'p' },
      { kind: 'pod', name: 'q' },
      { kind: 'node', name: 'n1' },
      { uid: 'u1' },
      { uid: 'n1-uid' },
      { uid: 'none' },
    ),
    sinceMs: fc.integer({ min: 0, max: 13 }),
    untilMs: fc.integer({ min: 0, max: 13 }),
  },
  { requiredKeys: [] },
)

interface Query {
  readonly scope: EventScope
  readonly order: ListOrder | undefined
  readonly after: EventKey | undefined
  readonly afterMs: number
  readonly limit: number
  readonly wanted: Requires | undefined
}

const scopes: fc.Arbitrary<EventScope> = fc.oneof(
  fc.constant(allEvents),
  fc.record({ cluster: clusters, namespace: fc.option(names, { nil: undefined }) }),
)

const queries: fc.Arbitrary<Query> = fc.record({
  scope: scopes,
  order: fc.constantFrom(undefined, 'key' as const, 'oldest' as const, 'newest' as const),
  after: fc.option(keys, { nil: undefined }),
  afterMs: fc.integer({ min: 0, max: 13 }),
  limit: fc.integer({ min: 1, max: 20 }),
  wanted: fc.option(requires, { nil: undefined }),
})

/** Without objects, names and mentions, the index decides alone. */
function selectorOf(wanted: Requires): EventSelector {
  const { names, namespaces, regarding, regardingUids, mentions } = wanted
  const isAll = [names, namespaces, regarding, regardingUids, mentions].every(
    (one) => one === undefined,
  )
  return {
    requires: { ...wanted, isAll },
    matches: (stored) => {
      assert.equal(isAll, false, 'the index knows all that is required')
      return hasAll(stored, wanted)
    },
  }
}

const readValue: Readonly<Record<ValueField, (fields: StoredEvent['fields']) => string>> = {
  reason: ({ reason }) => reason,
  type: ({ type }) => type,
  reportingController: ({ reportingController }) => reportingController,
  controller: ({ reportingController, sourceComponent }) =>
    reportingController === '' ? sourceComponent : reportingController,
  'regarding.kind': ({ regarding }) => regarding.kind,
}

function hasAll({ key, fields }: StoredEvent, wanted: Requires): boolean {
  const { values = [], mentions, regarding, regardingUids } = wanted
  const { sinceMs = 0, untilMs = Number.POSITIVE_INFINITY } = wanted
  const isObject = (object: ObjectReference, mention: Mention): boolean =>
    mention.uid === undefined
      ? object.kind.toLowerCase() === mention.kind.toLowerCase() && object.name === mention.name
      : object.uid === mention.uid
  const hasPattern = (patterns: readonly ValuePattern[] | undefined, value: string): boolean =>
    patterns?.some(({ text, isPrefix }) => (isPrefix ? value.startsWith(text) : value === text)) ??
    true
  return (
    hasPattern(wanted.names, key.name) &&
    hasPattern(wanted.namespaces, key.namespace) &&
    values.every(
      ({ field, operator, patterns }) =>
        hasPattern(patterns, readValue[field](fields)) === (operator === '='),
    ) &&
    fields.lastSeenMs >= sinceMs &&
    fields.lastSeenMs < untilMs &&
    (mentions?.some((one) => isObject(fields.regarding, one) || isObject(fields.related, one)) ??
      true) &&
    (regarding?.some((one) => isObject(fields.regarding, one)) ?? true) &&
    (regardingUids?.includes(fields.regarding.uid) ?? true)
  )
}

test('every page of every snapshot equals that of a sorted map of the same version', async () => {
  await fc.assert(
    fc.asyncProperty(steps, fc.array(queries, { minLength: 5 }), async (made, wanted) => {
      const memory = new EventMemory(defaultMemoryBounds, clock)
      const model = new Model()
      const states: { readonly state: State; readonly expected: readonly StoredEvent[] }[] = []
      for (const [index, step] of made.entries()) {
        const revision = index + 1
        if (step.do === 'keep')
          states.push({ state: memory.snapshot() ?? memory.peek(), expected: model.copy() })
        else change(memory, model, step, versionOfChange(revision, 0))
        memory.reach(versionOfState(revision))
      }
      states.push({ state: memory.peek(), expected: model.copy() })
      for (const { state, expected } of states) {
        for (const query of wanted) await checkPage(memory, state, { query, expected })
      }
      for (const { scope } of wanted) {
        const inScope = model.copy().filter(({ key }) => isInScope(scope, key))
        assert.equal(countIn(memory, scope), inScope.length)
      }
    }),
    { numRuns: 25 },
  )
})

async function checkPage(
  memory: EventMemory,
  state: State,
  { query, expected }: { readonly query: Query; readonly expected: readonly StoredEvent[] },
): Promise<void> {
  const selector = query.wanted && selectorOf(query.wanted)
  const page = await readPage(memory, state, { ...query, selector, signal, lane: aLane() })
  const right = expectedPage(expected, query)
  assert.deepEqual(page.items.map(textOf), right.items.map(textOf))
  // In the order of time it is not always known behind the first page.
  const isKnown = page.remaining !== undefined
  const mayBeUnknown = (query.order ?? 'key') !== 'key' && query.after !== undefined
  assert.equal(isKnown || mayBeUnknown, selector === undefined || mayBeUnknown)
  if (isKnown) assert.equal(page.remaining, right.remaining)
  if (right.remaining > 0) assert.equal(page.more, true)
  assert.equal(page.version, state.version)
}

function change(
  memory: EventMemory,
  model: Model,
  step: { readonly do: 'put' | 'delete'; readonly key: EventKey; readonly fields?: object },
  version: Version,
): void {
  const text = pathOf(step.key)
  const before = model.now.get(text)
  const isDelete = step.do === 'delete'
  const previous = isDelete ? memory.delete(step.key, version) : memory.put(made(step, version))
  assert.equal(previous && textOf(previous), before && textOf(before))
  if (step.do === 'delete') model.now.delete(text)
  else model.now.set(text, made(step, version))
}

function made(step: { readonly key: EventKey; readonly fields?: object }, version: Version) {
  return madeEvent(step.key, version, step.fields)
}

function expectedPage(
  all: readonly StoredEvent[],
  { scope, order = 'key', after, afterMs, limit, wanted }: Query,
): { readonly items: readonly StoredEvent[]; readonly remaining: number } {
  const direction = order === 'newest' ? -1 : 1
  const compare = (key: EventKey, ms: number, other: StoredEvent): number =>
    direction *
    ((order === 'key' ? 0 : ms - other.fields.lastSeenMs) ||
      Buffer.compare(Buffer.from(pathOf(key)), Buffer.from(pathOf(other.key))))
  const matching = all
    .filter(
      (stored) =>
        isInScope(scope, stored.key) &&
        (after === undefined || compare(after, afterMs, stored) < 0) &&
        (wanted === undefined || hasAll(stored, wanted)),
    )
    .sort((one, other) => compare(one.key, one.fields.lastSeenMs, other))
  return { items: matching.slice(0, limit), remaining: Math.max(0, matching.length - limit) }
}

test('a page in key order that is found through times begins behind its key', async () => {
  const memory = new EventMemory(defaultMemoryBounds, clock)
  const keyOf = (n: number): EventKey => ({
    cluster: 'local',
    namespace: 'a',
    name: `e-${100 + n}`,
  })
  for (let n = 0; n < 100; n++) {
    // The times of the recent ones fall while their keys rise.
    const lastSeenMs = n % 10 === 0 ? 2_000 - n : n
    memory.put(madeEvent(keyOf(n), versionOfChange(n + 1, 0), { lastSeenMs }))
    memory.reach(versionOfState(n + 1))
  }
  const selector = selectorOf({ sinceMs: 1_000 })
  const after = keyOf(30)
  const page = { scope: allEvents, order: 'key', after, limit: 4, selector, signal } as const
  const { items } = await readPage(memory, memory.peek(), { ...page, lane: aLane() })
  assert.deepEqual(
    items.map(({ key }) => key.name),
    [40, 50, 60, 70].map((n) => keyOf(n).name),
  )
})

test('a body that was read stays valid, whatever happens to the event', () => {
  const memory = new EventMemory(defaultMemoryBounds, clock)
  const key = (n: number) => ({ cluster: 'local', namespace: 'x', name: `e-${n}` })
  const put = (n: number, revision: number) => {
    memory.put(
      madeEvent(key(n), versionOfChange(revision, 0), { note: `${n} ${revision}`.repeat(50) }),
    )
    memory.reach(versionOfState(revision))
  }
  for (let n = 0; n < 2_000; n++) put(n, n + 1)
  const state = memory.peek()
  const held = state.byKey.runAt(0).run.slots.map((slot) => memory.table.read(slot))
  const texts = held.map(textOf)
  const full = memory.table.bodyBytes
  for (let round = 1; round < 6; round++) {
    for (let n = 0; n < 2_000; n++) put((n * 7919) % 2_000, round * 2_000 + n + 1)
  }
  assert.deepEqual(held.map(textOf), texts)
  assert.ok(memory.table.bodyBytes < full * 1.6, 'dead bodies are reclaimed')
})

test('the values of a row are those of its fields, or not known any more', () => {
  const memory = new EventMemory(defaultMemoryBounds, clock)
  const key = { cluster: 'local', namespace: 'x', name: 'a' }
  const read = () =>
    memory
      .peek()
      .byKey.runAt(0)
      .run.slots.map((slot) => memory.table.read(slot))
  const put = (revision: number, reason: string) => {
    const fields = { type: 'Warning', reason, controller: 'kubelet' }
    memory.put(madeEvent(key, versionOfChange(revision, 0), fields))
    memory.reach(versionOfState(revision))
  }
  put(1, 'First')
  const [known, late] = [...read(), ...read()]
  const kind = known?.fields.regarding.kind
  const values = { type: 'Warning', reason: 'First', kind, reportingController: 'kubelet' }
  assert.deepEqual(known?.values, values)
  for (let revision = 2; revision < 10; revision++) put(revision, `Other${revision}`)
  assert.deepEqual([known?.values, late?.values], [values, undefined])
  assert.equal(late?.fields.reason, 'First')
  assert.equal(read()[0]?.values?.reason, 'Other9')
})

test('snapshots are evicted by number, by age and by the bytes they retain', () => {
  let nowMs = 0
  const bounds = { statesMax: 3, stateAgeMsMax: 100, stateBytesMax: 50_000 }
  const memory = new EventMemory(bounds, { now: () => nowMs })
  const write = (revision: number, note = '') => {
    const key = { cluster: 'local', namespace: 'x', name: 'a' }
    memory.put(madeEvent(key, versionOfChange(revision, 0), { note }))
    memory.reach(versionOfState(revision))
  }
  for (let revision = 1; revision <= 5; revision++) {
    write(revision)
    memory.snapshot()
  }
  write(6)
  assert.equal(memory.statesKept, 3)
  assert.equal(memory.snapshotAt(versionOfState(2)), undefined)
  assert.ok(memory.snapshotAt(versionOfChange(5, 0)), 'found by a version inside its transaction')
  nowMs = 200
  write(7, 'x'.repeat(60_000))
  assert.equal(memory.statesKept, 0)
  memory.snapshot()
  const pin = memory.pin(memory.peek())
  write(8, 'x'.repeat(60_000))
  assert.equal(memory.statesKept, 1, 'it is pinned')
  pin[Symbol.dispose]()
  assert.equal(memory.statesKept, 0)
  memory.snapshot()
  for (let revision = 9; revision < 30; revision++) write(revision)
  assert.equal(memory.statesKept, 0, 'it retained the large body')
  memory.snapshot()
  for (let revision = 30; revision < 50; revision++) write(revision, 'x'.repeat(10_000))
  assert.equal(memory.statesKept, 1, 'it does not retain bodies that it never contained')
})

test('a state that was only pinned goes with its last pin; one for pages stays', () => {
  const memory = new EventMemory(defaultMemoryBounds, clock)
  const write = (revision: number): void => {
    memory.put(madePut('a', revision).stored)
    memory.reach(versionOfState(revision))
  }
  write(1)
  const [one, other] = [memory.pin(memory.peek()), memory.pin(memory.peek())]
  write(2)
  one[Symbol.dispose]()
  assert.equal(memory.statesKept, 1, 'the other pin needs it')
  other[Symbol.dispose]()
  assert.equal(memory.statesKept, 0)
  const paging = memory.pin(memory.peek(), { isForPages: true })
  const state = memory.peek()
  write(3)
  paging[Symbol.dispose]()
  assert.equal(memory.statesKept, 1)
  const again = memory.pin(state)
  again[Symbol.dispose]()
  assert.ok(memory.snapshotAt(versionOfState(2)), 'a pin does not end it')
})

test('a state goes with the last page of a reader that reads it once', async () => {
  const memory = new EventMemory(defaultMemoryBounds, clock)
  let revision = 0
  const write = (): void => {
    const key = { cluster: 'local', namespace: 'x', name: `e-${++revision}` }
    memory.put(madeEvent(key, versionOfChange(revision, 0)))
    memory.reach(versionOfState(revision))
  }
  while (revision < 30) write()
  const readAll = async (onPage: () => void): Promise<void> => {
    const { version } = memory
    let after: EventKey | undefined
    for (let more = true; more; ) {
      const state =
        after === undefined ? memory.peek() : memory.snapshotAt(version, { isReadOnce: true })
      assert.ok(state, 'there is a snapshot for the next page')
      const query = { scope: allEvents, after, limit: 10, isReadOnce: true, signal }
      const page = await readPage(memory, state, { ...query, lane: aLane() })
      more = page.more
      after = page.items.at(-1)?.key
      write()
      onPage()
    }
  }
  await readAll(() => {})
  assert.equal(memory.statesKept, 0)
  const { version } = memory
  await readAll(() => memory.snapshotAt(version))
  assert.equal(memory.statesKept, 1, 'another reader reads it, too')
})

test('a paged read that a reload overtakes leaves no state behind for the next page', async () => {
  const memory = new EventMemory(defaultMemoryBounds, clock)
  const put = (revision: number): void => {
    const key = { cluster: 'local', namespace: 'x', name: `e-${revision}` }
    memory.put(madeEvent(key, versionOfChange(revision, 0)))
  }
  for (let revision = 1; revision <= 300; revision++) put(revision)
  memory.reach(versionOfState(300))
  const state = memory.peek()
  const query = {
    scope: { cluster: undefined, namespace: undefined },
    limit: 10,
    signal,
    // Slow enough that the read gives up its time slice.
    selector: {
      matches: () => {
        const until = performance.now() + 1
        while (performance.now() < until);
        return true
      },
    } as unknown as EventSelector,
  }
  const read = readPage(memory, state, { ...query, lane: aLane() })
  // Meanwhile the reload has begun: the present is a mixture under the old version.
  memory.forgetStates()
  put(500)
  const page = await read
  assert.equal(page.more, true)
  assert.equal(memory.snapshotAt(state.version), undefined)
  assert.equal(memory.statesKept, 0)
  memory.reach(versionOfState(600))
  memory.snapshot()
  assert.ok(memory.snapshotAt(versionOfState(600)))
})

test('objects of the same name in many namespaces are different objects', () => {
  const memory = new EventMemory(defaultMemoryBounds, clock)
  const found = new Set<number>()
  for (let n = 0; n < 10_000; n++) {
    const key = { cluster: 'local', namespace: `ns-${n}`, name: 'e' }
    memory.put(madeEvent(key, versionOfChange(n + 1, 0), { object: 'web' }))
    const slot = memory.find(orderKey(key))
    if (slot !== undefined) found.add(memory.table.valueOf(slot, COLUMNS.object))
  }
  assert.equal(found.size, 10_000)
})

test('long values are shortened, and still found and distinguished', async () => {
  const memory = new EventMemory(defaultMemoryBounds, clock)
  const long = 'x'.repeat(100_000)
  for (const [index, end] of ['a', 'b'].entries()) {
    const key = { cluster: 'local', namespace: 'a', name: end }
    memory.put(madeEvent(key, versionOfChange(index + 1, 0), { reason: long + end }))
  }
  const selector = selectorOf({ values: [valueRequirement('reason', '=', `${long}b`)] })
  const { items } = await readPage(memory, memory.peek(), {
    lane: aLane(),
    scope: allEvents,
    limit: 9,
    selector,
    signal,
  })
  assert.deepEqual(
    items.map(({ key }) => key.name),
    ['b'],
  )
  const slot = memory.find(orderKey({ cluster: 'local', namespace: 'a', name: 'b' })) ?? -1
  const text = memory.table.texts.textOf(memory.table.valueOf(slot, COLUMNS.reason))
  assert.ok(text.length < 256 && text.startsWith('xxx'))
})

test('a snapshot that is read again and again is not evicted', () => {
  let nowMs = 0
  const bounds = { ...defaultMemoryBounds, stateAgeMsMax: 100 }
  const memory = new EventMemory(bounds, { now: () => nowMs })
  memory.reach(versionOfState(1))
  memory.snapshot()
  for (let revision = 2; revision < 6; revision++) {
    nowMs += 80
    memory.reach(versionOfState(revision))
    assert.ok(memory.snapshotAt(versionOfState(1)), `after ${nowMs} ms`)
  }
  nowMs += 101
  memory.reach(versionOfState(7))
  assert.equal(memory.snapshotAt(versionOfState(1)), undefined)
})

test('the bytes of a namespace include what is stored of occurrences, until the event is deleted', () => {
  const memory = new EventMemory(defaultMemoryBounds, { now: () => 0 })
  const key = { cluster: 'local', namespace: 'shop', name: 'e' }
  const bodyOf = (count: number) =>
    Buffer.from(
      JSON.stringify({
        metadata: { name: key.name, namespace: key.namespace },
        deprecatedLastTimestamp: `2026-11-17T01:0${count}:00Z`,
        deprecatedCount: count,
      }),
    )
  const first = storedEvent(key, versionOfChange(1, 0), bodyOf(1))
  const second = storedEvent(key, versionOfChange(2, 0), bodyOf(2), first)
  const bytes = () => memory.namespaces.sizesWhile(() => true).of('local', 'shop')?.bytes
  memory.put(first)
  assert.equal(bytes(), bodyOf(1).length)
  memory.put(second)
  assert.ok((bytes() ?? 0) > bodyOf(2).length)
  memory.delete(key, versionOfChange(3, 0))
  assert.equal(bytes() ?? 0, 0)
})
