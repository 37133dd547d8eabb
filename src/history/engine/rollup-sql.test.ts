import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import fc from 'fast-check'
import { countBefore, type Span } from '../../storage/occurrences.ts'
import { DayNames, rowOf } from './archived-row.ts'
import type { ArchivedChange } from './protocol.ts'
import { SPAN_HOURS_MAX } from './rollup-sql.ts'
import {
  change,
  counted,
  type Row,
  readRows,
  type TestEvent,
  testWriter,
  writeSegment,
} from './written-files.fixture.ts'

const writer = testWriter()
after(() => writer[Symbol.asyncDispose]())

const HOUR_MS = 3_600_000
const dayMs = Date.UTC(2026, 5, 5)
const at = (ms: number): string => new Date(ms).toISOString()

async function rollupOf(changes: readonly ArchivedChange[]): Promise<readonly Row[]> {
  const [file] = await writeSegment(writer, changes)
  return await readRows(file?.rollupPath ?? '')
}

/** In short: the hour, and what was counted in it. */
async function hoursOf(
  changes: readonly ArchivedChange[],
): Promise<readonly (readonly number[])[]> {
  return (await rollupOf(changes)).map((row) => [
    ((row['hour'] as Date).getTime() - dayMs) / HOUR_MS,
    Number(row['occurrences']),
    Number(row['events']),
  ])
}

const seen = (count: number, fromHours: number, toHours: number): TestEvent =>
  counted(count, at(dayMs + fromHours * HOUR_MS), at(dayMs + toHours * HOUR_MS))

