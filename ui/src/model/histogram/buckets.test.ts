import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PRESETS, spanOf } from '../range.ts'
import { barsOf, planBuckets, spanOfBars } from './buckets.ts'

const nowMs = Date.parse('2026-11-16T12:34:56.789Z')
const hourMs = 3_600_000
const utc = (): number => 0

test('gives every preset 60 to 121 bars of whole units', () => {
  const steps = PRESETS.map((last) => {
    const span = spanOf({ last }, nowMs)
    const plan = planBuckets(span, { zone: utc })
    assert.ok(plan.count >= 60 && plan.count <= 121, `${last}: ${plan.count}`)
    assert.ok(plan.fromMs <= span.fromMs && plan.toMs >= span.toMs)
    assert.equal(plan.fromMs % plan.stepMs, 0)
    assert.equal(plan.toMs - plan.fromMs, plan.count * plan.stepMs)
    return plan.stepMs / 1_000
  })
  assert.deepEqual(steps, [10, 30, 300, 900, 7_200, 21_600, 86_400])
})

test('gives a narrow chart fewer bars', () => {
  for (const last of PRESETS) {
    const { count } = planBuckets(spanOf({ last }, nowMs), { zone: utc, barsMax: 61 })
    assert.ok(count >= 20 && count <= 61, `${last}: ${count}`)
  }
})

test('starts days at local midnight', () => {
  const span = { fromMs: nowMs - 100 * 24 * hourMs, toMs: nowMs }
  const { fromMs, stepMs } = planBuckets(span, { zone: () => 2 * hourMs })
  assert.equal(stepMs, 24 * hourMs)
  assert.equal(new Date(fromMs).toISOString().slice(11), '22:00:00.000Z')
})

test('starts long bars at whole hours of UTC in every time zone, as the server counts them', () => {
  for (const minutes of [330, -210, 345, 765]) {
    const zone = (): number => minutes * 60_000
    for (const last of PRESETS) {
      const { starts, stepMs } = planBuckets(spanOf({ last }, nowMs), { zone })
      const isLong = stepMs > hourMs
      for (const ms of starts) {
        assert.equal(isLong ? ms % hourMs : (ms + zone()) % stepMs, 0, `${minutes} ${last}`)
      }
      const wallMs = (starts[0] ?? 0) + zone()
      assert.ok(!isLong || wallMs % stepMs < hourMs, 'less than an hour after the round local time')
    }
  }
})

test('handles a moment and a century', () => {
  assert.equal(planBuckets({ fromMs: nowMs, toMs: nowMs + 1 }, { zone: utc }).count, 1)
  const century = planBuckets({ fromMs: nowMs - 36_525 * 24 * hourMs, toMs: nowMs }, { zone: utc })
  assert.ok(century.count <= 122, String(century.count))
})

test('counts Warnings and all others, or only the selected type', () => {
  const plan = planBuckets({ fromMs: 0, toMs: 2_000 }, { zone: utc })
  const buckets = [
    { counts: new Map([['Normal', 2]]) },
    {
      counts: new Map([
        ['Warning', 5],
        ['Normal', 1],
        ['', 3],
      ]),
    },
  ]
  assert.deepEqual(barsOf(plan, buckets, ''), {
    plan,
    normal: [2, 4],
    warnings: [0, 5],
    estimated: [false, false],
  })
  assert.deepEqual(barsOf(plan, buckets, 'Warning').normal, [0, 0])
  const guessed = buckets.map((bucket) => ({ ...bucket, estimated: new Set(['Warning']) }))
  assert.deepEqual(barsOf(plan, guessed, '').estimated, [false, true])
  assert.deepEqual(barsOf(plan, guessed, 'Normal').estimated, [false, false])
  assert.deepEqual(barsOf(plan, [], '').warnings, [0, 0])
})

test('turns bars selected in either direction into a span within the plan', () => {
  const plan = planBuckets({ fromMs: 0, toMs: 60_000 }, { zone: utc })
  assert.deepEqual(spanOfBars(plan, 7, 5), { fromMs: 5_000, toMs: 8_000 })
  assert.deepEqual(spanOfBars(plan, -3, 99), { fromMs: 0, toMs: 60_000 })
})
