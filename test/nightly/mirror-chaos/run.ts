/**
 *     npm run test:mirror:chaos -- [--seed N] [--writes N] [--faults N] [--deletes never|explicit]
 *                                  [--namespaces a,b] [--planted NAME | --planted all] [--quiet]
 *
 * Mirrors one tidings into another while both, their etcds and the connections between them fail,
 * and checks what arrives. Exits with 1 when something is missing, duplicated, outdated or out of
 * order; the histories are then in .cache/mirror-chaos/. With `--planted` the mirror has a bug, and
 * it exits with 1 when the bug is not found.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { testSeed } from '../../support/seed.ts'
import { type PlantedBug, plantedBugs } from './planted.ts'
import { type Report, runMirror, type Scenario } from './run-mirror.ts'

const evidenceFolder = join(import.meta.dirname, '../../../.cache/mirror-chaos')
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
const seed = count(given.seed)

if (given.planted === undefined) await explore()
else await findAll(given.planted)

async function explore(): Promise<void> {
  const scenario: Scenario = {
    seed,
    writes: count(given.writes),
    faults: count(given.faults),
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
    say(`planted ${bug.name}: ${bug.mistake}`)
    const scenario = scenarioOf(bug)
    const report = await run(scenario)
    const found = bug.finds.filter((wanted) =>
      report.violations.some(({ kind }) => kind === wanted),
    )
    say(`${bug.name}: ${found.length > 0 ? `found: ${found.join(', ')}` : 'NOT FOUND'}`)
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
  say(`seed ${scenario.seed}: ${writes} writes, ${faults} faults, deletes ${deletes}`)
  const startedAt = performance.now()
  const report = await runMirror(scenario, (line) => {
    if (!given.quiet) say(`${((performance.now() - startedAt) / 1000).toFixed(1)} s: ${line}`)
  })
  tell(report)
  return report
}

function tell({ writes, faults, history, violations, seconds, caughtUpSeconds }: Report): void {
  say(`writes: ${JSON.stringify(writes)}`)
  say(`changes at the origin: ${history.origin.length}, at the target: ${history.target.length}`)
  say(`faults: ${faults.length}, gaps: ${JSON.stringify(history.gaps)}`)
  say(
    `took ${seconds.toFixed(0)} s; complete ${caughtUpSeconds.toFixed(1)} s after the last repair`,
  )
  say(`violations: ${violations.length}`)
  for (const [kind, found] of Map.groupBy(violations, (violation) => violation.kind)) {
    say(`  ${kind}: ${found.length}`)
    for (const { message } of found.slice(0, examplesShown)) say(`    ${message}`)
  }
}

function keepEvidence(scenario: Scenario, { violations, history, faults, logs }: Report): void {
  const file = join(evidenceFolder, `${scenario.seed}-${Date.now()}.json`)
  mkdirSync(evidenceFolder, { recursive: true })
  writeFileSync(file, JSON.stringify({ scenario, violations, faults, history, logs }, undefined, 1))
  say(`the histories are in ${file}`)
}

function count(text: string): number {
  if (!/^\d{1,10}$/.test(text)) throw new Error(`not a number: ${text}`)
  return Number(text)
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