describe('a rollup', () => {
  test('counts an occurrence in its hour', async () => {
    assert.deepEqual(await hoursOf([change({ event: seen(1, 10, 10) })]), [[10, 1, 1]])
    assert.deepEqual(await hoursOf([change({ event: seen(1, 10.999, 10.999) })]), [[10, 1, 1]])
  })

  test('distributes a span over its hours, and counts its event in the first', async () => {
    assert.deepEqual(await hoursOf([change({ event: seen(5, 10, 12) })]), [
      [10, 2, 1],
      [11, 2, 0],
      [12, 1, 0],
    ])
  })

  test('counts what a later row adds, and no event', async () => {
    const previous = change({ event: seen(1, 9, 9) })
    assert.deepEqual(await hoursOf([change({ event: seen(2, 9, 11), previous })]), [[11, 1, 0]])
    // All of an open span are later than its start.
    assert.deepEqual(await hoursOf([change({ event: seen(5, 9, 11), previous })]), [
      [9, 1, 0],
      [10, 2, 0],
      [11, 1, 0],
    ])
  })

  test('has no rows for states that add nothing', async () => {
    const previous = change({ event: seen(1, 9, 9) })
    assert.deepEqual(await hoursOf([change({ event: seen(1, 9, 9), previous })]), [])
  })

  test('has a row for each value of its columns', async () => {
    const made = (name: string, fields: TestEvent) =>
      change({
        key: { cluster: 'local', namespace: 'shop', name },
        event: { ...seen(1, 10, 10), metadata: { uid: name }, ...fields },
      })
    const source = { component: 'kubelet' }
    const rows = await rollupOf([
      made('a', { type: 'Normal', reason: 'Pulled', regarding: { kind: 'Pod' } }),
      made('b', { type: 'Normal', reason: 'Pulled', regarding: { kind: 'Pod' } }),
      made('c', { type: 'Warning', reason: 'Pulled', regarding: { kind: 'Pod' } }),
      made('d', { type: 'Normal', reason: 'Pulled', deprecatedSource: source }),
      made('e', { type: 'Normal', reason: 'Pulled', reportingController: 'kubelet' }),
    ])
    const row = { hour: new Date(dayMs + 10 * HOUR_MS), namespace: 'shop', reason: 'Pulled' }
    assert.deepEqual(rows, [
      { ...row, type: 'Normal', kind: '', controller: 'kubelet', occurrences: 2n, events: 2n },
      { ...row, type: 'Normal', kind: 'Pod', controller: '', occurrences: 2n, events: 2n },
      { ...row, type: 'Warning', kind: 'Pod', controller: '', occurrences: 1n, events: 1n },
    ])
  })

  test('of an event that says that it began in 1970 is short', async () => {
    const event = counted(2 ** 31 - 1, '1970-01-01T00:00:00Z', at(dayMs + HOUR_MS))
    const hours = await hoursOf([change({ event })])
    assert.ok(hours.length <= SPAN_HOURS_MAX)
    assert.equal(
      hours.reduce((sum, [, count = 0]) => sum + count, 0),
      2 ** 31 - 1,
    )
    const counts = hours.map(([, count = 0]) => count).slice(0, -1)
    assert.ok(Math.max(...counts) - Math.min(...counts) <= 1)
  })

  test('has the counts of `countBefore`, whatever the spans', async () => {
    const day = fc.integer({ min: -2 * 24 * 3_600, max: 24 * 3_600 - 1 })
    const state = fc.record({
      count: fc.oneof(fc.integer({ min: 1, max: 20 }), fc.constant(2 ** 31 - 1)),
      seconds: fc.tuple(day, day),
      raised: fc.option(fc.integer({ min: 1, max: 1_000 }), { nil: undefined }),
      later: fc.nat({ max: 6 * 3_600 }),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(state, { minLength: 1, maxLength: 50 }), async (states) => {
        const changes = states.flatMap(({ count, seconds, raised, later }, index) => {
          const key = { cluster: 'local', namespace: 'shop', name: `event-${index}` }
          const [from, to] = seconds
            .toSorted((one, other) => one - other)
            .map((s) => dayMs + s * 1_000)
          const made = (total: number, lastMs: number): TestEvent => ({
            ...counted(total, at(from ?? 0), at(lastMs)),
            metadata: { uid: key.name },
          })
          const first = change({ key, event: made(count, to ?? 0) })
          if (raised === undefined) return [first]
          const event = made(count + raised, (to ?? 0) + later * 1_000)
          return [change({ key, event, previous: first })]
        })
        const files = await writeSegment(writer, changes)
        const rollups = await Promise.all(files.map(({ rollupPath }) => readRows(rollupPath)))
        assert.deepEqual(countsIn(rollups.flat()), expectedCounts(changes))
      }),
      { numRuns: 20 },
    )
  })
})

function countsIn(rows: readonly Row[]): ReadonlyMap<number, readonly [number, number]> {
  const counts = new Map<number, readonly [number, number]>()
  for (const row of rows) {
    const hour = (row['hour'] as Date).getTime()
    const [occurrences, events] = counts.get(hour) ?? [0, 0]
    counts.set(hour, [occurrences + Number(row['occurrences']), events + Number(row['events'])])
  }
  return new Map([...counts].toSorted(([one], [other]) => one - other))
}

function expectedCounts(changes: readonly ArchivedChange[]): ReturnType<typeof countsIn> {
  const rows: Row[] = []
  const hourOf = (ms: number) => Math.floor(ms / HOUR_MS) * HOUR_MS
  const add = (ms: number, occurrences: number, events: number) => {
    if (occurrences + events > 0) rows.push({ hour: new Date(ms), occurrences, events })
  }
  for (const made of changes) {
    const { spans, isAgain } = rowOf(made, new DayNames())
    const addSpan = (span: Span) => {
      for (let hour = hourOf(span.firstMs); hour <= span.lastMs; hour += HOUR_MS) {
        add(hour, countBefore(span, hour + HOUR_MS) - countBefore(span, hour), 0)
      }
    }
    for (const span of spans) addSpan(span)
    if (!isAgain) add(hourOf(spans[0]?.firstMs ?? 0), 0, 1)
  }
  return countsIn(rows)
}
