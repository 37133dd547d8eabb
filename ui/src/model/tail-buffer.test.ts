import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { type EventRow, eventRow } from './event-row.ts'
import { TailBuffer } from './tail-buffer.ts'
import { RateMeter, ReadingPace } from './tail-rate.ts'

function row(name: string, { count = 1, version = 1, note = '' } = {}): EventRow {
  return eventRow({
    metadata: { name, namespace: 'shop', resourceVersion: String(version) },
    message: note,
    count,
    lastTimestamp: '2026-11-16T03:00:00Z',
  })
}

function namesIn({ entries }: TailBuffer): readonly string[] {
  return entries.map((entry) => (entry.kind === 'row' ? entry.row.name : 'gap'))
}

const bounds = { rowsMax: 3, bytesMax: 1_000 }
const at = { bytes: 10, nowMs: 0 }

describe('rows of a tail', () => {
  test('are newest first, and the oldest drop off', () => {
    const buffer = new TailBuffer(bounds)
    for (const name of ['a', 'b', 'c']) buffer.take({ row: row(name), ...at })
    assert.equal(buffer.hasDropped, false)
    buffer.take({ row: row('d'), ...at })
    assert.deepEqual(namesIn(buffer), ['d', 'c', 'b'])
    assert.equal(buffer.hasDropped, true)
    assert.equal(buffer.arrived.events, 4)
  })

  test('move to the top when an event is seen again, and stay when it is only changed', () => {
    const buffer = new TailBuffer(bounds)
    for (const name of ['a', 'b', 'c']) buffer.take({ row: row(name), ...at })
    buffer.take({ row: row('a', { count: 2, version: 4 }), ...at, nowMs: 5 })
    assert.deepEqual(namesIn(buffer), ['a', 'c', 'b'])
    const [top] = buffer.entries
    assert.ok(top?.kind === 'row' && top.isRepeated && top.row.count === 2 && top.arrivedMs === 5)
    buffer.take({ row: row('b', { note: 'new', version: 5 }), ...at })
    assert.deepEqual(namesIn(buffer), ['a', 'c', 'b'])
    const last = buffer.entries.at(-1)
    assert.ok(last?.kind === 'row' && last.row.note === 'new')
    assert.equal(buffer.arrived.events, 4)
  })

  test('are bounded by bytes, but the newest is always there', () => {
    const buffer = new TailBuffer(bounds)
    buffer.take({ row: row('a'), ...at })
    buffer.take({ row: row('b'), ...at, bytes: 995 })
    assert.deepEqual(namesIn(buffer), ['b'])
    buffer.take({ row: row('c'), ...at, bytes: 5_000 })
    assert.deepEqual(namesIn(buffer), ['c'])
    buffer.take({ row: row('c', { count: 2 }), ...at })
    buffer.take({ row: row('d'), ...at, bytes: 900 })
    assert.deepEqual(namesIn(buffer), ['d', 'c'])
  })

  test('from a list are added above the gap if new, and skipped if known', () => {
    const buffer = new TailBuffer({ rowsMax: 10, bytesMax: 100_000 })
    buffer.addListed([row('b'), row('a')], 0)
    buffer.addGap({ fromMs: 1, toMs: 2, isListed: false })
    buffer.addListed([row('c', { version: 9 }), row('a', { version: 8, count: 2 }), row('b')], 0)
    assert.deepEqual(namesIn(buffer), ['c', 'a', 'gap', 'b'])
  })

  test('have a single gap between them, however often history was lost', () => {
    const buffer = new TailBuffer({ rowsMax: 10, bytesMax: 100_000 })
    buffer.take({ row: row('a'), ...at })
    buffer.addGap({ fromMs: 1, toMs: 2, isListed: true })
    buffer.addGap({ fromMs: 3, toMs: 4, isListed: false })
    buffer.addGap({ fromMs: 5, toMs: 6, isListed: true })
    assert.deepEqual(namesIn(buffer), ['gap', 'a'])
    const [gap] = buffer.entries
    assert.ok(gap?.kind === 'gap')
    assert.deepEqual([gap.fromMs, gap.toMs, gap.isListed], [1, 6, false])
    buffer.take({ row: row('b'), ...at })
    buffer.addGap({ fromMs: 7, toMs: 8, isListed: true })
    assert.deepEqual(namesIn(buffer), ['gap', 'b', 'gap', 'a'])
    assert.equal(buffer.gapCount, 2)
  })

  test('are counted by type each time they reach the top', () => {
    const buffer = new TailBuffer(bounds)
    const warning: EventRow = { ...row('a'), isWarning: true }
    buffer.take({ row: warning, ...at })
    buffer.take({ row: { ...warning, note: 'changed' }, ...at })
    buffer.take({ row: row('b'), ...at })
    assert.deepEqual(buffer.arrived, { events: 2, warnings: 1 })
    buffer.take({ row: { ...warning, count: 2 }, ...at })
    assert.deepEqual(buffer.arrived, { events: 3, warnings: 2 })
  })

  test('never exceed their bounds', () => {
    const arrival = fc.record({
      name: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'),
      bytes: fc.nat({ max: 1_500 }),
      count: fc.nat({ max: 3 }),
    })
    fc.assert(
      fc.property(fc.array(arrival, { maxLength: 60 }), (arrivals) => {
        const buffer = new TailBuffer(bounds)
        for (const { name, bytes, count } of arrivals) {
          buffer.take({ row: row(name, { count }), bytes, nowMs: 0 })
          const { entries } = buffer
          const size = entries.reduce((sum, one) => sum + (one.kind === 'row' ? one.bytes : 0), 0)
          assert.ok(entries.length <= bounds.rowsMax)
          assert.ok(size <= bounds.bytesMax || entries.length === 1)
          assert.equal(new Set(namesIn(buffer)).size, entries.length)
        }
      }),
    )
  })
})

test('averages the rate over the last seconds', () => {
  const meter = new RateMeter()
  for (let ms = 0; ms < 10_000; ms += 10) meter.count(ms)
  assert.equal(meter.perSecond(10_000), 100)
  assert.equal(meter.perSecond(12_000), 60)
  assert.equal(meter.perSecond(60_000), 0)
})

const pace = { perSecond: 200, burst: 500, forWarnings: 100 }

test('counts what nobody can read, and reserves part of the burst for Warnings', () => {
  const reading = new ReadingPace(pace)
  const shown = { normal: 0, warning: 0 }
  for (let ms = 0; ms < 10_000; ms++) {
    if (reading.isShown(false, ms)) shown.normal++
    if (ms % 20 === 0 && reading.isShown(true, ms)) shown.warning++
  }
  assert.equal(shown.warning, 500)
  assert.ok(shown.normal > 1_850 && shown.normal < 1_950, String(shown.normal))
  const { normal, warning, fromMs, toMs } = reading.unshown ?? {}
  assert.deepEqual([normal, warning, toMs], [10_000 - shown.normal, 0, 9_999])
  assert.ok(fromMs !== undefined && fromMs > 400 && fromMs < 700, String(fromMs))
  reading.countTooLong(10_000)
  assert.equal(reading.unshown?.tooLong, 1)
  reading.forget()
  assert.equal(reading.unshown, undefined)
})

test('shows all of 200 events a second and a burst of 400', () => {
  const reading = new ReadingPace(pace)
  for (let n = 0; n < 400; n++) assert.equal(reading.isShown(false, 0), true)
  for (let ms = 0; ms < 60_000; ms += 5) assert.equal(reading.isShown(false, ms), ms >= 5, `${ms}`)
})
