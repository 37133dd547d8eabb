import assert from 'node:assert/strict'
import { test } from 'node:test'
import { axisTicks } from './axis-ticks.ts'

const hourMs = 3_600_000
/** Where the clock goes back by an hour at 01:00 UTC, as in Berlin on that day. */
const changeMs = Date.UTC(2026, 9, 25, 1)
const zone = (ms: number): number => (ms < changeMs ? 2 * hourMs : hourMs)

test('places day ticks at midnight before and after a clock change', () => {
  const fromMs = Date.UTC(2026, 9, 22, 22)
  const toMs = Date.UTC(2026, 9, 28, 23)
  const ticks = axisTicks({ fromMs, toMs, width: 700 }, zone)
  const perMs = 700 / (toMs - fromMs)
  const expected = [22, 23, 24].map((day) => Date.UTC(2026, 9, day, 22))
  for (let day = 25; day <= 28; day++) expected.push(Date.UTC(2026, 9, day, 23))
  assert.deepEqual(
    ticks.filter(({ x }) => x <= 700).map(({ x }) => x),
    expected.map((ms) => Math.round((ms - fromMs) * perMs)),
  )
})

test('places no tick outside the axis or twice', () => {
  for (const hours of [1, 5, 30, 200]) {
    const scale = { fromMs: changeMs - hours * hourMs, toMs: changeMs + hours * hourMs, width: 900 }
    const places = axisTicks(scale, zone).map(({ x }) => x)
    assert.ok(places.length > 2, `${hours}`)
    assert.equal(new Set(places).size, places.length)
    assert.ok(places.every((x) => x >= 0 && x <= 900))
  }
})
