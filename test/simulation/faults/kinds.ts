/**
 * What the faults of test/worlds/faults.ts do to the simulated world.
 */
import type { Random } from '../../support/random.ts'
import type { FaultOf } from '../../worlds/faults.ts'
import type { Cluster, Snapshot } from '../etcd/contract.ts'
import type { Bucket } from '../history/bucket.ts'
import type { OriginServer } from '../mirror/origin-server.ts'
import type { Direction, Network } from '../network/network.ts'
import type { Peers } from '../network/peers.ts'
import type { Replica } from '../replica.ts'
import type { Setting } from '../setting.ts'
import { type OriginFault, originFaultKinds } from './origin-kinds.ts'
import { type StoreFault, storeFaultKinds } from './store-kinds.ts'

/** The parts of the world that faults act on. */
export interface FaultTarget {
  readonly replicas: readonly Replica[]
  readonly cluster: Cluster
  readonly network: Network
  readonly peers: Peers
  readonly setting: Setting
  /** Taken when the storm began. */
  readonly snapshot: Snapshot | undefined
  /** Present only in a world with a mirrored cluster. */
  readonly origin: OriginServer | undefined
  /** Present only in a world with an archive. */
  readonly bucket: Bucket | undefined
  /** The replica that is elected to mirror, or to write the archive. */
  readonly electedReplica: number | undefined
  /** The version of the origin when the storm began. */
  readonly originBackup: number | undefined
  /** False when that is not possible. */
  restoreOrigin(version: number): boolean
  /** etcd is, or was until now, full. */
  noteFull(): void
  /**
   * False when the origin was restored since the snapshot: a mirror cannot know of it if etcd is
   * restored to a state from before.
   */
  readonly mayRestore: boolean
  after(ms: number, work: () => void): void
  crashMember(member: number): void
  /** Ends the processes of all members at once, for a restore. */
  endAllMembers(): void
}

/** What a fault did, and how to undo it; undefined: it passes by itself. */
export interface Begun {
  readonly what: string
  readonly end?: (() => void) | undefined
}

export interface FaultKind {
  /** How often it happens, relative to the others. */
  readonly weight: number
  /** Bounds of its duration in milliseconds. */
  readonly ms: readonly [number, number]
  /** The largest number in one storm. */
  readonly perStorm?: number
  /** Undefined when it is not possible now. */
  begin(target: FaultTarget, random: Random): Begun | undefined
}

const hour = 3_600_000
const day = 24 * hour

type EngineFault = Exclude<FaultOf<'simulated'>, OriginFault | StoreFault>

