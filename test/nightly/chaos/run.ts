/**
 * npm test -- chaos [--seed N] [--operations N] [--faults N] [--watchers N] [--storage NAME]
 *                       [--scenario NAME | regression | planted]
 *
 * Three replicas and three etcd members under load and faults, checked against the history of etcd.
 * Exits with 1 when a promise was broken; the evidence is then in .cache/chaos/.
 *
 * Runs in its own network namespace, for which it starts itself again: members are cut off from
 * each other without touching the machine's network, and nothing is left behind.
 */
import { spawnSync } from 'node:child_process'
import { argv, execPath, exit, getuid } from 'node:process'
import { parseArgs } from 'node:util'
import { print, saveEvidence, wholeNumber } from '../../worlds/campaign.ts'
import { type Report, runScenario } from './run-scenario.ts'
import { exploratory, fullSize, planted, regression, type Scenario } from './scenarios.ts'

const violationsShown = 20

const { values: given } = parseArgs({
  options: {
    seed: { type: 'string' },
    operations: { type: 'string' },
    faults: { type: 'string' },
    watchers: { type: 'string' },
    storage: { type: 'string' },
    scenario: { type: 'string' },
    /** Set when it starts itself again. */
    inside: { type: 'boolean' },
  },
})

exit(given.inside === true ? await runAll(chooseScenarios()) : startInside())

function startInside(): number {
  const asRoot = getuid?.() === 0 ? [] : ['--user', '--map-root-user']
  const args = [...asRoot, '--net', execPath, import.meta.filename, ...argv.slice(2), '--inside']
  const { status, error } = spawnSync('unshare', args, { stdio: 'inherit' })
  if (error !== undefined) throw error
  return status ?? 1
}

function chooseScenarios(): readonly Scenario[] {
  if (given.scenario === 'regression') return regression
  if (given.scenario === 'planted') return planted
  if (given.scenario !== undefined) {
    const named = [...regression, ...planted].filter(({ name }) => name === given.scenario)
    if (named.length === 0) throw new Error(`there is no scenario ${given.scenario}`)
    return named
  }
  const size = {
    operations: wholeNumber(given.operations) ?? fullSize.operations,
    faults: wholeNumber(given.faults) ?? fullSize.faults,
    watchers: wholeNumber(given.watchers) ?? fullSize.watchers,
  }
  const seed = wholeNumber(given.seed) ?? Math.floor(Math.random() * 2 ** 31)
  return [exploratory(size, seed, given.storage ?? 'etcd')]
}

/** Returns the exit code. */
async function runAll(scenarios: readonly Scenario[]): Promise<number> {
  let isBroken = false
  for (const scenario of scenarios) {
    print(`${scenario.name}: seed ${scenario.seed}, ${JSON.stringify(scenario)}`)
    const startedAt = performance.now()
    const report = await runScenario(scenario, (line) =>
      print(`${seconds(performance.now() - startedAt)}: ${line}`),
    )
    printReport(report)
    if (isInOrder(scenario, report)) continue
    isBroken = true
    keepEvidence(scenario, report)
  }
  return isBroken ? 1 : 0
}

function isInOrder({ finds }: Scenario, { violations }: Report): boolean {
  if (finds === undefined) return violations.length === 0
  const found = finds.filter((wanted) => violations.some(({ guarantee }) => guarantee === wanted))
  const isFound = found.length > 0
  print(isFound ? `found as expected: ${found.join(', ')}` : `not found: ${finds.join(', ')}`)
  return isFound
}

function printReport({ outcomes, commits, faults, violations, tookMs }: Report): void {
  const sum = [...outcomes.values()].reduce((total, number) => total + number, 0)
  print(`operations: ${sum}`)
  for (const [outcome, number] of [...outcomes].sort()) print(`  ${outcome}: ${number}`)
  const changes = commits.reduce((total, commit) => total + commit.changes.length, 0)
  print(`changes in etcd: ${changes} in ${commits.length} transactions`)
  print(`faults: ${faults.length}`)
  print(`took: ${seconds(tookMs.run)} to run, ${seconds(tookMs.check)} to check`)
  print(`violations: ${violations.length}`)
  for (const { guarantee, what, evidence } of violations.slice(0, violationsShown)) {
    print(`  ${guarantee}: ${what}`)
    for (const line of evidence) print(`    ${line}`)
  }
}

function keepEvidence(scenario: Scenario, report: Report): void {
  const { commits, faults, violations, lines } = report
  const changes = commits.flatMap(({ revision, changes: all }) =>
    all.map(({ type, key, value }) => `${revision} ${type} ${key} ${value}`),
  )
  const evidence = { scenario, violations, faults, changes, lines }
  saveEvidence('chaos', `${scenario.name}-${scenario.seed}`, evidence)
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}
