/** The simulated etcd against scenarios that were recorded from a real etcd 3.5.30. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { play, SimulatedTarget } from '../../simulation/etcd/checks/play.ts'
import { scenarios } from '../../simulation/etcd/checks/scenarios.ts'

const folder = join(import.meta.dirname, '../../simulation/etcd/recorded')

for (const scenario of scenarios) {
  test(`the simulated etcd replies as recorded: ${scenario.name}`, async () => {
    const recorded = JSON.parse(readFileSync(join(folder, `${scenario.name}.json`), 'utf8'))
    const played = await play(scenario, new SimulatedTarget(scenario.quotaBytes))
    for (const [index, entry] of played.entries()) assert.deepEqual(entry, recorded[index])
    assert.equal(played.length, recorded.length)
  })
}
