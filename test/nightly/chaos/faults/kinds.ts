import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { pause } from '../../../../src/lib/abort.ts'
import type { Random } from '../../../support/random.ts'
import type { FaultOf } from '../../../worlds/faults.ts'
import type { Replica } from '../replica.ts'
import type { Cluster } from './cluster.ts'

/** What a fault acts on. Everything that it does to the cluster is repaired after it. */
export interface Victims {
  readonly cluster: Cluster
  readonly replicas: readonly Replica[]
  readonly random: Random
  /** The member that leads; any member when no leader is known. */
  leader(): Promise<number>
}

/** Breaks something, waits for the duration of the fault, and returns a description. */
export type Fault = (victims: Victims) => Promise<string>

/**
 * etcd elects after 1 to 2 s without a leader, so these last from too short for that to well over.
 */
const momentMs = { least: 50, most: 400 }
const shortMs = { least: 200, most: 1_000 }
const longMs = { least: 1_000, most: 5_000 }
/**
 * After some 4 s etcd counts as unavailable and every request is rejected; a much longer loss of
 * the majority tests nothing more.
 */
const withoutMajorityMs = { least: 500, most: 6_000 }

export const effects: Readonly<Record<FaultOf<'chaos'>, Fault>> = {
  'member-crash': async (victims) => {
    const member = await anyMember(victims)
    await victims.cluster.member(member).kill()
    const ms = await last(victims, longMs)
    await victims.cluster.member(member).start()
    return `killed member ${member} for ${ms} ms`
  },

  'leader-crash': async (victims) => {
    const leader = await victims.leader()
    await victims.cluster.member(leader).kill()
    await pause(victims.random.between(0, 50))
    await victims.cluster.member(leader).start()
    return `killed the leader, member ${leader}, and started it at once`
  },

  'majority-crash': async (victims) => {
    const members = twoOf(victims)
    await Promise.all(members.map((member) => victims.cluster.member(member).kill()))
    const ms = await last(victims, withoutMajorityMs)
    await Promise.all(members.map((member) => victims.cluster.member(member).start()))
    return `killed members ${members.join(' and ')} for ${ms} ms`
  },

  'members-crash': async ({ cluster }) => {
    await Promise.all(cluster.members.map((member) => member.kill()))
    await Promise.all(cluster.members.map((member) => member.start()))
    return 'killed all members and started them again'
  },

  'member-stop': async (victims) => {
    const member = await anyMember(victims)
    victims.cluster.member(member).pause()
    const ms = await last(victims, longMs)
    return `paused member ${member} for ${ms} ms`
  },

  'majority-stop': async (victims) => {
    const members = twoOf(victims)
    for (const member of members) victims.cluster.member(member).pause()
    const ms = await last(victims, withoutMajorityMs)
    return `paused members ${members.join(' and ')} for ${ms} ms`
  },

  'peer-cut': async (victims) => {
    const member = await anyMember(victims)
    for (const peer of peersOf(member, victims)) await lose(victims, member, peer)
    const ms = await last(victims, longMs)
    return `cut member ${member} off from its peers for ${ms} ms`
  },

  'link-cut': async (victims) => {
    const member = await anyMember(victims)
    await lose(victims, member, 'clients')
    const ms = await last(victims, longMs)
    return `cut member ${member} off from clients for ${ms} ms`
  },

  'member-cut-off': async (victims) => {
    const member = await anyMember(victims)
    for (const other of [...peersOf(member, victims), 'clients'] as const) {
      await lose(victims, member, other)
    }
    const ms = await last(victims, longMs)
    return `cut member ${member} off from peers and clients for ${ms} ms`
  },

  'peer-link-cut': async (victims) => {
    const [one = 0, other = 1] = twoOf(victims)
    await lose(victims, one, other)
    const ms = await last(victims, longMs)
    return `cut the link between members ${one} and ${other} for ${ms} ms`
  },

  'peer-cut-one-way': async (victims) => {
    const member = await anyMember(victims)
    for (const peer of peersOf(member, victims)) await victims.cluster.network.lose(member, peer)
    const ms = await last(victims, longMs)
    return `nothing from member ${member} reached its peers for ${ms} ms`
  },

  'replies-lost': async (victims) => {
    const { network, members } = victims.cluster
    const times = 2 + victims.random.below(4)
    for (let time = 0; time < times; time++) {
      for (const { index } of members) await network.lose(index, 'clients')
      await last(victims, momentMs)
      // A late reply would still arrive: close its connection.
      for (const { index } of members) await network.cutConnections(index)
      for (const { index } of members) await network.restore(index, 'clients')
      await last(victims, momentMs)
    }
    return `lost all replies to clients and cut their connections, ${times} times`
  },

  reset: async (victims) => {
    const { network, members } = victims.cluster
    const times = 1 + victims.random.below(5)
    for (let time = 0; time < times; time++) {
      for (const { index } of members) await network.cutConnections(index)
      await last(victims, shortMs)
    }
    return `cut the connections of clients ${times} times`
  },

  'disk-slow': async (victims) => {
    const member = await victims.leader()
    const tracer = slowDown(victims.cluster.member(member).pid)
    const ms = await last(victims, longMs)
    tracer.kill('SIGINT')
    if (tracer.exitCode === null && tracer.signalCode === null) await once(tracer, 'exit')
    return `delayed every write to disk of the leader, member ${member}, for ${ms} ms`
  },

  'replica-crash': async (victims) => {
    const index = victims.random.below(victims.replicas.length)
    await victims.replicas[index]?.crash()
    const ms = await last(victims, shortMs)
    return `crashed replica ${index} and started another, ${ms} ms`
  },
}

/** The leader in half of the cases, since that matters most. */
async function anyMember(victims: Victims): Promise<number> {
  const { random, cluster } = victims
  return random.chance(0.5) ? await victims.leader() : random.below(cluster.members.length)
}

function twoOf({ random, cluster }: Victims): readonly number[] {
  const spared = random.below(cluster.members.length)
  return cluster.members.map(({ index }) => index).filter((index) => index !== spared)
}

function peersOf(member: number, { cluster }: Victims): readonly number[] {
  return cluster.members.map(({ index }) => index).filter((index) => index !== member)
}

async function lose(
  { cluster }: Victims,
  member: number,
  other: number | 'clients',
): Promise<void> {
  await cluster.network.lose(member, other)
  await cluster.network.lose(other, member)
}

async function last(
  { random }: Victims,
  ms: { readonly least: number; readonly most: number },
): Promise<number> {
  const chosen = Math.round(random.between(ms.least, ms.most))
  await pause(chosen)
  return chosen
}

/** Delays each fsync of the process; ends when it is interrupted. */
function slowDown(pid: number): ChildProcess {
  const delayUs = 300_000
  const inject = `inject=fdatasync,fsync:delay_enter=${delayUs}`
  const args = ['-f', '-q', '-e', 'trace=fdatasync,fsync', '-e', inject, '-p', String(pid)]
  return spawn('strace', ['-o', '/dev/null', ...args], { stdio: 'ignore' })
}
