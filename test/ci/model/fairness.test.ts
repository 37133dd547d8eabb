import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Random } from '../../nightly/chaos/traffic/random.ts'
import { playWorld } from '../../nightly/fairness/model.ts'
import { testSeed } from '../../support/seed.ts'

test('a user who asks for less than its fair share is never refused', async () => {
  const seed = testSeed()
  let refused = 0
  for (let world = 0; world < 20; world++) {
    const tally = await playWorld(new Random(seed + world), 6000).catch((error: unknown) => {
      throw new Error(`npm run test:fairness -- 6000 ${seed + world}`, { cause: error })
    })
    assert.ok(tally.modestGranted > 0)
    refused += tally.greedyRefused
  }
  assert.ok(refused > 0, 'nobody was refused, so nothing was shared')
})
