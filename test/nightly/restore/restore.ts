/**
 * Restores the etcd of running replicas from a snapshot, and checks their responses.
 *
 * There are two histories. The first one ends when etcd was killed; the second one begins with the
 * snapshot and continues without the changes that were made after it. Before any replica connects
 * to the second history, that has reached the last revision of the first one, or a later one:
 * revisions alone do not distinguish the two.
 */

import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { EtcdProcess } from '../../../src/dev/etcd-process.ts'
import { aLane } from '../../../src/lib/run-queue.fixture.ts'
import { etcdBinary, etcdctlBinary, etcdutlBinary } from '../../support/etcd.ts'
import { eventually } from '../../support/eventually.ts'
import { Replicas } from '../../support/replicas.ts'
import { prefix, Replica } from '../../support/storage.ts'
import { eventBody, eventKey } from '../../support/stored-events.ts'
import { makeEvent, type WireEvent, type WireList } from '../../support/wire-event.ts'
import { namespace, Witness } from './witness.ts'

export const activities = ['idle', 'paused', 'busy'] as const
export type Activity = (typeof activities)[number]

export interface Scenario {
  /** What the replicas do while etcd is restored. */
  readonly activity: Activity
  /** The restore uses --bump-revision and --mark-compacted. */
  readonly isBumped: boolean
  /** How many revisions the second history is ahead of the first when replicas connect to it. */
  readonly ahead: number
}

export interface Report {
  /**
   * Revisions: at the snapshot, the last of the first history, and when replicas connected to the
   * second.
   */
  readonly revisions: readonly [number, number, number]
  readonly replicasEnded: number
  readonly answers: number
  /** Responses from the first history to requests sent after a replica had reported ready. */
  readonly wrongWhileReady: number
  /** Responses from the first history to consistent reads and to writes. */
  readonly wrongPresent: number
  /** Watches that delivered changes of both histories. */
  readonly mixedWatches: number
  /** The time from the restore until all replicas were ready and had exactly the state of etcd. */
  readonly consistentAfterMs: number | undefined
  readonly examples: readonly string[]
}

const run = promisify(execFile)
const replicaCount = 2
const consistentMsMax = 60_000
const kept = 20
const changed = 5

export async function restore(scenario: Scenario): Promise<Report> {
  await using replicas = await Replicas.start(replicaCount, [`--etcd-prefix=${prefix}`])
  const member = replicas.etcd.member(0)
  const snapshot = join(replicas.folder, 'snapshot.db')
  await using direct = new Replica(replicas.etcd)
  using first = await replicas.client(0)
  for (const name of names('kept', kept)) await first.create(made(name, 'both'))
  for (const name of names('gone', changed)) await first.create(made(name, 'both'))
  await first.create(made('shared', 'both'))

  await etcdctl(member.endpoint, 'snapshot', 'save', snapshot)
  const savedAt = await direct.revision()
  // In both histories the first change after the snapshot is one of the same event.
  await first.patch(namespace, 'shared', { type: 'merge-patch', patch: labelled('first') })
  for (const name of names('gone', changed)) await first.delete(namespace, name)
  for (const name of names('lost', changed)) await first.create(made(name, 'first'))

  const witnesses = Array.from({ length: replicaCount }, (_, index) => new Witness(index))
  await Promise.all(witnesses.map((witness) => witness.attend(replicas)))
  const busy = new AbortController()
  const isBusy = scenario.activity === 'busy'
  if (isBusy) for (const witness of witnesses) witness.write(busy.signal)
  await sleep(isBusy ? 1_000 : 300)
  const signalPaused = (signal: NodeJS.Signals) => {
    if (scenario.activity !== 'paused') return
    for (const { server } of witnesses) server.kill(signal)
  }
  signalPaused('SIGSTOP')

  const lastOfFirst = await direct.revision()
  await member.kill()
  const met = await second(replicas, { snapshot, scenario, lastOfFirst })
  const metAtMs = performance.now()
  for (const witness of witnesses) witness.secondBegan(metAtMs)
  await member.start()
  signalPaused('SIGCONT')
  const supervising = witnesses.map((witness) => witness.supervise(replicas))
  const isConsistent = async () => {
    const lists = await Promise.all(witnesses.map((witness) => witness.everything()))
    const there = await direct.storage.list(
      { cluster: 'local', namespace },
      { lane: aLane(), limit: 10_000, signal: forever },
    )
    const wanted = there.items.map(({ key, version }) => `${key.name} ${version}`).join()
    return lists.every((list) => list !== undefined && describe(list) === wanted)
  }
  await sleep(3_000)
  busy.abort()
  let consistentAfterMs: number | undefined
  try {
    await eventually('replicas have the state of etcd', isConsistent, consistentMsMax)
    consistentAfterMs = performance.now() - metAtMs
  } catch {}
  for (const witness of witnesses) witness.leave()
  await Promise.all(supervising)
  return {
    revisions: [savedAt, lastOfFirst, met],
    replicasEnded: sum(witnesses, ({ endings }) => endings),
    answers: sum(witnesses, ({ answers }) => answers),
    wrongWhileReady: sum(witnesses, ({ wrongWhileReady }) => wrongWhileReady),
    wrongPresent: sum(witnesses, ({ wrongPresent }) => wrongPresent),
    mixedWatches: sum(witnesses, ({ mixedWatches }) => mixedWatches),
    consistentAfterMs: consistentAfterMs === undefined ? undefined : Math.round(consistentAfterMs),
    examples: witnesses.flatMap(({ examples }) => examples),
  }
}

