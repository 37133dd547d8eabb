import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { campaign, GROWTH_MAX, rowOf } from '../attacks/campaign.ts'

/** Latency is held to a ratio at full size alone (`npm run test:attacks`): CI machines are shared. */
describe('attacks, at a tenth of their size', () => {
  test('leave a server with a small heap alive, its memory bounded and others served', async () => {
    const outcomes = await campaign({ size: { connections: 10, streams: 100 }, ms: 500 })
    for (const outcome of outcomes) {
      const { attack, grownMib, failures } = outcome
      const max = GROWTH_MAX[attack.token === undefined ? 'unauthenticated' : 'authenticated']
      assert.ok(grownMib <= max, rowOf(outcome))
      assert.equal(failures, 0, rowOf(outcome))
    }
  })
})
