import { eventually } from '../../support/eventually.ts'
import { Random } from '../../support/random.ts'
import { check } from './check.ts'
import { type FaultKind, Injector, type PlannedFault, plan } from './faults.ts'
import type { RunHistory, Sighting, Violation } from './history.ts'
import { listAll, Observer } from './observer.ts'
import { Site, targetCluster, token } from './site.ts'
import { Quota, SharedConnection, type Writes, write } from './workload.ts'

export interface Scenario {
  readonly seed: number
  readonly writes: number
  readonly faults: number
  readonly deletes: 'never' | 'explicit'
  /** The namespaces that are mirrored; all by default. */
  readonly namespaces?: readonly string[] | undefined
  /** Kinds of faults; all by default. */
  readonly kinds?: readonly FaultKind[] | undefined
  /** The program of the target, and its environment: for planted bugs. */
  readonly program?: string | undefined
  readonly env?: Readonly<Record<string, string>> | undefined
}

export interface Report {
  readonly history: RunHistory
  readonly violations: readonly Violation[]
  readonly faults: readonly PlannedFault[]
  readonly writes: Writes
  readonly seconds: number
  /** The time between the last repair and a complete mirror. */
  readonly caughtUpSeconds: number
  /** What the replicas of the target have logged. */
  readonly logs: readonly (readonly string[])[]
}

const writers = 24
/** Events that exist before the mirror lists for the first time. */
const existing = 1_200
const startedMsMax = 120_000
const writtenMsMax = 60_000
const followingMsMax = 60_000
const observedMsMax = 20_000

export async function runMirror(scenario: Scenario, say: (line: string) => void): Promise<Report> {
  const startedAt = performance.now()
  const random = new Random(scenario.seed)
  const faults = plan(scenario.faults, random.fork(), scenario.kinds)
  await using site = await Site.start(scenario)
  const failures: unknown[] = []
  const injector = new Injector(site, (error) => failures.push(error))
  // Nothing is owed before the first list.
  injector.noteGap(0, 1)
  const writes: Writes = { creates: 0, recreates: 0, patches: 0, deletes: 0, failed: 0 }
  const quota = new Quota()
  using connection = new SharedConnection(() => site.origin.client(site.ca, token))
  const writing = Array.from({ length: writers }, (_, number) =>
    write({ number, random: random.fork(), quota, connection, writes }),
  )
  const observer = new Observer((attempt) => clientOf(site, attempt))
  quota.allow(Math.min(existing, scenario.writes))
  // Chosen faults are to meet a mirror that works; others may interrupt its first list.
  if (scenario.kinds !== undefined) {
    await eventually('the mirror works', () => site.targetHistory.changes.length > 0, startedMsMax)
    await injector.untilWorking()
  }
  for (const [index, fault] of faults.entries()) {
    // Writes are spread over all faults.
    quota.allow(Math.ceil((scenario.writes * (index + 1)) / faults.length))
    say(`fault ${index + 1}: ${fault.kind} ${fault.ms} ms; ${await progress(site)}`)
    await injector.inject(fault)
    if (!fault.isHasty) await injector.untilWorking()
  }
  await injector.repaired()
  await eventually('all writes are done', () => total(writes) >= scenario.writes, writtenMsMax)
  quota.close()
  await Promise.all(writing)
  const repairedAt = performance.now()
  const stalled = await untilFollowing(site)
  const caughtUpSeconds = (performance.now() - repairedAt) / 1000
  await injector.settled(stalled !== undefined)
  if (failures[0] !== undefined) throw failures[0]
  await site.targetHistory.reached()
  const lists = await Promise.all(site.targets.map((_, index) => listOf(site, index)))
  await eventually(
    'the observer has the last states',
    () => observer.hasReceived(lists[0] ?? []),
    observedMsMax,
  ).catch(() => {}) // The checker reports it.
  await observer.stop()
  say(
    `observer: ${observer.sightings.length} states, ${observer.watches} watches, ${observer.lists} lists`,
  )
  const history: RunHistory = {
    origin: site.mirrored(),
    target: site.targetHistory.changes,
    observers: [observer.sightings],
    lists,
    gaps: injector.gaps,
    deletes: scenario.deletes,
  }
  return {
    history,
    violations: [...(stalled === undefined ? [] : [stalled]), ...check(history)],
    faults,
    writes,
    seconds: (performance.now() - startedAt) / 1000,
    caughtUpSeconds,
    logs: site.targets.map(({ replica }) => replica.log),
  }
}

/** How far the mirror is, for those who read along. */
async function progress(site: Site): Promise<string> {
  const [elected, report] = await Promise.all([site.elected(), site.report()])
  const changes = site.mirrored()
  const behind = changes.filter(({ version }) => version > (report?.position ?? 0)).length
  const mirror = elected === undefined ? 'no mirror' : `replica ${elected} mirrors`
  return `${changes.length} changes, ${behind} behind, ${mirror}, ${report?.state} ${report?.message}`
}

function total({ creates, recreates, patches, deletes }: Writes): number {
  return creates + recreates + patches + deletes
}

/** Waits until the mirror reports that it follows and has everything, and all replicas say so. */
async function untilFollowing(site: Site): Promise<Violation | undefined> {
  await site.originHistory.reached()
  const wanted = new Map<string, number>()
  for (const { name, version } of site.mirrored()) {
    wanted.set(site.streamOf(name) ?? '', version)
  }
  let seen: unknown = 'nothing'
  try {
    await eventually(
      'the mirror follows',
      async () => {
        const report = await site.report()
        seen = report && { ...report, positions: [...report.positions] }
        if (report?.state !== 'Following') return false
        const isReached = ([stream, version]: readonly [string, number]) =>
          (report.positions.get(stream) ?? 0) >= version
        return [...wanted].every(isReached)
      },
      followingMsMax,
    )
    for (const index of site.targets.keys()) {
      await eventually(
        'a replica shows it',
        async () => {
          seen = await shownState(site, index).catch(String)
          return seen === 'Following'
        },
        followingMsMax,
      )
    }
    return undefined
  } catch {
    const message = `the origin is at ${JSON.stringify([...wanted])}, seen: ${JSON.stringify(seen)}`
    return { kind: 'stalled', message }
  }
}

/** The state of the mirror as `kubectl get clusters` shows it. */
async function shownState(site: Site, index: number): Promise<string> {
  using client = await clientOf(site, index)
  const path = `/apis/tidings.dev/v1alpha1/clusters/${targetCluster}`
  const { status, body } = await client.request({ path })
  if (status !== 200) return `${status} ${body}`
  return String(JSON.parse(body.toString()).status?.mirror?.state)
}

async function listOf(site: Site, index: number): Promise<readonly Sighting[]> {
  using client = await clientOf(site, index)
  return (await listAll(client)).items
}

function clientOf(site: Site, index: number) {
  const target = site.targets[index % site.targets.length]
  if (target === undefined) throw new Error('the target has no replicas')
  return target.replica.client(site.ca, token)
}
