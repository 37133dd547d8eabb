/**
 * Upgrades the three members of etcd one by one to each newer minor version that is there, and
 * downgrades them again, while replicas of this tree serve: `npm test -- etcd-upgrade`.
 *
 * Every acknowledged write must survive, every watcher must receive each change once, and no read may
 * be older than what was read before.
 */
import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { otherEtcds, versionOf } from '../../../tools/other-etcds.ts'
import { type EtcdMember, etcdBinary } from '../../support/etcd.ts'
import { eventually } from '../../support/eventually.ts'
import { checkMembersAgree } from '../chaos/members.ts'
import { Fleet } from '../rolling/fleet.ts'
import { UpgradeLoad } from './load.ts'

interface Release {
  readonly version: string
  readonly binary: string
}

interface MemberStatus {
  readonly version: string
  /** The version of the data; etcd 3.5 does not say it. */
  readonly storageVersion?: string
  readonly header: { readonly revision: string }
  readonly raftAppliedIndex: string
}

const LOAD = { writers: 12, listers: 2, watchers: 6, allowsOutages: true, watchSeconds: 20 }
/** Some seconds of this load. */
const SNAPSHOT_COUNT = 250
/** Between two members, and after all of them. */
const REST_MS = 3_000
/** etcd looks at the versions of its members every 4 s, and at its storage every 5 s. */
const DECISION_MS_MAX = 60_000
const POLL_MS = 250

const usual = { version: versionOf(etcdBinary), binary: etcdBinary }
const newer = otherEtcds.map(({ version, program }) => ({ version, binary: program }))
assert.ok(newer.length > 0, 'did NOT run: there is no other etcd to upgrade to')
const up = [usual, ...newest(newer)]
const way = [...up.slice(1), ...up.slice(0, -1).reverse()]

await using fleet = await Fleet.start({
  etcd: { members: 3, args: [`--snapshot-count=${SNAPSHOT_COUNT}`] },
})
const { etcd } = fleet
using load = new UpgradeLoad(fleet, LOAD)
await load.start()
await sleep(REST_MS)
print(`etcd ${usual.version}: ${await describeMembers()}`)
let current: Release = usual
for (const next of way) {
  const startedAt = performance.now()
  if (isOlder(next, current)) await allowDowngrade(next)
  else await untilSnapshots()
  for (const member of etcd.members) {
    await replace(member, next)
    await sleep(REST_MS)
  }
  await settle(next)
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(0)
  print(`etcd ${next.version}, after ${seconds} s: ${await describeMembers()}`)
  current = next
}
const report = await load.end(way.length * etcd.members.length)
print(
  `${report.requests} requests: ${report.events} events and ${report.deleted} deleted ones with ` +
    `${report.changes} changes, ${report.lists} complete lists; ${report.unavailable} requests ` +
    `refused and repeated, ${report.doubtful} writes with an unknown outcome; ` +
    `${report.watches.resumed} watches resumed, ${report.watches.received} changes received`,
)
for (const fault of report.faults) print(`FAULT ${fault}`)
if (report.faults.length > 0) process.exitCode = 1
else print('nothing lost, nothing back, nothing duplicated or out of order, no read back in time')

/** The newest patch of each minor version: etcd is upgraded by one minor version at a time. */
function newest(releases: readonly Release[]): readonly Release[] {
  return [...new Map(releases.map((release) => [minorOf(release), release])).values()]
}

function minorOf({ version }: Release): string {
  return version.split('.').slice(0, 2).join('.')
}

function isOlder(one: Release, other: Release): boolean {
  return one.version.localeCompare(other.version, 'en', { numeric: true }) < 0
}

async function replace(member: EtcdMember, { binary, version }: Release): Promise<void> {
  await member.stop()
  await member.start({ binary })
  assert.equal((await statusOf(member)).version, version)
}

/**
 * etcd 3.7 cannot read entries of the log that 3.5 wrote: each member must have made a snapshot after the
 * last of them.
 */
async function untilSnapshots(): Promise<void> {
  const indexes = (await Promise.all(etcd.members.map(statusOf))).map(({ raftAppliedIndex }) =>
    Number(raftAppliedIndex),
  )
  const isDone = async () => {
    await sleep(POLL_MS)
    const newest = await Promise.all(etcd.members.map(snapshotIndex))
    return newest.every((index, number) => index >= (indexes[number] ?? 0))
  }
  await eventually('all members have made a snapshot', isDone, DECISION_MS_MAX)
}

/** The index of the newest snapshot of a member, which is in the name of its file. */
async function snapshotIndex({ dataDir }: EtcdMember): Promise<number> {
  const names = await readdir(join(dataDir, 'member/snap'))
  const found = names.map((name) => /^[0-9a-f]{16}-([0-9a-f]{16})\.snap$/.exec(name)?.[1] ?? '0')
  return Math.max(0, ...found.map((text) => Number.parseInt(text, 16)))
}

/** Every member converts its data; only then an older program may read them. */
async function allowDowngrade(target: Release): Promise<void> {
  const version = `${minorOf(target)}.0`
  await ask(etcd.member(0), '/v3/maintenance/downgrade', { action: 'ENABLE', version })
  const isConverted = async () => {
    await sleep(POLL_MS)
    const all = await Promise.all(etcd.members.map(statusOf))
    return all.every(({ storageVersion }) => storageVersion === version)
  }
  await eventually('the data are converted', isConverted, DECISION_MS_MAX)
}

/** All members have agreed on the version of the cluster, and a downgrade is over. */
async function settle(release: Release): Promise<void> {
  const isSettled = async () => {
    await sleep(POLL_MS)
    const all = await Promise.all(
      etcd.members.map(async ({ endpoint, ports }) => {
        const version = await (await fetch(`${endpoint}/version`)).text()
        const downgrade = await fetch(`http://127.0.0.1:${ports.peer}/downgrade/enabled`)
        return `${JSON.parse(version).etcdcluster} ${(await downgrade.text()).trim()}`
      }),
    )
    return all.every((each) => each === `${minorOf(release)}.0 false`)
  }
  await eventually(`the cluster is ${minorOf(release)}`, isSettled, DECISION_MS_MAX)
  await sleep(REST_MS)
}

/** Fails unless all members have the same data. */
async function describeMembers(): Promise<string> {
  const all = await Promise.all(etcd.members.map(statusOf))
  const revision = Math.min(...all.map(({ header }) => Number(header.revision)))
  assert.deepEqual(await checkMembersAgree(etcd.endpoints, revision), [])
  const [{ storageVersion } = {}] = all
  const stored = storageVersion === undefined ? '' : `, data of ${storageVersion}`
  return `${all.length} members with equal data at revision ${revision}${stored}`
}

function statusOf(member: EtcdMember): Promise<MemberStatus> {
  return ask(member, '/v3/maintenance/status', {})
}

/** Calls etcd through its gateway, since its etcdctl may be older than itself. */
async function ask<T>({ endpoint }: EtcdMember, path: string, body: object): Promise<T> {
  const response = await fetch(`${endpoint}${path}`, { method: 'POST', body: JSON.stringify(body) })
  const text = await response.text()
  assert.equal(response.status, 200, `${path}: ${text}`)
  return JSON.parse(text)
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
