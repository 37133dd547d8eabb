import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Totals } from '../../retention/account/totals.ts'
import { type Tiers, tiersOf } from './tiers.ts'

const HOUR = 3_600_000
const nowMs = 100 * HOUR
const namespace = { cluster: 'local', namespace: 'shop' }

function start(
  { shortestMs, positionAtMs = nowMs }: { shortestMs?: number; positionAtMs?: number },
  totals = new Totals(),
): Tiers {
  return tiersOf(namespace, {
    policy: { shortestMs },
    totals,
    pointer: { positionAtMs },
    nowMs,
  })
}

describe('tiersOf', () => {
  test('memory begins the shortest lifetime ago, and counts when no clock is ahead any more', () => {
    assert.deepEqual(start({ shortestMs: HOUR }), {
      memoryFromMs: nowMs - HOUR - 5_000,
      splitMs: nowMs - HOUR + 10 * 60_000,
    })
    // Shorter than writes may be late.
    assert.deepEqual(start({ shortestMs: 60_000 }), {
      memoryFromMs: nowMs - 65_000,
      splitMs: nowMs - 60_000,
    })
  })

  test('memory has all that is not archived: nothing expires before', () => {
    const positionAtMs = nowMs - 5 * HOUR
    assert.deepEqual(start({ shortestMs: HOUR, positionAtMs }), {
      memoryFromMs: positionAtMs - 5_000,
      splitMs: positionAtMs,
    })
  })

  test('memory has no more than that where budgets have evicted events', () => {
    const totals = new Totals()
    totals.add('namespaces', 'local/other')
    assert.equal(start({}, totals).memoryFromMs, Number.NEGATIVE_INFINITY)
    totals.add('namespaces', 'local/shop')
    assert.equal(start({}, totals).memoryFromMs, nowMs - 5_000)
  })
})
