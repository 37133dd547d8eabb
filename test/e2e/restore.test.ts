import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { complaints, restore, type Scenario } from '../restore/restore.ts'

/** Of the matrix that `npm run test:restore` goes through. */
const scenarios: readonly Scenario[] = [
  { activity: 'paused', isBumped: false, ahead: 0 },
  { activity: 'busy', isBumped: true, ahead: 1 },
]

describe('an etcd that is restored from a snapshot', () => {
  for (const scenario of scenarios) {
    const { activity, isBumped } = scenario
    const flags = isBumped ? 'with' : 'without'
    test(`replicas that are ${activity} never answer from the other history, ${flags} --bump-revision`, async () => {
      const report = await restore(scenario)
      assert.deepEqual(complaints(report), [], report.examples.join('\n'))
      const [, lastOfFirst, met] = report.revisions
      assert.ok(met >= lastOfFirst, 'revisions alone would have told them apart')
      // With the flags etcd says itself that what was followed is gone.
      if (!isBumped) assert.equal(report.replicasEnded, 2)
    })
  }
})