export const faultKinds: Readonly<Record<EngineFault, FaultKind>> = {
  'replica-crash': {
    weight: 3,
    ms: [0, 0],
    begin: ({ replicas }, random) => {
      const replica = oneOf(replicas, random)
      if (!replica.isUp) return undefined
      replica.crash('killed')
      return { what: replica.name }
    },
  },
  'replica-restart': {
    weight: 1,
    ms: [0, 0],
    begin: ({ replicas }, random) => {
      const replica = oneOf(replicas, random)
      if (!replica.isUp) return undefined
      replica.stopGracefully()
      return { what: replica.name }
    },
  },
  'replica-stop': {
    weight: 4,
    ms: [50, 20_000],
    begin: ({ replicas }, random) => {
      const replica = oneOf(replicas, random)
      const { process } = replica
      if (process?.isRunning !== true) return undefined
      process.stop()
      return { what: replica.name, end: () => process.resume() }
    },
  },
  'replica-suspend': {
    weight: 1,
    ms: [1_000, 60_000],
    begin: ({ replicas }, random) => {
      const replica = oneOf(replicas, random)
      const { process } = replica
      if (process?.isRunning !== true) return undefined
      process.suspend()
      return { what: replica.name, end: () => process.resume() }
    },
  },
  'replica-load': {
    weight: 2,
    ms: [500, 10_000],
    begin: ({ replicas }, random) => {
      const replica = oneOf(replicas, random)
      const { process } = replica
      if (process === undefined) return undefined
      process.loadMs = random.pick([0.05, 0.5, 5]) * random.between(0.5, 1)
      return {
        what: `${replica.name} needs ${process.loadMs.toFixed(2)} ms for each event`,
        end: () => {
          process.loadMs = 0
        },
      }
    },
  },
  'clock-jump': {
    weight: 3,
    ms: [0, 0],
    begin: ({ replicas, setting }, random) => {
      // Ages are not measured while the clocks of the world are wrong.
      if (setting.mirror?.needsClocks || setting.history?.areClocksExact) return undefined
      const replica = oneOf(replicas, random)
      const ms = random.pick([1_000, hour, day]) * random.between(-1, 1)
      if (replica.process === undefined) return undefined
      replica.process.jump(ms)
      return { what: `${replica.name} by ${Math.round(ms)} ms` }
    },
  },
  'member-crash': {
    weight: 4,
    ms: [200, 15_000],
    begin: (target, random) => {
      const member = memberOf(target, random)
      if (!target.network.member(member).isUp) return undefined
      target.crashMember(member)
      return { what: `etcd-${member}`, end: () => target.cluster.restart(member) }
    },
  },
  'members-crash': {
    weight: 0.5,
    ms: [200, 15_000],
    begin: (target) => {
      const all = [...target.cluster.members.keys()]
      for (const member of all) if (target.network.member(member).isUp) target.crashMember(member)
      const end = () => {
        for (const member of all) {
          if (!target.network.member(member).isUp) target.cluster.restart(member)
        }
      }
      return { what: 'all members', end }
    },
  },
  'member-stop': {
    weight: 4,
    ms: [50, 20_000],
    begin: (target, random) => {
      const member = memberOf(target, random)
      if (!target.network.member(member).isUp) return undefined
      target.cluster.pause(member)
      target.network.memberStopped(member)
      const end = () => {
        target.network.memberResumed(member)
        target.cluster.resume(member)
      }
      return { what: `etcd-${member}`, end }
    },
  },
  'leader-move': {
    weight: 2,
    ms: [0, 0],
    begin: (target, random) => {
      const member = memberOf(target, random)
      const { leader } = target.cluster
      if (leader === undefined || leader === member) return undefined
      if (!target.network.member(member).isUp) return undefined
      target.cluster.moveLeader(member)
      return { what: `to etcd-${member}` }
    },
  },
  'link-cut': {
    weight: 5,
    ms: [50, 20_000],
    begin: (target, random) => cutLinks(target, random, ['toMember', 'toReplica']),
  },
  'link-cut-one-way': {
    weight: 5,
    ms: [50, 20_000],
    begin: (target, random) => cutLinks(target, random, [random.pick(['toMember', 'toReplica'])]),
  },
  'link-slow': {
    weight: 4,
    ms: [500, 10_000],
    begin: (target, random) => {
      const most = random.pick([5, 100, 2_000])
      const links = someLinks(target, random)
      for (const [replica, member] of links)
        target.network.delay(replica, member, { least: 0, most })
      const end = () => {
        for (const [replica, member] of links) target.network.delay(replica, member)
      }
      return { what: `${describe(links)} up to ${most} ms`, end }
    },
  },
  reset: {
    weight: 12,
    ms: [0, 0],
    begin: (target, random) => {
      const replica = random.chance(0.3) ? undefined : oneOf(target.replicas, random).index
      const share = random.pick([0.2, 0.5, 1])
      const count = target.network.resetSome(
        (from) => (replica === undefined || replica === from) && random.chance(share),
      )
      return count === 0 ? undefined : { what: `${count} connections` }
    },
  },
  'peer-cut': {
    weight: 4,
    ms: [100, 15_000],
    begin: ({ peers, cluster }, random) => {
      const all = cluster.members.length
      const member = random.chance(0.5) ? cluster.leader : random.below(all)
      if (member === undefined || all === 1) return undefined
      const undo = random.chance(0.7)
        ? peers.isolate(member)
        : peers.block(member, (member + 1) % all)
      cluster.networkChanged()
      const end = () => {
        undo()
        cluster.networkChanged()
      }
      return { what: `etcd-${member}`, end }
    },
  },
  'peer-slow': {
    weight: 2,
    ms: [500, 10_000],
    begin: ({ peers }, random) => {
      const most = random.pick([5, 50, 300])
      peers.slow({ least: 0, most })
      return { what: `up to ${most} ms`, end: () => peers.slow() }
    },
  },
  full: {
    weight: 0.6,
    ms: [1_000, 20_000],
    begin: (target) => {
      const { cluster, setting } = target
      cluster.setQuota(1)
      target.noteFull()
      const end = () => {
        target.noteFull()
        cluster.setQuota(setting.quotaBytes)
        cluster.disarm()
      }
      return { what: 'the space quota is used up', end }
    },
  },
  restore: {
    weight: 0.4,
    ms: [0, 0],
    perStorm: 1,
    begin: (target) => restore(target, 0),
  },
  'restore-bumped': {
    weight: 0.3,
    ms: [0, 0],
    perStorm: 1,
    begin: (target) => restore(target, 1_000_000),
  },
}

export const faultNames: readonly string[] = Object.keys(faultKinds)

export const mirrorFaultNames: readonly string[] = [...faultNames, ...Object.keys(originFaultKinds)]

/** Not restores of etcd: what was archived since the backup would be archived again. */
export const historyFaultNames: readonly string[] = [
  ...faultNames.filter((name) => !name.startsWith('restore')),
  ...Object.keys(storeFaultKinds),
  'elected-suspend',
]

function restore(target: FaultTarget, bump: number): Begun | undefined {
  const { snapshot, mayRestore } = target
  if (snapshot === undefined || !mayRestore) return undefined
  target.endAllMembers()
  target.cluster.restore(snapshot, { bump })
  return { what: `of revision ${snapshot.revision}, revisions bumped by ${bump}` }
}

function oneOf(replicas: readonly Replica[], random: Random): Replica {
  return random.pick(replicas as [Replica, ...Replica[]])
}

function memberOf({ cluster }: FaultTarget, random: Random): number {
  const { leader } = cluster
  return leader !== undefined && random.chance(0.4) ? leader : random.below(cluster.members.length)
}

type LinkEnds = readonly [replica: number, member: number]

/** One link, all links of one replica, or all links of one member. */
function someLinks({ replicas, cluster }: FaultTarget, random: Random): readonly LinkEnds[] {
  const replica = random.below(replicas.length)
  const member = random.below(cluster.members.length)
  const kind = random.below(3)
  if (kind === 0) return [[replica, member]]
  if (kind === 1) return [...cluster.members.keys()].map((other) => [replica, other] as const)
  return replicas.map(({ index }) => [index, member] as const)
}

function cutLinks(target: FaultTarget, random: Random, directions: readonly Direction[]): Begun {
  const links = someLinks(target, random)
  const each = (act: (replica: number, member: number, direction: Direction) => void) => {
    for (const [replica, member] of links) {
      for (const direction of directions) act(replica, member, direction)
    }
  }
  const { network } = target
  each((replica, member, direction) => network.block(replica, member, direction))
  const end = () =>
    each((replica, member, direction) => network.unblock(replica, member, direction))
  return { what: `${describe(links)} ${directions.join(' and ')}`, end }
}

function describe(links: readonly LinkEnds[]): string {
  return links.map(([replica, member]) => `replica-${replica}/etcd-${member}`).join(', ')
}