/** What is wrong with the report, if anything. */
export function complaints(report: Report): readonly string[] {
  return [
    ...(report.wrongWhileReady === 0 ? [] : ['responses from another history while ready']),
    ...(report.wrongPresent === 0 ? [] : ['consistent reads or writes from another history']),
    ...(report.mixedWatches === 0 ? [] : ['watches with changes of two histories']),
    ...(report.consistentAfterMs === undefined ? ['replicas and etcd disagree at the end'] : []),
  ]
}

/** Restores, and writes on a port that no replica knows. Returns the revision it has reached. */
async function second(
  replicas: Replicas,
  options: { readonly snapshot: string; readonly scenario: Scenario; readonly lastOfFirst: number },
): Promise<number> {
  const { snapshot, scenario, lastOfFirst } = options
  const member = replicas.etcd.member(0)
  await rm(member.dataDir, { recursive: true })
  const peer = `http://127.0.0.1:${member.ports.peer}`
  await run(etcdutlBinary, [
    ...['snapshot', 'restore', snapshot, `--data-dir=${member.dataDir}`, '--name=m0'],
    ...[`--initial-cluster=m0=${peer}`, `--initial-advertise-peer-urls=${peer}`],
    ...(scenario.isBumped ? ['--bump-revision=1000000', '--mark-compacted'] : []),
  ])
  const etcd = await EtcdProcess.start({
    binary: etcdBinary,
    name: 'm0',
    dataDir: member.dataDir,
    ports: { ...member.ports, client: member.ports.metrics, metrics: member.ports.client },
    cluster: [{ name: 'm0', peerPort: member.ports.peer }],
    args: ['--unsafe-no-fsync'],
  })
  try {
    await using direct = new Replica({ endpoints: [etcd.endpoint] })
    const { storage } = direct
    const shared = eventKey(namespace, 'shared')
    const body = (name: string) =>
      eventBody(eventKey(namespace, name), '', { labels: { history: 'second' } })
    await storage.update(shared, () => body('shared'))
    // A busy replica continued for a moment after the revision was read.
    const wanted = lastOfFirst + scenario.ahead + (scenario.activity === 'busy' ? 500 : 0)
    for (let index = 0; index < changed; index++) {
      await storage.create(eventKey(namespace, `new-${index}`), body(`new-${index}`))
    }
    let revision = await direct.revision()
    const padding = eventKey('padding', randomUUID())
    while (revision < wanted) {
      await storage.update(padding, () => eventBody(padding, `${revision}`))
      revision++
    }
    return await direct.revision()
  } finally {
    await etcd.stop()
  }
}

function describe(list: WireList): string {
  return list.items.map(({ metadata }) => `${metadata.name} ${metadata.resourceVersion}`).join()
}

function names(prefix: string, count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}-${index}`)
}

function made(name: string, history: string): WireEvent {
  return makeEvent(namespace, name, { labels: { history } })
}

function labelled(history: string): unknown {
  return { metadata: { labels: { history } } }
}

async function etcdctl(endpoint: string, ...args: readonly string[]): Promise<void> {
  await run(etcdctlBinary, [`--endpoints=${endpoint}`, ...args])
}

function sum(witnesses: readonly Witness[], count: (witness: Witness) => number): number {
  return witnesses.reduce((total, witness) => total + count(witness), 0)
}

const forever: AbortSignal = new AbortController().signal
