import { test } from 'node:test'
import { shortSize } from '../../nightly/chaos/scenarios.ts'
import { testSeed } from '../../support/seed.ts'
import { runCampaign } from '../../worlds/run-campaign.ts'

const { operations, faults, watchers } = shortSize
const size = ['--operations', operations, '--faults', faults, '--watchers', watchers].map(String)
const seed = ['--seed', String(testSeed())]

// With little memory, so that lists and watches also read from etcd.
for (const storage of ['etcd', 'cached-small']) {
  test(`keeps all promises of ${storage} while etcd is killed, paused and cut off`, async (t) => {
    const args = [...size, ...seed, '--storage', storage]
    const printed = await runCampaign('nightly/chaos/run.ts', ...args)
    t.diagnostic(printed.split('\n').at(0) ?? '')
  })
}
