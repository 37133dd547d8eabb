import assert from 'node:assert/strict'
import { test } from 'node:test'
import { playWorld } from '../../nightly/fairness/model.ts'
import { Random } from '../../support/random.ts'
import { testSeed } from '../../support/seed.ts'

test('never refuses a user who asks for less than its fair share', async () => {
  const seed = testSeed()
  let refused = 0
  for (let world = 0; world < 20; world++) {
    const tally = await playWorld(new Random(seed + world), 6000).catch((error: unknown) => {
      throw new Error(`npm test -- fairness 6000 ${seed + world}`, { cause: error })
    })
    assert.ok(tally.modestGranted > 0)
    refused += tally.greedyRefused
  }
  assert.ok(refused > 0, 'nobody was refused, so nothing was shared')
})
