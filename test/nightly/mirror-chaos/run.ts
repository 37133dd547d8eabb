/**
 *     npm test -- mirror:chaos [--seed N] [--writes N] [--faults N] [--deletes never|explicit]
 *                                  [--namespaces a,b] [--planted NAME | --planted all] [--quiet]
 *
 * Mirrors one tidings into another while both, their etcds and the connections between them fail,
 * and checks what arrives. Exits with 1 when something is missing, duplicated, outdated or out of
 * order; the histories are then in .cache/mirror-chaos/. With `--planted` the mirror has a bug, and
 * it exits with 1 when the bug is not found.
 */
import { join } from 'node:path'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { testSeed } from '../../support/seed.ts'
import { print, saveEvidence, wholeNumber } from '../../worlds/campaign.ts'
import { type PlantedBug, plantedBugs } from './planted.ts'
import { type Report, runMirror, type Scenario } from './run-mirror.ts'

const plantedProgram = join(import.meta.dirname, 'planted-main.ts')
const examplesShown = 3
const plantedWritesPerFault = 250

const { values: given } = parseArgs({
  options: {
    seed: { type: 'string', default: String(testSeed()) },
    writes: { type: 'string', default: '100000' },
    faults: { type: 'string', default: '500' },
    deletes: { type: 'string', default: 'never' },
    namespaces: { type: 'string' },
    planted: { type: 'string' },
    quiet: { type: 'boolean', default: false },
  },
})
const seed = wholeNumber(given.seed) ?? 0

if (given.planted === undefined) await explore()
else await findAll(given.planted)

async function explore(): Promise<void> {
  const scenario: Scenario = {
    seed,
    writes: wholeNumber(given.writes) ?? 0,
    faults: wholeNumber(given.faults) ?? 0,
    deletes: given.deletes === 'explicit' ? 'explicit' : 'never',
    namespaces: given.namespaces?.split(','),
  }
  const report = await run(scenario)
  if (report.violations.length === 0) return
  keepEvidence(scenario, report)
  process.exitCode = 1
}

async function findAll(name: string): Promise<void> {
  const bugs = plantedBugs.filter((bug) => name === 'all' || bug.name === name)
  if (bugs.length === 0) throw new Error(`there is no planted bug ${name}`)
  for (const bug of bugs) {
    print(`planted ${bug.name}: ${bug.mistake}`)
    const scenario = scenarioOf(bug)
    const report = await run(scenario)
    const found = bug.finds.filter((wanted) =>
      report.violations.some(({ kind }) => kind === wanted),
    )
    print(`${bug.name}: ${found.length > 0 ? `found: ${found.join(', ')}` : 'NOT FOUND'}`)
    if (found.length > 0) continue
    keepEvidence(scenario, report)
    process.exitCode = 1
  }
}

function scenarioOf({ name, kinds, faults }: PlantedBug): Scenario {
  return {
    seed,
    writes: faults * plantedWritesPerFault,
    faults,
    deletes: 'never',
    kinds,
    program: plantedProgram,
    env: { TIDINGS_PLANTED_BUG: name },
  }
}

async function run(scenario: Scenario): Promise<Report> {
  const { writes, faults, deletes } = scenario
  print(`seed ${scenario.seed}: ${writes} writes, ${faults} faults, deletes ${deletes}`)
  const startedAt = performance.now()
  const report = await runMirror(scenario, (line) => {
    if (!given.quiet) print(`${((performance.now() - startedAt) / 1000).toFixed(1)} s: ${line}`)
  })
  printReport(report)
  return report
}

function printReport({
  writes,
  faults,
  history,
  violations,
  seconds,
  caughtUpSeconds,
}: Report): void {
  print(`writes: ${JSON.stringify(writes)}`)
  print(`changes at the origin: ${history.origin.length}, at the target: ${history.target.length}`)
  print(`faults: ${faults.length}, gaps: ${JSON.stringify(history.gaps)}`)
  print(
    `took ${seconds.toFixed(0)} s; complete ${caughtUpSeconds.toFixed(1)} s after the last repair`,
  )
  print(`violations: ${violations.length}`)
  for (const [kind, found] of Map.groupBy(violations, (violation) => violation.kind)) {
    print(`  ${kind}: ${found.length}`)
    for (const { message } of found.slice(0, examplesShown)) print(`    ${message}`)
  }
}

function keepEvidence(scenario: Scenario, { violations, history, faults, logs }: Report): void {
  const evidence = { scenario, violations, faults, history, logs }
  saveEvidence('mirror-chaos', String(scenario.seed), evidence)
}
