/** Pages of the archive against a plain filter and sort of its rows. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parseFieldSelector } from '../../../src/api/selectors/field-selector.ts'
import { parseLabelSelector } from '../../../src/api/selectors/label-selector.ts'
import type { ArchivedEvent, InputFile, PageQuery } from '../../../src/history/engine/protocol.ts'
import { dateOf } from '../../../src/history/manifest.ts'
import { MadeArchive, type MadeRow } from '../../../src/history/read/archive.fixture.ts'
import { readPage } from '../../../src/history/read/page-job.ts'
import { eventSelector } from '../../../src/registry/read/event-selector.ts'
import { isInScope, pathOf } from '../../../src/storage/event-scope.ts'
import { versionOfChange } from '../../../src/storage/resource-version.ts'
import type { EventScope, EventSelector, ListOrder } from '../../../src/storage/storage.ts'
import { StoredBody, served } from '../../../src/storage/stored-form.ts'

const DAY_MS = 24 * 3_600_000
const BASE_MS = Date.parse('2026-01-01T00:00:00Z')

const events = fc.record({
  cluster: fc.constantFrom('a', 'a-b'),
  namespace: fc.constantFrom('a', 'a-b', 'a-b-c', 'b'),
  name: fc.constantFrom('x', 'x.1', 'x-1', 'y', '日本', '\u{1f600}', '\uffff'),
  object: fc.constantFrom('p', 'q', "o'; --"),
  kind: fc.constantFrom('Pod', 'Node'),
  states: fc.array(
    fc.record({
      day: fc.nat({ max: 4 }),
      /** Few times, so that many are equal. */
      ms: fc.constantFrom(0, 1, 3_600_000, DAY_MS - 1),
      type: fc.constantFrom('Normal', 'Warning'),
      note: fc.constantFrom('one', 'two'),
      /** How many segments later it is written. */
      later: fc.nat({ max: 2 }),
      /** Filed under another day, since its time is unlikely. */
      isUnlikely: fc.boolean(),
    }),
    { minLength: 1, maxLength: 4 },
  ),
})

type MadeEvent = typeof events extends fc.Arbitrary<infer Made> ? Made : never

function rowsOf(made: readonly MadeEvent[]): readonly MadeRow[] {
  const rows: MadeRow[] = []
  for (const [number, { states, kind, object, ...key }] of made.entries()) {
    let sequence = 1
    for (const [index, { day, ms, type, note, later, isUnlikely }] of states.entries()) {
      sequence += later
      const lastSeenMs = BASE_MS + day * DAY_MS + ms
      const time = new Date(lastSeenMs).toISOString().replace('Z', '000Z')
      const metadata = { name: key.name, namespace: key.namespace, uid: `uid-${number}` }
      const regarding = { kind, name: object }
      const body = { metadata, regarding, type, note, eventTime: time }
      const stored = new StoredBody({
        key,
        body: Buffer.from(JSON.stringify(body)),
        versionOffset: '{"metadata":{'.length,
        version: versionOfChange(10 * number + index + 1, 0),
        writtenAtMs: lastSeenMs + 7,
      })
      const date = isUnlikely && number % 5 === 0 ? '2026-01-03' : dateOf(lastSeenMs)
      rows.push({ stored, date, again: index > 0, sequence, spans: [] })
    }
  }
  return inOrder(newest(rows, (row) => row.sequence))
}

/** Of the rows of an event and day, the newest of each part; it follows none if one of them does not. */
function newest(rows: readonly MadeRow[], partOf: (row: MadeRow) => unknown): readonly MadeRow[] {
  const groups = Map.groupBy(rows, (row) => `${identity(row)}/${row.date}/${partOf(row)}`)
  return [...groups.values()].map((group) => ({
    ...(group.toSorted((one, other) => order(one) - order(other)).at(-1) as MadeRow),
    again: group.every(({ again }) => again),
  }))
}

/**
 * Without earlier states of events whose merged row says that there are none: the clock of their
 * reporter was set back over midnight, and forward again.
 */
function inOrder(rows: readonly MadeRow[]): readonly MadeRow[] {
  return rows.filter((row) =>
    rows.every(
      (other) => other.again || identity(other) !== identity(row) || order(other) <= order(row),
    ),
  )
}

function identity({ stored }: MadeRow): string {
  return `${stored.key.cluster}/${stored.fields.uid}`
}

/** Versions of an event increase with its segments. */
function order({ stored }: MadeRow): number {
  return stored.version
}

const scopes: fc.Arbitrary<EventScope> = fc.constantFrom<EventScope>(
  { cluster: undefined, namespace: undefined },
  { cluster: 'a', namespace: undefined },
  { cluster: 'a', namespace: 'a' },
  { cluster: 'a-b', namespace: 'a-b' },
)

const selectors = fc
  .uniqueArray(
    fc.constantFrom(
      'type=Warning',
      'type!=Warning',
      'mentions=Pod/p',
      'regarding.name=q',
      `regarding.name=o'; --`,
      'metadata.namespace=a|a-b',
      'metadata.namespace=a*',
      'text=TWO',
      'metadata.name=x*',
      'since=2026-01-02T00:00:00Z',
      'since=2026-01-02T01:00:00Z',
      'until=2026-01-04T00:00:00Z',
      'until=2026-01-03T01:00:00Z',
    ),
    { maxLength: 3, selector: (text) => text.split(/[!=]/)[0] },
  )
  .map((terms) => terms.join())

interface Wanted {
  readonly scope: EventScope
  readonly selector: EventSelector | undefined
  readonly order: ListOrder
}

