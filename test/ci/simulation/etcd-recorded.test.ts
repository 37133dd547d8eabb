/** The simulated etcd against scenarios that were recorded from a real etcd 3.5.30, 3.6.14 and 3.7.1. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { play, SimulatedTarget } from '../../simulation/etcd/checks/play.ts'
import { recordedBy } from '../../simulation/etcd/checks/recordings.ts'
import { scenarios } from '../../simulation/etcd/checks/scenarios.ts'
import { releases } from '../../simulation/etcd/contract.ts'

for (const release of releases) {
  for (const scenario of scenarios) {
    test(`the simulated etcd ${release} replies as recorded: ${scenario.name}`, async () => {
      const recorded = recordedBy(release, scenario.name)
      const played = await play(scenario, new SimulatedTarget(scenario.quotaBytes, release))
      for (const [index, entry] of played.entries()) assert.deepEqual(entry, recorded[index])
      assert.equal(played.length, recorded.length)
    })
  }
}
