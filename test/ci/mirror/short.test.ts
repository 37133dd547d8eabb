import { test } from 'node:test'
import { testSeed } from '../../support/seed.ts'
import { runCampaign } from '../../worlds/run-campaign.ts'

const program = 'nightly/mirror-chaos/run.ts'
const seed = ['--seed', String(testSeed())]

test('mirrors every event once, in order and up to date, through 4,000 writes and 20 faults', async (t) => {
  const size = ['--writes', '4000', '--faults', '20']
  t.diagnostic(await runCampaign(program, ...size, ...seed, '--quiet'))
})

test('finds a mirror that does not compare versions', async () => {
  await runCampaign(program, '--planted', 'no-version-compare', ...seed)
})
