/**
 * Three replicas with a policy file, writers, policies that change, and a sweeper that is killed
 * again and again. Nothing may be deleted before its lifetime, everything due is deleted within 15 s
 * (kills included), budgets hold within 1 % once writers pause, and Warnings are evicted last. A
 * run in which few events expire or are evicted is a violation as well. The first argument is the
 * number of minutes, 5 by default; the second a seed. Exits with 1 on a violation.
 */
import { pause } from '../../../src/lib/abort.ts'
import { eventually } from '../../support/eventually.ts'
import { Random } from '../../support/random.ts'
import { testSeed } from '../../support/seed.ts'
import { print } from '../../worlds/campaign.ts'
import { drawPolicy, EVERYTHING_EXPIRES } from './policies.ts'
import { Site } from './site.ts'

const minutes = Number(process.argv[2] ?? 5)
const seed = process.argv[3] === undefined ? testSeed() : Number(process.argv[3])
const random = new Random(seed)
print(`seed ${seed}, ${minutes} min`)
const site = await Site.start(drawPolicy(random), { seed, writeEveryMs: 12 })
const { judge } = site
try {
  const endAt = performance.now() + minutes * 60_000
  while (performance.now() < endAt && judge.problems.length === 0) {
    await pause(random.between(1_000, 12_000))
    if (random.chance(0.6)) await site.setPolicy(drawPolicy(random))
    if (random.chance(0.5)) await site.killSweeper()
    await pause(random.between(0, 6_000))
    await site.settle(3_000)
    print(line())
    site.resume()
  }
  await site.setPolicy(EVERYTHING_EXPIRES)
  await site.settle(0)
  const isOver = () => judge.left === 0 || judge.problems.length > 0
  await eventually('everything is deleted', isOver, 30_000)
} finally {
  await site[Symbol.asyncDispose]()
}
// A run that ended early because of a violation has fewer.
if (judge.problems.length === 0) judge.checkCounts(minutes)
print(line())
for (const problem of judge.problems) print(`VIOLATION: ${problem}`)
process.exitCode = judge.problems.length === 0 ? 0 : 1

function line(): string {
  const { written, expired, evicted, evictedWarnings, byClients } = judge.counts
  const { kills, policies } = site
  return [
    `${written} written, ${expired} expired, ${evicted} evicted (${evictedWarnings} Warnings)`,
    `${byClients} deleted by clients, ${judge.left} left; ${policies} policies, ${kills} kills`,
    `at most ${(judge.latestMs / 1000).toFixed(1)} s late, ${judge.problems.length} violations`,
  ].join(', ')
}
