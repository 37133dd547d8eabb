/** A short upgrade and rollback under load; `npm run test:upgrade` is the long one. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { previousRef, programOf, thisTree } from '../upgrade/programs.ts'
import { describeLoad, upgradeAndRollBack } from '../upgrade/upgrade.ts'

/** Faster checks than a real balancer makes, so that the test takes half a minute. */
const PACE = { checkMs: 200, stopDelayMs: 1_200, settleMs: 800 }
const LOAD = { writers: 6, listers: 1, watchers: 3 }

test('an upgrade and a rollback under load fail no request, and lose and duplicate nothing', async (t) => {
  const ref = await previousRef()
  if (ref === undefined) return t.skip('a shallow clone has no other version')
  const from = await programOf(ref)
  const to = thisTree()
  t.diagnostic(`from ${from.name} to ${to.name} and back`)
  const report = await upgradeAndRollBack({
    from,
    to,
    load: LOAD,
    pace: PACE,
    restMs: 500,
    log: (line) => t.diagnostic(line),
  })
  t.diagnostic(describeLoad(report))
  assert.deepEqual(report.faults, [])
  assert.ok(report.events > 50, `${report.events} events`)
})
