/** Where the clock is changed twice a year. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { localTime, spanText } from '../times.ts'
import { barsOf, planBuckets, spanOfBars } from './buckets.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs

/** 150 hours before, and 150 hours after, in six-hour bars of a narrow chart. */
const autumn = {
  fromMs: Date.parse('2026-10-18T22:00:00Z'),
  toMs: Date.parse('2026-10-31T23:00:00Z'),
}
const spring = {
  fromMs: Date.parse('2026-03-22T23:00:00Z'),
  toMs: Date.parse('2026-04-04T22:00:00Z'),
}

describe('a time zone with clock changes', () => {
  // Restored afterwards: the other unit tests run in the same process.
  const { env } = process
  let zoneBefore: string | undefined
  before(() => {
    zoneBefore = env['TZ']
    env['TZ'] = 'Europe/Berlin'
  })
  after(() => {
    if (zoneBefore === undefined) delete env['TZ']
    else env['TZ'] = zoneBefore
  })

  test('starts bars at the same local times before and after a clock change', () => {
    for (const [span, changedMs] of [
      [autumn, hourMs],
      [spring, -hourMs],
    ] as const) {
      const plan = planBuckets(span, { barsMax: 61 })
      assert.equal(plan.stepMs, 6 * hourMs)
      const clocks = new Set(plan.starts.map((ms) => localTime(ms).slice(11)))
      assert.deepEqual([...clocks].sort(), ['00:00:00', '06:00:00', '12:00:00', '18:00:00'])
      const lengths = plan.starts.map((ms, index) => (plan.starts[index + 1] ?? plan.toMs) - ms)
      assert.deepEqual(
        lengths.filter((ms) => ms !== plan.stepMs),
        [plan.stepMs + changedMs],
      )
      assert.equal((plan.toMs - plan.fromMs) / plan.parts, hourMs)
      assert.ok(plan.fromMs <= span.fromMs && plan.toMs >= span.toMs)
    }
  })

  test('adds each part to the bar that contains its time', () => {
    const plan = planBuckets(autumn, { barsMax: 61 })
    const buckets = Array.from({ length: plan.parts }, () => ({ counts: new Map([['Normal', 1]]) }))
    const { normal } = barsOf(plan, buckets, '')
    const hours = plan.starts.map((_, index) => {
      const { fromMs, toMs } = spanOfBars(plan, index, index)
      return (toMs - fromMs) / hourMs
    })
    assert.deepEqual(normal, hours)
  })

  test('falls back to equal bars when they would need too many parts', () => {
    const plan = planBuckets({ fromMs: autumn.fromMs - 80 * dayMs, toMs: autumn.toMs })
    assert.equal(plan.stepMs, dayMs)
    assert.equal(plan.parts, plan.count)
  })

  test('prints offsets for a span across a clock change', () => {
    const fromMs = Date.parse('2026-10-25T00:30:00Z')
    assert.equal(
      spanText({ fromMs, toMs: fromMs + hourMs }),
      '2026-10-25 02:30 +02:00 to 02:30 +01:00',
    )
    assert.equal(spanText({ fromMs: fromMs - hourMs, toMs: fromMs }), '2026-10-25 01:30 to 02:30')
  })
})
