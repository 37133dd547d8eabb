import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { type EventRow, eventRow } from '../model/event-row.ts'
import { axisTicks } from './axis-ticks.ts'
import { eventSummary, laneSummary, lanesOf, sortedLanes } from './lanes.ts'
import { markAt, marksOf, type Scale, timeAt, xOf } from './marks.ts'
import { nextPlace } from './place.ts'

interface Told {
  readonly object?: string
  readonly firstMs?: number
  readonly count?: number
  readonly type?: string
}

function row(
  lastMs: number,
  { object = 'web', firstMs = lastMs, count = 1, type }: Told = {},
): EventRow {
  return {
    ...eventRow({
      metadata: { name: `${object}-${lastMs}`, namespace: 'shop' },
      involvedObject: { kind: 'Pod', namespace: 'shop', name: object },
      ...{ type: type ?? 'Normal', reason: 'Started', count },
    }),
    firstMs,
    lastMs,
  }
}

const scale: Scale = { fromMs: 0, toMs: 1_000_000, width: 1_000 }

describe('lanes', () => {
  test('has a lane per object with its events in time order', () => {
    const rows = [row(40), row(30, { object: 'db' }), row(20), row(10, { object: 'db' })]
    const lanes = lanesOf(rows)
    assert.deepEqual(
      lanes.map(({ object, events }) => [object.name, events.map(({ lastMs }) => lastMs)]),
      [
        ['web', [20, 40]],
        ['db', [10, 30]],
      ],
    )
  })

  test('are sorted by time, by Warnings and by name', () => {
    const rows = [
      row(40, { object: 'b' }),
      row(30, { object: 'a', type: 'Warning', count: 2 }),
      row(20, { object: 'c', type: 'Warning', count: 9 }),
    ]
    const names = (sort: 'newest' | 'warnings' | 'name'): string =>
      sortedLanes(lanesOf(rows), sort)
        .map(({ object }) => object.name)
        .join('')
    assert.deepEqual([names('newest'), names('warnings'), names('name')], ['bac', 'cab', 'abc'])
  })

  test('are described in words', () => {
    const [lane] = lanesOf([row(40_000, { type: 'Warning', count: 3, firstMs: 10_000 }), row(20)])
    assert.ok(lane !== undefined)
    assert.match(laneSummary(lane), /^2 events, 1 Warning, last Started at \d{4}-/)
    const last = lane.events.at(-1)
    assert.ok(last !== undefined)
    assert.match(eventSummary(last), /^Warning Started, 3 times over 30s, \d{4}-/)
  })
})

describe('marks', () => {
  test('draws a series as a bar, and a short one as a tick', () => {
    const rows = [
      row(500_000, { firstMs: 100_000, count: 7 }),
      row(503_000, { firstMs: 502_000, count: 2 }),
    ]
    assert.deepEqual(
      marksOf(rows, scale).map(({ left, right, isBar, count }) => [left, right, isBar, count]),
      [
        [100, 500, true, 7],
        [502, 502, false, 2],
      ],
    )
    const [cut] = marksOf([row(500, { firstMs: -900_000, count: 2 })], { ...scale, toMs: 1_000 })
    assert.deepEqual([cut?.left, cut?.isCut], [0, true])
  })

  test('merges crowded ticks, separately for Warnings, without losing an event', () => {
    const event = fc.record({
      lastMs: fc.nat(1_000_000),
      overMs: fc.nat(200_000),
      count: fc.nat(4),
      type: fc.constantFrom('Normal', 'Warning'),
    })
    fc.assert(
      fc.property(fc.array(event, { maxLength: 800, size: 'max' }), (told) => {
        const rows = told.map(({ lastMs, overMs, count, type }) =>
          row(lastMs, { firstMs: lastMs - overMs, count: Math.max(1, count), type }),
        )
        const marks = marksOf(rows, scale)
        const ticks = marks.filter(({ isBar }) => !isBar)
        assert.ok(ticks.length <= 2 * Math.ceil(1_001 / 3))
        assert.equal(marks.flatMap(({ events }) => events).length, rows.length)
        assert.ok(
          marks.every(({ events, isWarning }) =>
            events.every((one) => one.isWarning === isWarning),
          ),
        )
        for (const mark of ticks) assert.ok(markAt(marks, mark.right) !== undefined)
      }),
      { numRuns: 20 },
    )
  })

  test('finds the nearest tick, or otherwise a bar', () => {
    const rows = [
      row(500_000, { firstMs: 100_000, count: 7 }),
      row(300_000),
      row(306_000, { type: 'Warning' }),
    ]
    const marks = marksOf(rows, scale)
    assert.equal(markAt(marks, 305)?.isWarning, true)
    assert.equal(markAt(marks, 299)?.events[0]?.lastMs, 300_000)
    assert.equal(markAt(marks, 200)?.isBar, true)
    assert.equal(markAt(marks, 700), undefined)
  })

  test('round-trips a position through its time', () => {
    assert.equal(timeAt(scale, xOf(scale, 123_000)), 123_000)
    assert.equal(timeAt(scale, 2_000), 1_000_000)
  })
})

describe('the axis', () => {
  test('spaces its labels for every span', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 1_900_000_000_000 }),
        fc.integer({ min: 1_000, max: 30 * 86_400_000 }),
        fc.integer({ min: 1, max: 4_000 }),
        (fromMs, lengthMs, width) => {
          const ticks = axisTicks({ fromMs, toMs: fromMs + lengthMs, width })
          assert.ok(ticks.length <= width / 80 + 2)
          for (const [index, { x }] of ticks.entries()) {
            assert.ok(x >= 0 && x <= width)
            const before = ticks[index - 1]
            if (before !== undefined && width > 160) assert.ok(x - before.x >= 79)
          }
        },
      ),
    )
    assert.deepEqual(axisTicks({ fromMs: 5, toMs: 5, width: 100 }), [])
  })
})

describe('the keyboard', () => {
  const lanes = lanesOf([row(40), row(30), row(20, { object: 'db' })])

  test('moves between lanes with up and down, and between events with left and right', () => {
    const start = { lane: 0, event: -1 }
    assert.deepEqual(nextPlace(start, 'ArrowDown', lanes), { lane: 1, event: -1 })
    assert.equal(nextPlace(start, 'ArrowUp', lanes), undefined)
    assert.deepEqual(nextPlace({ lane: 0, event: 1 }, 'End', lanes), { lane: 1, event: -1 })
    assert.deepEqual(nextPlace(start, 'ArrowRight', lanes), { lane: 0, event: 0 })
    assert.deepEqual(nextPlace(start, 'ArrowLeft', lanes), { lane: 0, event: 1 })
    assert.deepEqual(nextPlace({ lane: 0, event: 0 }, 'ArrowLeft', lanes), { lane: 0, event: 0 })
    assert.equal(nextPlace(start, 'a', lanes), undefined)
    assert.equal(nextPlace(start, 'ArrowRight', []), undefined)
  })
})
