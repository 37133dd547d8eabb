/**
 * Every attack at full size:
 *   npm run test:attacks
 * Ends with code 1 when memory grows by more than it may, a probe or a request of another user fails,
 * or these take more than three times as long as on a quiet server.
 */
import { campaign, GROWTH_MAX, rowOf } from './campaign.ts'

const RATIO_MAX = 3

const outcomes = await campaign({
  size: { connections: 100, streams: 100 },
  ms: 8000,
  onOutcome: (outcome) => process.stdout.write(`${rowOf(outcome)}\n`),
})
for (const { attack, grownMib, probeRatio, userRatio, failures } of outcomes) {
  const max = GROWTH_MAX[attack.token === undefined ? 'unauthenticated' : 'authenticated']
  if (grownMib <= max && probeRatio <= RATIO_MAX && userRatio <= RATIO_MAX && failures === 0)
    continue
  process.stdout.write(`missed: ${attack.name}, ${attack.token ?? 'unauthenticated'}\n`)
  process.exitCode = 1
}
