/**
 * Every attack at full size, or those whose names contain the words given:
 *   npm test -- attacks [words]
 * Exits with 1 when the server ends, memory grows too much, a probe or a request of another user
 * fails, or their p99 latency is more than three times that of quiet periods.
 */
import { ATTACKS, keyOf } from './attacks.ts'
import { campaign, HEADINGS, missed, rowOf } from './campaign.ts'

const words = process.argv.slice(2)
process.stdout.write(`${HEADINGS}\n`)
const outcomes = await campaign({
  attacks: ATTACKS.filter((attack) => words.every((word) => keyOf(attack).includes(word))),
  scale: 1,
  rounds: 2,
  ms: 5000,
  warmUpRequests: 1200,
  onOutcome: (outcome) => process.stdout.write(`${rowOf(outcome)}\n`),
})
for (const outcome of outcomes) {
  const reasons = missed(outcome)
  if (reasons.length === 0) continue
  process.stdout.write(`missed: ${keyOf(outcome.attack)}: ${reasons.join(', ')}\n`)
  process.exitCode = 1
}
