/** The short form of `npm run test:retention`: see test/nightly/retention. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { pause } from '../../../src/lib/abort.ts'
import { eventually } from '../../support/eventually.ts'
import { testSeed } from '../../support/seed.ts'
import {
  EVERYTHING_EXPIRES,
  type PlannedBudget,
  type PlannedPolicy,
} from '../retention/policies.ts'
import { Site } from '../retention/site.ts'

const budgets: readonly PlannedBudget[] = [
  { name: 'full', namespace: 'full', events: 80 },
  { name: 'fat', namespace: 'fat', bytes: 40_000 },
  { name: 'alarms', namespace: 'alarms', events: 60 },
  { name: 'all', namespace: undefined, events: 300 },
]
const first: PlannedPolicy = {
  rules: [
    { name: 'short-warnings', match: { namespace: 'short', type: 'Warning' }, seconds: 9 },
    { name: 'short', match: { namespace: 'short' }, seconds: 4 },
    { name: 'kept', match: { namespace: 'full' }, seconds: 'never' },
  ],
  budgets,
}
/** Longer for some, and a rule more. */
const second: PlannedPolicy = {
  rules: [
    { name: 'odd', match: { reason: 'Odd', namespace: 'other' }, seconds: 2 },
    { name: 'short-warnings', match: { namespace: 'short', type: 'Warning' }, seconds: 4 },
    { name: 'short', match: { namespace: 'short' }, seconds: 10 },
    { name: 'kept', match: { namespace: 'full' }, seconds: 'never' },
  ],
  budgets,
}
describe('retention', { timeout: 110_000 }, () => {
  test('three replicas: lifetimes and budgets hold while policies change and the sweeper is killed', async (context) => {
    const seed = testSeed()
    await using site = await Site.start(first, { seed, writeEveryMs: 12 })
    const { judge } = site
    await pause(6_000)
    await site.setPolicy(second)
    await site.killSweeper()
    await pause(2_000)
    await site.settle(3_000)
    site.resume()
    await site.setPolicy(EVERYTHING_EXPIRES)
    await pause(1_000)
    await site.settle(0)
    const isOver = () => judge.left === 0 || judge.problems.length > 0
    await eventually('everything is deleted', isOver, 20_000)
    const { counts } = judge
    context.diagnostic(JSON.stringify({ seed, ...counts, latestMs: Math.round(judge.latestMs) }))
    assert.deepEqual(judge.problems, [], `seed ${seed}`)
    assert.ok(counts.expired > 100, 'too few expired')
    assert.ok(counts.evictedWarnings > 10, 'too few Warnings were evicted')
    assert.ok(counts.evicted - counts.evictedWarnings > 50, 'too few others were evicted')
  })
})
