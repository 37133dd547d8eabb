/** The simulated etcd: a cluster of members with one shared history. See contract.ts. */
import type {
  Change,
  Cluster,
  ClusterObserver,
  ClusterOptions,
  PeerNetwork,
  Snapshot,
} from './contract.ts'
import { type Command, Machine, type MachineCopy } from './machine.ts'
import { type MemberCluster, SimulatedMember } from './member.ts'
import { MemberProcess } from './process.ts'
import type { RaftNode, RaftState } from './raft/raft.ts'
import type { Entry } from './raft/raft-log.ts'
import type { ReadGate } from './raft/read-gate.ts'
import { type KeyRecord, type StoredChange, type Version, valueIn } from './store/store.ts'

/** A response that is larger than a request may be is cut into fragments. */
const fragmentBytesDefault = 2 * 1024 * 1024
/** So many entries stay in the logs for members that are down for a short time. */
const entriesKept = 2_000
/** A running member that is further behind gets the state as a whole. */
const lagMax = 20_000
const trimPeriod = 1_024
/** Of an empty database file. */
const emptyDatabaseBytes = 20_480
const pageBytes = 4_096
const leaseBytes = 80
/** How full the pages of the database are. */
const fill = 0.9

const done: Command = { kind: 'done' }

export function createCluster(options: ClusterOptions): Cluster {
  return new SimulatedCluster(options)
}

interface FullSnapshot extends Snapshot {
  readonly machine: MachineCopy
}

class SimulatedCluster implements Cluster, MemberCluster {
  readonly network: PeerNetwork
  readonly clusterId = 0xcdf8_18b4_97ed_f3c3n
  readonly members: readonly SimulatedMember[]
  readonly nodes: readonly RaftNode[]
  readonly fragmentBytes: number
  machine: Machine = new Machine()
  quotaBytes: number
  readonly #observer: ClusterObserver
  readonly #now: () => number
  /** The index of the newest committed entry. */
  #index = 0
  /** The oldest revision that can still be read. */
  #floor = -1
  /** A state from which everything is still there: what a member that was down starts from. */
  #oldest: RaftState | undefined
  /** Since when each member has been connected to each other; infinite when it is not. */
  readonly #connected: number[][]
  #isReviewing = false
  #isReviewDue = false

  constructor(options: ClusterOptions) {
    this.network = options.network
    this.quotaBytes = options.quotaBytes
    this.fragmentBytes = options.watchFragmentBytes ?? fragmentBytesDefault
    this.#observer = options.observer
    const worlds = Array.from({ length: options.size }, (_, index) => options.world(index))
    this.#now = () => (worlds[0] as (typeof worlds)[0]).now()
    this.members = worlds.map(
      (world, id) => new SimulatedMember(this, id, new MemberProcess(world)),
    )
    this.nodes = this.members.map(({ raft }) => raft)
    this.#connected = this.members.map(() => this.members.map(() => Number.POSITIVE_INFINITY))
    this.#begin()
  }

  get revision(): number {
    return this.machine.store.revision
  }

  get compactedRevision(): number {
    return Math.max(0, this.machine.store.compacted)
  }

  get leader(): number | undefined {
    let leader: RaftNode | undefined
    for (const node of this.nodes) {
      if (node.role === 'leader' && (leader === undefined || node.term > leader.term)) leader = node
    }
    return leader?.id
  }

  get databaseBytes(): number {
    const { store, leases } = this.machine
    const bytes = store.bytes / fill + leases.size * leaseBytes
    return emptyDatabaseBytes + Math.ceil(bytes / pageBytes) * pageBytes
  }

  // ---- faults and operations

