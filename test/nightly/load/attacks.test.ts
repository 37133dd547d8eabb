/**
 * Attacks on memory at a fifth of their size, each on its own server. The latency of other clients
 * is checked at full size only (`npm test -- attacks`), since CI machines are shared.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ATTACKS, keyOf } from '../attacks/attacks.ts'
import { campaign, rowOf } from '../attacks/campaign.ts'

const SHORT = { scale: 0.2, rounds: 1, ms: 1500, warmUpRequests: 150 }
/** Longer, so that all of it arrives. */
const CONTROL = { ...SHORT, scale: 0.5, ms: 6000 }
/** How much memory may grow, in MiB: a fraction of the growth without limits. */
const GROWN_MAX_MIB = 64
/** Attacks that take 100 MiB and more at this size without limits. */
const CHOSEN = [
  'unread errors, expanded Accept (unauthenticated)',
  'unread errors, other header (no rights)',
  'watches, expanded Accept (reader)',
  'unread lists, then many that wait (reader)',
]
/** Flags that disable the limits in effect. */
const WITHOUT_LIMITS = [
  '--max-client-memory=8192',
  '--max-client-memory-per-user=8192',
  '--max-requests-inflight=0',
  '--stalled-response-timeout=60s',
]

const attacks = ATTACKS.filter((attack) => CHOSEN.includes(keyOf(attack)))

describe('attacks, at a fifth of their size', () => {
  test('all chosen attacks exist', () => assert.equal(attacks.length, CHOSEN.length))

  for (const attack of attacks) {
    test(`${keyOf(attack)}: the server survives, its memory is bounded and other clients are served`, async () => {
      const [outcome] = await campaign({ ...SHORT, attacks: [attack] })
      if (outcome === undefined) assert.fail('nothing was measured')
      assert.ok(outcome.grownMib <= GROWN_MAX_MIB, rowOf(outcome))
      assert.equal(outcome.failures, 0, rowOf(outcome))
    })
  }

  test('the same attack takes memory when there are no limits', async () => {
    const lists = attacks.filter(({ name }) => name.startsWith('unread lists'))
    const [outcome] = await campaign({ ...CONTROL, attacks: lists, flags: WITHOUT_LIMITS })
    if (outcome === undefined) assert.fail('nothing was measured')
    assert.ok(outcome.grownMib > GROWN_MAX_MIB, rowOf(outcome))
  })
})