/** The whole list. */
function plainList(
  rows: readonly MadeRow[],
  { scope, selector, order: by }: Wanted,
): readonly MadeRow[] {
  const { sinceMs = 0, untilMs = Number.POSITIVE_INFINITY } = selector?.requires ?? {}
  const isInWindow = ({ stored }: MadeRow) =>
    stored.fields.lastSeenMs >= sinceMs && stored.fields.lastSeenMs < untilMs
  const isSuperseded = (row: MadeRow) =>
    rows.some(
      (other) =>
        identity(other) === identity(row) &&
        other.again &&
        order(other) > order(row) &&
        (other.date === row.date || isInWindow(other)),
    )
  const listed = rows.filter(
    (row) =>
      isInScope(scope, row.stored.key) &&
      (selector?.matches(row.stored) ?? true) &&
      isInWindow(row) &&
      !isSuperseded(row),
  )
  const byKey = (one: MadeRow, other: MadeRow) =>
    compareTexts(pathOf(one.stored.key), pathOf(other.stored.key)) ||
    compareTexts(one.stored.fields.uid, other.stored.fields.uid)
  const byTime = (one: MadeRow, other: MadeRow) =>
    one.stored.fields.lastSeenMs - other.stored.fields.lastSeenMs || byKey(one, other)
  const sorted = listed.toSorted(by === 'key' ? byKey : byTime)
  return by === 'newest' ? sorted.reverse() : sorted
}

function compareTexts(one: string, other: string): number {
  return Buffer.compare(Buffer.from(one), Buffer.from(other))
}

/** Reads page by page, and verifies what is not exact. */
async function readList(
  archive: MadeArchive,
  files: readonly InputFile[],
  { scope, selector, order: by }: Wanted,
  limits: Pick<PageQuery, 'limit' | 'bytesMax' | 'budgetMs'>,
): Promise<readonly ArchivedEvent[]> {
  const found: ArchivedEvent[] = []
  let position: Pick<PageQuery, 'after' | 'afterUid' | 'afterMs'> = {
    after: undefined,
    afterMs: undefined,
  }
  const query = { ...scope, files, requires: selector?.requires, order: by, ...limits }
  for (;;) {
    const page = await readPage(archive.connection, { ...query, ...position })
    const { events: read, isExact, isEnd, cutMs } = page
    assert.ok(read.length <= limits.limit)
    const bytes = read.reduce((sum, { json }) => sum + json.length, 0)
    assert.ok(read.length === 1 || bytes <= limits.bytesMax)
    const matched = read.filter((event) => selector?.matches(storedOf(event)) ?? true)
    if (isExact) assert.equal(matched.length, read.length)
    found.push(...matched)
    const last = read.at(-1)
    if (isEnd) return found
    if (cutMs !== undefined) position = { after: undefined, afterMs: cutMs }
    else if (last === undefined) assert.fail('a page without events is the end')
    else
      position = {
        after: last.key,
        afterUid: last.uid,
        afterMs: by === 'key' ? undefined : last.lastSeenMs,
      }
  }
}

function storedOf({ key, json, trailer, version, writtenAtMs }: ArchivedEvent): StoredBody {
  const { metadata, ...others } = JSON.parse(Buffer.from(json).toString())
  const { resourceVersion: _, ...own } = metadata
  const body = Buffer.from(JSON.stringify({ metadata: own, ...others }))
  return new StoredBody({
    ...{ key, body, trailer: Buffer.from(trailer), writtenAtMs },
    versionOffset: '{"metadata":{'.length,
    version: version as StoredBody['version'],
  })
}

test('pages have each event once, with its newest state, in the order of the list', async () => {
  await using archive = await MadeArchive.open()
  let listed = 0
  let superseded = 0
  const property = fc.asyncProperty(
    fc.array(events, { minLength: 1, maxLength: 8 }),
    fc.boolean(),
    fc.array(
      fc.record({
        scope: scopes,
        text: selectors,
        order: fc.constantFrom<ListOrder>('key', 'oldest', 'newest'),
      }),
      {
        minLength: 1,
        maxLength: 5,
      },
    ),
    fc.record({
      limit: fc.constantFrom(1, 2, 3, 100),
      bytesMax: fc.constantFrom(1, 500, 100_000),
      budgetMs: fc.constantFrom(undefined, 0),
    }),
    async (made, isMerged, queries, limits) => {
      const all = rowsOf(made)
      const rows = isMerged ? inOrder(newest(all, () => 0)) : all
      const files = isMerged
        ? await Promise.all(
            [
              ...Map.groupBy(rows, ({ stored, date }) => `${stored.key.cluster}/${date}`).values(),
            ].map((group) => archive.writeFile(group)),
          )
        : await archive.write(rows)
      for (const { scope, text, order: by } of queries) {
        const selector = eventSelector(parseLabelSelector(''), parseFieldSelector(text), 0)
        const expected = plainList(rows, { scope, selector, order: by })
        const found = await readList(archive, files, { scope, selector, order: by }, limits)
        const shown = (event: ArchivedEvent) => ({
          path: pathOf(event.key),
          uid: event.uid,
          version: event.version,
          lastSeenMs: event.lastSeenMs,
          writtenAtMs: event.writtenAtMs,
          json: Buffer.from(event.json).toString(),
        })
        assert.deepEqual(
          found.map(shown),
          expected.map(({ stored }) => ({
            path: pathOf(stored.key),
            uid: stored.fields.uid,
            version: stored.version,
            lastSeenMs: stored.fields.lastSeenMs,
            writtenAtMs: stored.writtenAtMs,
            json: served(stored).toString(),
          })),
          `${JSON.stringify(scope)} ${text} ${by}`,
        )
        listed += found.length
        superseded += rows.length - found.length
      }
    },
  )
  await fc.assert(property, { numRuns: 60 })
  assert.ok(listed > 100 && superseded > 100)
})
