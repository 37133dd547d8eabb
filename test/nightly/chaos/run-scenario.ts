import { pause } from '../../../src/lib/abort.ts'
import { Random } from '../../support/random.ts'
import type { Commit } from '../../worlds/checker/commit.ts'
import { type FaultOf, faultsOf, schedule } from '../../worlds/faults.ts'
import { Cluster } from './faults/cluster.ts'
import { Injector } from './faults/injector.ts'
import { checkMembersAgree } from './members.ts'
import type { Scenario } from './scenarios.ts'
import { storages } from './storages.ts'
import { RealWorld, type Violation } from './world.ts'

const members = 3

export interface Report {
  /** Keyed by operation and outcome. */
  readonly outcomes: ReadonlyMap<string, number>
  readonly commits: readonly Commit[]
  /** Descriptions, in order. */
  readonly faults: readonly string[]
  readonly violations: readonly Violation[]
  /** Every operation with its outcome. */
  readonly lines: readonly string[]
  readonly tookMs: { readonly run: number; readonly check: number }
}

/** Starts a cluster, injects faults under load, and checks the results. */
export async function runScenario(
  scenario: Scenario,
  log: (line: string) => void,
): Promise<Report> {
  const make = storages[scenario.storage]
  if (make === undefined) throw new Error(`there is no storage ${scenario.storage}`)
  const startedAt = performance.now()
  const random = new Random(scenario.seed)
  await using cluster = await Cluster.start(members)
  const { endpoints } = cluster
  const { watchers, fixedNames, operations } = scenario
  await using world = await RealWorld.start({
    endpoints,
    make,
    watchers,
    fixedNames,
    random: random.fork(),
  })
  const faults = await breakThings(scenario, { cluster, world, random, log })
  const { newestRevision } = await world.finish(operations)
  log(`all operations have ended, at revision ${newestRevision}`)
  const checkedAt = performance.now()
  const commits = await world.check(newestRevision)
  const violations = [...world.violations, ...(await checkMembersAgree(endpoints, newestRevision))]
  const now = performance.now()
  const tookMs = { run: checkedAt - startedAt, check: now - checkedAt }
  const { lines, workload } = world
  return { outcomes: workload.outcomes, commits, faults, violations, lines, tookMs }
}

/** Each fault gets its share of the operations, so that none passes unnoticed. */
async function breakThings(
  scenario: Scenario,
  context: {
    readonly cluster: Cluster
    readonly world: RealWorld
    readonly random: Random
    readonly log: (line: string) => void
  },
): Promise<readonly string[]> {
  const { cluster, world, random, log } = context
  using injector = new Injector(cluster, world.replicas, random.fork())
  const names =
    typeof scenario.faults === 'number' ? eachInTurn(scenario.faults, random) : scenario.faults
  const share = scenario.operations / (names.length + 1)
  const descriptions: string[] = []
  for (const [index, name] of names.entries()) {
    while (world.workload.operations < share * index) await pause(100)
    await pause(random.between(100, 500))
    descriptions.push(await injector.inject(name))
    log(`${descriptions.length}/${names.length} ${descriptions.at(-1)}`)
  }
  return descriptions
}

function eachInTurn(count: number, random: Random): readonly FaultOf<'chaos'>[] {
  const perRound = Object.fromEntries(faultsOf('chaos').map((name) => [name, 1]))
  return schedule<FaultOf<'chaos'>>(count, random, perRound)
}
