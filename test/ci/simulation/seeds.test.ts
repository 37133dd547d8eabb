/** Runs fresh seeds for some seconds. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testSeed } from '../../support/seed.ts'
import { runCampaign } from '../../worlds/run-campaign.ts'

const script = 'simulation/run.ts'
const seed = testSeed()
const freshSeconds = 10
const mirrorSeconds = 5

test(`finds nothing with fresh seeds from ${seed} on`, async (context) => {
  const output = await runCampaign(
    script,
    '--seed',
    String(seed),
    '--seconds',
    String(freshSeconds),
  )
  context.diagnostic(output)
  assert.match(output, /, 0 violations$/m)
})

test(`finds nothing in a mirrored cluster with fresh seeds from ${seed} on`, async (context) => {
  const size = ['--minutes', '2', '--seconds', String(mirrorSeconds)]
  const output = await runCampaign(script, '--world', 'mirror', '--seed', String(seed), ...size)
  context.diagnostic(output)
  assert.match(output, /, 0 violations$/m)
})