  crash(member: number): void {
    if (!this.#member(member).isUp) return
    this.#member(member).crash()
    this.note(`member ${member} crashes`)
    this.changed()
    this.compacted()
  }

  restart(member: number): void {
    const restarted = this.#member(member)
    if (restarted.isUp) return
    const oldest = this.#oldest
    if (oldest !== undefined && restarted.raft.applied < oldest.index)
      restarted.raft.install(oldest)
    restarted.start()
    this.note(`member ${member} starts`)
    this.changed()
  }

  pause(member: number): void {
    this.#member(member).process.pause()
    this.changed()
  }

  resume(member: number): void {
    const { process, raft } = this.#member(member)
    if (!process.isPaused) return
    raft.resume()
    process.resume()
    this.changed()
  }

  networkChanged(): void {
    this.changed()
  }

  moveLeader(to: number): void {
    const { leader } = this
    if (leader !== undefined)
      this.#member(leader).process.run(() => this.nodes[leader]?.transfer(to))
  }

  snapshot(): Snapshot {
    const snapshot: FullSnapshot = { revision: this.revision, machine: this.machine.copy() }
    return snapshot
  }

  restore(snapshot: Snapshot, options: { readonly bump: number }): void {
    for (const member of this.members) member.crash()
    this.machine = new Machine((snapshot as FullSnapshot).machine, options.bump)
    const { revision } = this
    this.#observer.onRestore?.({ kept: snapshot.revision, revision, at: this.#now() })
    this.#begin()
    for (const member of this.members) member.start()
    this.changed()
  }

  setQuota(bytes: number): void {
    this.quotaBytes = bytes
  }

  disarm(): void {
    const member = this.members.find(({ process }) => process.isRunning)
    for (const { memberId, alarm } of this.machine.alarms) {
      member?.order({ kind: 'alarm', action: 2, memberId, alarm })
    }
  }

  defragment(member: number): void {
    this.#member(member).databaseBytes = this.databaseBytes
  }

  state(): ReadonlyMap<string, Change & { readonly modRevision: number }> {
    const { store } = this.machine
    const state = new Map<string, Change & { readonly modRevision: number }>()
    for (const record of store.records('', '', store.revision)) {
      const version = record.at(store.revision) as Version
      const change = changeOf({ record, version })
      state.set(record.key.toString(), { ...change, modRevision: version.revision })
    }
    return state
  }

  // ---- what members need

  gateOf(id: number): ReadGate {
    return this.#member(id).reads
  }

  connectedSince(from: number, to: number): number {
    return this.#connected[from]?.[to] ?? Number.POSITIVE_INFINITY
  }

  commit(node: RaftNode, index: number): void {
    while (this.#index < index) {
      this.#index++
      const entry = node.log.at(this.#index) as Entry
      const outcome = this.machine.apply(entry.command, entry.cost)
      entry.outcome = outcome
      if (outcome.changes.length > 0)
        this.#observe(outcome.revision, outcome.changes, entry.command)
      if (entry.command.kind === 'compact' && outcome.status === undefined) {
        this.#observer.onCompact?.(outcome.compacted, this.#now())
        this.note(`compaction at ${outcome.compacted}`)
      }
      if (entry.command.kind !== 'empty') entry.command = done
      if (this.#index % trimPeriod === 0) this.#trim(node)
    }
  }

  changed(): void {
    this.#isReviewDue = true
    if (this.#isReviewing) return
    this.#isReviewing = true
    while (this.#isReviewDue) {
      this.#isReviewDue = false
      this.#updateConnections()
      for (const node of this.nodes) node.review()
    }
    this.#isReviewing = false
  }

  /** A member has compacted: what none of them needs any more is dropped. */
  compacted(): void {
    let floor = Number.POSITIVE_INFINITY
    let last: SimulatedMember | undefined
    for (const member of this.members) {
      if (!member.isUp) continue
      floor = Math.min(floor, member.compacted)
      if (last === undefined || member.raft.applied < last.raft.applied) last = member
    }
    if (last === undefined || floor <= this.#floor) return
    this.#floor = floor
    this.#oldest = last.state
    this.machine.store.drop(floor)
  }

  note(text: string): void {
    this.#observer.onEvent?.(text)
  }

  #begin(): void {
    this.#index = this.members.length
    this.#floor = this.machine.store.compacted
    this.#oldest = undefined
    for (const member of this.members) member.begin()
    this.changed()
  }

  #member(id: number): SimulatedMember {
    const member = this.members[id]
    if (member === undefined) throw new Error(`there is no member ${id}`)
    return member
  }

  #observe(revision: number, changes: readonly StoredChange[], command: Command): void {
    if (this.#observer.onCommit === undefined) return
    this.#observer.onCommit({ revision, at: this.#now(), changes: changes.map(changeOf), command })
  }

  /** Drops the beginning of the logs; a member that is too far behind gets the leader's state. */
  #trim(leader: RaftNode): void {
    let needed = this.#index - entriesKept
    for (const { process, raft } of this.members) {
      if (!process.isUp) continue
      if (this.#index - raft.applied > lagMax && raft !== leader) {
        raft.install(this.#member(leader.id).state)
      }
      needed = Math.min(needed, raft.applied)
    }
    for (const { log, applied } of this.nodes) log.trim(Math.min(needed, applied))
  }

  #updateConnections(): void {
    const now = this.#now()
    for (const from of this.nodes) {
      for (const to of this.nodes) {
        const since = this.#connected[from.id] as number[]
        const isLinked = from.process.isUp && to !== from && from.isLinked(to)
        if (!isLinked) since[to.id] = Number.POSITIVE_INFINITY
        else if (since[to.id] === Number.POSITIVE_INFINITY) since[to.id] = now
      }
    }
  }
}

function changeOf({ record, version }: { record: KeyRecord; version: Version }): Change {
  return {
    type: version.version === 0 ? 'delete' : 'put',
    key: record.key,
    value: valueIn(version),
    version: version.version,
    createRevision: version.createRevision,
    lease: version.lease,
  }
}
