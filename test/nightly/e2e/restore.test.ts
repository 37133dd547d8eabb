import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { complaints, restore, type Scenario } from '../restore/restore.ts'

/** Some cases of the matrix of `npm test -- restore`. */
const scenarios: readonly Scenario[] = [
  { activity: 'paused', isBumped: false, ahead: 0 },
  { activity: 'busy', isBumped: true, ahead: 1 },
]

describe('an etcd that is restored from a snapshot', () => {
  for (const scenario of scenarios) {
    const { activity, isBumped } = scenario
    const flags = isBumped ? 'with' : 'without'
    test(`replicas that are ${activity} never serve the other history, ${flags} --bump-revision`, async () => {
      const report = await restore(scenario)
      assert.deepEqual(complaints(report), [], report.examples.join('\n'))
      const [, lastOfFirst, met] = report.revisions
      assert.ok(met >= lastOfFirst, 'the revision alone would have shown the restore')
      // If the flags are set, etcd itself reports the followed revision as compacted.
      if (!isBumped) assert.equal(report.replicasEnded, 2)
    })
  }
})
