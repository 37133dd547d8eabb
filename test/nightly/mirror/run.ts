/**
 * Mirrors a real Kubernetes through restarts, pauses and compactions on both sides, and compares
 * what is served with what an independent observer saw at the origin.
 *
 *   KUBE_APISERVER=/path/to/kube-apiserver npm test -- mirror         ten minutes
 *   KUBE_APISERVER=/path/to/kube-apiserver npm test -- mirror 3       three minutes
 *
 * kube-controller-manager and kube-scheduler are found beside it, or by KUBE_CONTROLLER_MANAGER and
 * KUBE_SCHEDULER. Prints a summary, and exits with 1 when a state is wrong. At least three minutes
 * are needed for events to expire at the origin.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { versionOf } from '../../../tools/other-etcds.ts'
import { etcdBinary } from '../../support/etcd.ts'
import { missingOfKubernetes } from '../../support/kubernetes.ts'
import {
  type CoreEvent,
  differences,
  type Fault,
  orderFaults,
  reappeared,
  wrongStates,
} from './check.ts'
import { type FaultKind, faultKinds, inject } from './faults.ts'
import { OriginObserver, TargetObserver } from './observers.ts'
import { runControllers } from './real-writers.ts'
import { Session } from './session.ts'
import { eventTtlSeconds, mirrors, Site } from './site.ts'
import { Writers } from './writers.ts'

const [minutesText = '10'] = process.argv.slice(2)
const faultPauseMs = 5_000
const settleMsMax = 120_000
const checkEveryMs = 3_000
const deletedAtOnce = 100
const writtenNamespaces = ['w-0', 'w-1', 'w-2', 'ending']

const missing = missingOfKubernetes()
if (missing !== undefined) {
  say(`Skipped: a mirror of a real Kubernetes was NOT tested, since ${missing}.`)
  process.exit(0)
}
await using site = await Site.start()
await printVersions()

const ending = new AbortController()
const writing = new AbortController()
const observer = new OriginObserver(eventTtlSeconds * 1000)
const writers = new Writers(site.origin, observer, writtenNamespaces)
const targets = Object.keys(mirrors).map((name) => ({ name, seen: new TargetObserver() }))
const observing = [
  observer.run(site.origin, ending.signal),
  ...targets.map(({ name, seen }) => seen.run(eventsPath(name), site.target, ending.signal)),
]
const background = Promise.all([
  ...observing,
  writers.run(writing.signal),
  runControllers(site.origin, 'real', writing.signal),
])
background.catch((error: unknown) => {
  say(`The test itself failed: ${error instanceof Error ? error.stack : error}`)
  process.exit(2)
})

const faults = await faultsFor(Number(minutesText) * 60_000)
writing.abort()
const wrong = await settled()
say('Deletes of young events, without faults')
observer.mustSeeDeletes = true
await new Writers(site.origin, observer, ['w-0']).createAndDelete(deletedAtOnce)
wrong.push(...(await settled()))
for (const { name, seen } of targets) {
  wrong.push(...orderFaults(seen.changes).map((fault) => inMirror(name, fault)))
}
ending.abort()
printSummary()
// Watches may still wait for a response.
await site[Symbol.asyncDispose]()
process.exit(wrong.length === 0 ? 0 : 1)

async function faultsFor(ms: number): Promise<Map<FaultKind, number>> {
  const done = new Map<FaultKind, number>(faultKinds.map((kind) => [kind, 0]))
  const startedAt = performance.now()
  for (let index = 0; performance.now() < startedAt + ms; index++) {
    await sleep(faultPauseMs)
    const kind = faultKinds[index % faultKinds.length] ?? faultKinds[0]
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(0)
    say(`${seconds.padStart(4)} s  ${kind}`)
    await inject(kind, site, writers)
    done.set(kind, (done.get(kind) ?? 0) + 1)
    // The namespace ends with its events, which the mirrors keep.
    if (index === faultKinds.length) await deleteNamespace('ending')
  }
  return done
}

/** Compares until nothing differs, or long enough that it never will. */
async function settled(): Promise<Fault[]> {
  const deadline = performance.now() + settleMsMax
  using session = new Session(site.target)
  for (;;) {
    const found: Fault[] = []
    for (const [name, options] of Object.entries(mirrors)) {
      const { items } = await session.read<{ items: CoreEvent[] }>(eventsPath(name))
      const faultsHere = differences(observer.states, items, options)
      found.push(...faultsHere.map((fault) => inMirror(name, fault)))
    }
    if (found.length === 0 || performance.now() > deadline) return found
    await sleep(checkEveryMs)
  }
}

async function deleteNamespace(name: string): Promise<void> {
  const path = `/api/v1/namespaces/${name}`
  const { status } = await site.kubernetes.api.ask('DELETE', path)
  say(`        namespace ${name} deleted: ${status}`)
}

async function printVersions(): Promise<void> {
  const { body } = await site.kubernetes.api.ask('GET', '/version')
  const { major, minor, gitVersion, goVersion } = JSON.parse(body)
  const etcd = versionOf(etcdBinary)
  say(
    `Kubernetes ${major}.${minor} (${gitVersion}, ${goVersion}), etcd ${etcd}, Node ${process.version}`,
  )
}

function printSummary(): void {
  const { counts } = writers
  const shown = targets.flatMap(({ seen }) => seen.changes)
  const again = targets.reduce((sum, { seen }) => sum + reappeared(seen.changes), 0)
  const rows: (readonly [string, number | string])[] = [
    ['events that existed at the origin', observer.states.size],
    ['puts seen at the origin', observer.counts.puts],
    ['creates by test clients', counts.creates],
    ['of them under a name used before', counts.recreates],
    ['patches by test clients', counts.patches],
    ['deletes by test clients', counts.deletes],
    ['deletes seen at the origin, other than expiry', observer.counts.deleted],
    ['events that expired at the origin', observer.counts.expired],
    ['requests of test clients that failed', counts.failed],
    ...[...faults].map(([kind, count]) => [kind, count] as const),
    [
      'failed requests of mirrors to the origin',
      site.total('tidings_mirror_origin_failures_total'),
    ],
    ['of them 410', expiredPositions()],
    ['lists from the start by mirrors', site.total('tidings_mirror_lists_total')],
    ['watches by mirrors', site.total('tidings_mirror_watches_total')],
    ['fenced writes', site.total('tidings_mirror_fenced_writes_total')],
    ['repeated writes', site.total('tidings_mirror_retries_total')],
    ['changes seen in watches of the mirrors', shown.length],
    ['of them deletes', shown.filter(({ version }) => version === undefined).length],
    ['events that reappeared until deleted again', again],
    ...wrongStates.map((kind) => [`WRONG: ${kind}`, countOf(kind)] as const),
  ]
  for (const [what, count] of rows) say(`${what.padEnd(50)} ${count}`)
  for (const { kind, key, detail } of wrong.slice(0, 30)) say(`  ${kind}: ${key}: ${detail}`)
}

function inMirror(name: string, fault: Fault): Fault {
  return { ...fault, key: `${name}: ${fault.key}` }
}

function countOf(kind: Fault['kind']): number {
  return wrong.filter((fault) => fault.kind === kind).length
}

function expiredPositions(): number {
  const kinds = Object.keys(mirrors).map(
    (name) => `tidings_mirror_origin_failures_total{cluster="${name}",kind="expired"}`,
  )
  return kinds.reduce((sum, name) => sum + site.total(name), 0)
}

function eventsPath(mirror: string): string {
  return `/clusters/${mirror}/api/v1/events`
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
