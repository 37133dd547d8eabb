/**
 * npm run test:chaos -- [--seed N] [--operations N] [--faults N] [--watchers N] [--storage NAME]
 *                       [--scenario NAME | regression | planted]
 *
 * Three replicas and three etcd members under load and faults, checked against a model. Exits with
 * 1 when a promise was broken; the evidence is then in .cache/chaos/.
 *
 * Runs in its own network namespace, for which it starts itself again: members are cut off from
 * each other without touching the machine's network, and nothing is left behind.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { argv, execPath, exit, getuid, stdout } from 'node:process'
import { parseArgs } from 'node:util'
import { type Report, runScenario } from './scenarios/run-scenario.ts'
import { exploratory, fullSize, planted, regression, type Scenario } from './scenarios/scenarios.ts'

const evidenceFolder = join(import.meta.dirname, '../../../.cache/chaos')
const violationsShown = 20

const { values: given } = parseArgs({
  options: {
    seed: { type: 'string' },
    operations: { type: 'string' },
    faults: { type: 'string' },
    watchers: { type: 'string' },
    keys: { type: 'string' },
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
    operations: count(given.operations) ?? fullSize.operations,
    faults: count(given.faults) ?? fullSize.faults,
    watchers: count(given.watchers) ?? fullSize.watchers,
    keys: count(given.keys) ?? fullSize.keys,
  }
  const seed = count(given.seed) ?? Math.floor(Math.random() * 2 ** 31)
  return [exploratory(size, seed, given.storage ?? 'etcd')]
}

function count(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (!/^\d{1,10}$/.test(text)) throw new Error(`not a number: ${text}`)
  return Number(text)
}

/** Returns the exit code. */
async function runAll(scenarios: readonly Scenario[]): Promise<number> {
  let isBroken = false
  for (const scenario of scenarios) {
    say(`${scenario.name}: seed ${scenario.seed}, ${JSON.stringify(scenario)}`)
    const startedAt = performance.now()
    const report = await runScenario(scenario, (line) =>
      say(`${seconds(performance.now() - startedAt)}: ${line}`),
    )
    tell(report)
    if (isInOrder(scenario, report)) continue
    isBroken = true
    keepEvidence(scenario, report)
  }
  return isBroken ? 1 : 0
}

function isInOrder({ finds }: Scenario, { violations }: Report): boolean {
  if (finds === undefined) return violations.length === 0
  const found = finds.filter((wanted) => violations.some(({ kind }) => kind === wanted))
  const isFound = found.length > 0
  say(isFound ? `found as expected: ${found.join(', ')}` : `not found: ${finds.join(', ')}`)
  return isFound
}

function tell({ record, watches, changes, faults, violations, tookMs }: Report): void {
  const segments = watches.flatMap((watch) => watch.segments)
  const heard = segments.reduce((sum, segment) => sum + segment.heard.length, 0)
  const sum = [...record.counts.values()].reduce((total, number) => total + number, 0)
  say(`operations: ${sum}`)
  for (const [outcome, number] of [...record.counts].sort()) say(`  ${outcome}: ${number}`)
  const revisions = new Set(changes.map(({ revision }) => revision)).size
  say(`changes in etcd: ${changes.length} in ${revisions} transactions`)
  say(`faults: ${faults.length}`)
  say(
    `watchers: ${watches.length}, ${segments.length} watches, ${heard} changes and batches received`,
  )
  say(`took: ${seconds(tookMs.run)} to run, ${seconds(tookMs.check)} to check`)
  say(`violations: ${violations.length}`)
  for (const { kind, message } of violations.slice(0, violationsShown)) say(`  ${kind}: ${message}`)
}

function keepEvidence(scenario: Scenario, report: Report): void {
  const { record, changes, faults, violations, watches } = report
  const file = join(evidenceFolder, `${scenario.name}-${scenario.seed}-${Date.now()}.json`)
  const { operations, oldReads } = record
  const evidence = { scenario, violations, faults, operations, oldReads, changes, watches }
  const mapsAsObjects = (_: string, value: unknown): unknown =>
    value instanceof Map ? Object.fromEntries(value) : value
  mkdirSync(evidenceFolder, { recursive: true })
  writeFileSync(file, JSON.stringify(evidence, mapsAsObjects))
  say(`the history is in ${file}`)
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}

function say(line: string): void {
  stdout.write(`${line}\n`)
}
