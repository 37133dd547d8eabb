/**
 * Shows that the simulation finds bugs: plants each in turn and searches seeds for a violation.
 *
 *     node test/simulation/planted/run.ts [name...] [--jobs N] [--seconds S] [--seed N]
 *
 * Fails when a planted fault is not found in time, or when the production code as it is violates a
 * guarantee with the same faults, seeds and time.
 */
import process from 'node:process'
import { parseArgs } from 'node:util'
import { Semaphore } from '../../../src/lib/semaphore.ts'
import { print, row } from '../../worlds/campaign.ts'
import { blindSpots, plantedFaults } from './faults.ts'
import type { PlantedFault } from './planted-fault.ts'
import { argumentsOf, type SearchResult, search } from './search.ts'

const { values, positionals } = parseArgs({
  options: {
    jobs: { type: 'string', default: '1' },
    seconds: { type: 'string', default: '60' },
    seed: { type: 'string', default: '1' },
  },
  allowPositionals: true,
})
const unknown = positionals.filter((name) => plantedFaults.every((fault) => fault.name !== name))
if (unknown.length > 0) throw new Error(`there is no planted fault called ${unknown.join(', ')}`)
const chosen =
  positionals.length === 0
    ? plantedFaults.filter(({ name }) => !blindSpots.has(name))
    : plantedFaults.filter(({ name }) => positionals.includes(name))
const seed = Number(values.seed)
const secondsMax = Number(values.seconds)
const jobs = new Semaphore(Number(values.jobs))

const widths = [40, 30, 48, 6, 7]
print(row(['planted fault', 'component', 'reported', 'seed', 'seconds'], widths))
const results = await Promise.all(chosen.map((fault) => jobs.take(() => plantAndSearch(fault))))
const controls = await Promise.all(
  [...controlsOf(chosen, results)].map(([args, seconds]) =>
    jobs.take(() => searchUnplanted(args, seconds)),
  ),
)
const missed = chosen.filter((_, index) => results[index]?.violation === undefined)
const violated = controls.filter(
  ({ violation, failure }) => violation !== undefined || failure !== undefined,
)
print(
  `\n${chosen.length - missed.length} of ${chosen.length} found; ` +
    `${violated.length} of ${controls.length} controls without a planted fault failed`,
)
if (missed.length > 0) print(`not found: ${missed.map(({ name }) => name).join(' ')}`)
process.exitCode = missed.length + violated.length === 0 ? 0 : 1

async function plantAndSearch(fault: PlantedFault): Promise<SearchResult> {
  const args = argumentsOf(fault, { isPlanted: true })
  const result = await search(args, { seed, seconds: secondsMax })
  printResult(fault.name, fault.component, result)
  return result
}

async function searchUnplanted(args: string, seconds: number): Promise<SearchResult> {
  const result = await search(args === '' ? [] : args.split(' '), { seed, seconds })
  printResult('none', args === '' ? 'all faults' : args, result)
  return result
}

/** The arguments of all searches without their planted faults, and how long the longest took. */
function controlsOf(
  faults: readonly PlantedFault[],
  found: readonly SearchResult[],
): ReadonlyMap<string, number> {
  const longest = new Map<string, number>()
  for (const [index, fault] of faults.entries()) {
    const args = argumentsOf(fault, { isPlanted: false }).join(' ')
    longest.set(args, Math.max(longest.get(args) ?? 0, found[index]?.seconds ?? 0))
  }
  return longest
}

function printResult(name: string, component: string, result: SearchResult): void {
  const { violation, failure, seconds } = result
  const reported = violation?.guarantee ?? (failure === undefined ? '-' : `failed: ${failure}`)
  print(row([name, component, reported, violation?.seed ?? '-', seconds.toFixed(1)], widths))
}
