/** A short upgrade and rollback under load; `npm run test:upgrade` is the long one. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { previousRef, programOf, renumbered, thisTree } from '../../nightly/upgrade/programs.ts'
import { describeLoad, upgradeAndRollBack } from '../../nightly/upgrade/upgrade.ts'

/** Faster checks than a real balancer makes, so that the test takes half a minute. */
const PACE = { checkMs: 200, stopDelayMs: 1_200, settleMs: 800 }
const LOAD = { writers: 6, listers: 1, watchers: 3 }

test('an upgrade and a rollback under load fail no request, and lose and duplicate nothing', async (t) => {
  const ref = await previousRef()
  // A shallow clone has no other version.
  const from = await (ref === undefined ? renumbered('0.0.1') : programOf(ref))
  t.diagnostic(`from ${from.name} to ${thisTree.name} and back`)
  const report = await upgradeAndRollBack({
    from,
    to: thisTree,
    load: LOAD,
    pace: PACE,
    restMs: 500,
    log: (line) => t.diagnostic(line),
  })
  t.diagnostic(describeLoad(report))
  assert.deepEqual(report.faults, [])
  assert.ok(report.watches.resumed > 0 && report.lists > 0 && report.events > 50)
})
