import { pause } from '../../../../src/lib/abort.ts'
import { revisionOf, type Version } from '../../../../src/storage/resource-version.ts'
import { Cluster } from '../faults/cluster.ts'
import { Injector, randomFaults } from '../faults/injector.ts'
import { checkHistory } from '../model/check.ts'
import type { Violation } from '../model/history.ts'
import { Random } from '../traffic/random.ts'
import type { TrafficRecord } from '../traffic/record.ts'
import { Replica } from '../traffic/replica.ts'
import { storages } from '../traffic/storages.ts'
import { Traffic } from '../traffic/traffic.ts'
import { DeliveredChanges, type WatchLog } from '../traffic/watch-log.ts'
import { Watcher } from '../traffic/watcher.ts'
import { checkAcknowledged } from '../validate/acknowledged.ts'
import { type Change, readHistory } from '../validate/etcd-history.ts'
import { checkMembersAgree } from '../validate/members.ts'
import { checkOldReads } from '../validate/old-reads.ts'
import { checkDelivered, checkWatch, History } from '../validate/watches.ts'
import type { Scenario } from './scenarios.ts'

const members = 3
const replicas = 3
const writersPerReplica = 8
const namespaces = 5
/** How long after the last fault the slowest watcher may take to receive everything. */
const catchUpMs = 60_000
const lastReadMs = 10_000

export interface Report {
  readonly record: TrafficRecord
  readonly watches: readonly WatchLog[]
  readonly changes: readonly Change[]
  /** Descriptions, in order. */
  readonly faults: readonly string[]
  readonly violations: readonly Violation[]
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
  const running = await Promise.all(
    Array.from({ length: replicas }, (_, index) => Replica.start(index, cluster.endpoints, make)),
  )
  const traffic = new Traffic({
    replicas: running,
    keys: scenario.keys,
    writersPerReplica,
    random: random.fork(),
  })
  const audience = new Audience(scenario.watchers, running, random.fork())
  const faults = await breakThings(scenario, { cluster, running, traffic, random, log })
  log('all operations have ended')
  const end = await newestVersion(running)
  await audience.finish(end)
  await Promise.all(running.map((replica) => replica.close()))
  log(`all watchers have received everything up to version ${end}`)

  const checkedAt = performance.now()
  const { endpoints } = cluster
  const changes = await readHistory(endpoints, revisionOf(end))
  const { record } = traffic
  const history = new History(changes)
  const violations = [
    ...record.violations,
    ...audience.violations,
    ...checkHistory(record.operations),
    ...checkAcknowledged(record.operations, history),
    ...checkOldReads(record.oldReads, record.operations, history),
    ...checkDelivered(audience.delivered.changes, history),
    ...audience.logs.flatMap((watch) => checkWatch(watch, history)),
    ...(await checkMembersAgree(endpoints, revisionOf(end))),
  ]
  const now = performance.now()
  const tookMs = { run: checkedAt - startedAt, check: now - checkedAt }
  return { record, watches: audience.logs, changes, faults, violations, tookMs }
}

/** Each fault gets its share of the operations, so that none passes unnoticed. */
async function breakThings(
  scenario: Scenario,
  context: {
    readonly cluster: Cluster
    readonly running: readonly Replica[]
    readonly traffic: Traffic
    readonly random: Random
    readonly log: (line: string) => void
  },
): Promise<readonly string[]> {
  const { cluster, running, traffic, random, log } = context
  using injector = new Injector(cluster, running, random.fork())
  const names =
    typeof scenario.faults === 'number' ? randomFaults(scenario.faults, random) : scenario.faults
  const share = Math.floor(scenario.operations / (names.length + 1))
  const working = traffic.run()
  const descriptions: string[] = []
  try {
    for (const name of names) {
      traffic.allow(share)
      await pause(random.between(100, 500))
      descriptions.push(await injector.inject(name))
      log(`${descriptions.length}/${names.length} ${descriptions.at(-1)}`)
    }
  } finally {
    traffic.allow(scenario.operations - share * names.length)
    traffic.close()
    await working
  }
  return descriptions
}

/** All watchers together. */
class Audience {
  readonly delivered: DeliveredChanges = new DeliveredChanges()
  readonly #watchers: readonly Watcher[]
  readonly #stop = new AbortController()
  readonly #working: Promise<unknown>
  readonly #late: Violation[] = []

  constructor(count: number, running: readonly Replica[], random: Random) {
    const { delivered } = this
    this.#watchers = Array.from({ length: count }, (_, id) => {
      // Every third watcher follows one namespace.
      const namespace = id % 3 === 2 ? `ns${random.below(namespaces)}` : undefined
      return new Watcher({
        id,
        namespace,
        from: 0,
        replicas: running,
        random: random.fork(),
        delivered,
      })
    })
    this.#working = Promise.all(this.#watchers.map((watcher) => watcher.run(this.#stop.signal)))
  }

  get logs(): readonly WatchLog[] {
    return this.#watchers.map((watcher) => watcher.log)
  }

  get violations(): readonly Violation[] {
    const own = this.#watchers.flatMap((watcher) => watcher.violations)
    return [...this.delivered.violations, ...own, ...this.#late]
  }

  /**
   * Resolves when all have received everything up to `version`; those that have not are violations.
   */
  async finish(version: number): Promise<void> {
    for (const watcher of this.#watchers) watcher.finishAt(version)
    const timer = setTimeout(() => this.#stop.abort(), catchUpMs)
    await this.#working
    clearTimeout(timer)
    for (const { log, position } of this.#watchers) {
      if (position >= version) continue
      const message = `watcher ${log.id} is at ${position} of ${version} after ${catchUpMs} ms`
      this.#late.push({ kind: 'watch-reliable', message })
    }
  }
}

async function newestVersion(running: readonly Replica[]): Promise<Version> {
  const signal = AbortSignal.timeout(lastReadMs)
  const [first] = running
  if (first === undefined) throw new Error('there is no replica')
  return await first.storage.currentVersion({ signal })
}
