/** Runs seed after seed, sums up what happened, and explains the first violation. */
import process from 'node:process'
import { startCoverage } from './coverage.ts'
import { inTask } from './kernel/current.ts'
import { runScenario, type Scenario, scenarioOf, shorten } from './simulate.ts'
import { formatTimeline } from './timeline.ts'
import type { RunResult, TraceLine } from './world.ts'
import type { WorldKind } from './world-kinds.ts'

export interface CampaignOptions {
  readonly seed: number
  readonly hours: number | undefined
  readonly seconds: number | undefined
  readonly runMs: number
  readonly replicas: number | undefined
  readonly operationsPerSecond: number | undefined
  readonly faults: readonly string[] | undefined
  readonly world: WorldKind
  readonly isTraced: boolean
  readonly isCovered: boolean
  readonly isShortened: boolean
  /** What a repetition of a single run needs besides its seed. */
  readonly repeatArguments: readonly string[]
  readonly isKeptGoing: boolean
}

const shortenSeconds = 60
const shortenAttempts = 400
/** Lines of the timeline that are printed with a violation. */
const timelineLines = 120
const hour = 3_600_000
const progressEveryMs = 60_000

interface Totals {
  runs: number
  simulatedMs: number
  operations: number
  faults: number
  violations: number
  lastHash: string
  readonly byFault: Map<string, number>
  readonly outcomes: Map<string, number>
}

/** Resolves to whether no guarantee was violated. */
export async function simulateAll(options: CampaignOptions): Promise<boolean> {
  const { seed, hours, seconds } = options
  // Stack traces cost more than the simulated work.
  if (!options.isTraced) Error.stackTraceLimit = 0
  const coverage = options.isCovered ? await startCoverage() : undefined
  const began = process.cpuUsage()
  const isOver = (totals: Totals): boolean => {
    if (totals.violations > 0 && !options.isKeptGoing) return true
    if (seconds !== undefined && cpuSeconds(began) > seconds) return true
    if (hours !== undefined) return totals.simulatedMs >= hours * hour
    return seconds === undefined && totals.runs > 0
  }
  const totals: Totals = {
    runs: 0,
    simulatedMs: 0,
    operations: 0,
    faults: 0,
    violations: 0,
    lastHash: '',
    byFault: new Map(),
    outcomes: new Map(),
  }
  let progressAt = performance.now() + progressEveryMs
  for (let next = seed; !isOver(totals); next++) {
    const scenario = scenarioOf({
      seed: next,
      durationMs: options.runMs,
      replicas: options.replicas,
      operationsPerSecond: options.operationsPerSecond,
      faults: options.faults,
      world: options.world,
    })
    const trace = options.isTraced ? { onTrace: printLine, tracesMessages: true } : {}
    const result = await inTask(() => runScenario(scenario, trace))
    add(totals, result)
    if (performance.now() > progressAt) {
      progressAt += progressEveryMs
      print(`so far ${totals.operations} operations, ${totals.faults} faults, seed ${next}`)
    }
    if (result.violation === undefined) continue
    totals.violations++
    if (options.isShortened) await inTask(() => explain(scenario, result))
    else print(summary(scenario, result).join('\n'))
    print(`repeat: npm run simulate -- --seed ${next} ${options.repeatArguments.join(' ')}\n`)
  }
  report(totals, cpuSeconds(began), seed)
  print((await coverage?.()) ?? '')
  return totals.violations === 0
}

function cpuSeconds(since: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(since)
  return (user + system) / 1e6
}

function add(totals: Totals, result: RunResult): void {
  totals.runs++
  totals.simulatedMs += result.simulatedMs
  totals.operations += result.operations
  sum(totals.byFault, result.faults)
  sum(totals.outcomes, result.outcomes)
  for (const count of result.faults.values()) totals.faults += count
  totals.lastHash = result.hash
}

function sum(all: Map<string, number>, more: ReadonlyMap<string, number>): void {
  for (const [name, count] of more) all.set(name, (all.get(name) ?? 0) + count)
}

function report(totals: Totals, cpuSeconds: number, seed: number): void {
  const hours = totals.simulatedMs / hour
  print(
    [
      `seeds ${seed} to ${seed + totals.runs - 1}: ${totals.runs} runs, ${totals.violations} violations`,
      `${hours.toFixed(2)} simulated hours in ${cpuSeconds.toFixed(1)} s of CPU: ${((hours * 3600) / cpuSeconds).toFixed(0)} simulated hours per hour`,
      `${totals.operations} operations (${(totals.operations / cpuSeconds).toFixed(0)} per second of CPU), ${totals.faults} faults`,
      `operations: ${list(totals.outcomes)}`,
      `faults: ${list(totals.byFault)}`,
      `hash of the last run: ${totals.lastHash}`,
    ].join('\n'),
  )
}

function list(counts: ReadonlyMap<string, number>): string {
  return [...counts].map(([name, count]) => `${name} ${count}`).join(', ')
}

function explain(failing: Scenario, failed: RunResult): void {
  const { seed } = failing.setting
  print(`\nseed ${seed}: ${failed.violation?.guarantee} is violated; shortening the run`)
  const endsAt = performance.now() + shortenSeconds * 1000
  const { scenario, result, attempts } = shorten(failing, failed, {
    attemptsMax: shortenAttempts,
    isOver: () => performance.now() > endsAt,
  })
  const shown: TraceLine[] = []
  runScenario(scenario, {
    onTrace: (line) => {
      shown.push(line)
      if (shown.length > timelineLines) shown.shift()
    },
  })
  print(
    [
      `${attempts} attempts: ${scenario.faults.length} of ${failing.faults.length} faults and ` +
        `${result.numbered - scenario.leftOut.size} of ${failed.numbered} operations still fail`,
      formatTimeline(shown, scenario.setting.replicas),
      '',
      ...summary(scenario, result),
    ].join('\n'),
  )
}

function summary({ setting }: Scenario, { violation }: RunResult): readonly string[] {
  return [
    `violation of: ${violation?.guarantee}`,
    `seed ${setting.seed}, at ${((violation?.atMs ?? 0) / 1000).toFixed(4)} s: ${violation?.what}`,
    ...(violation?.evidence ?? []).map((line) => `  ${line}`),
    '',
  ]
}

function printLine({ atMs, who, text }: TraceLine): void {
  print(`${(atMs / 1000).toFixed(6)} ${who}: ${text}`)
}

function print(text: string): void {
  if (text !== '') process.stdout.write(`${text}\n`)
}
