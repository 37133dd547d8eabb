/** The simulated etcd: a cluster of members with one shared history. See contract.ts. */
import type { TxnRequest } from '../../support/etcd-protocol/rpc_pb.ts'
import type {
  Change,
  Cluster,
  ClusterObserver,
  ClusterOptions,
  CommittedTxn,
  PeerNetwork,
  Snapshot,
} from './contract.ts'
import { Leadership, type Proposal } from './leadership.ts'
import { isStatus, Machine, type MachineCopy } from './machine.ts'
import { type Entry, type MemberCluster, SimulatedMember } from './member.ts'
import { nameOf } from './messages.ts'
import { MemberProcess } from './process.ts'
import { isDeletion, type StoredChange, type Version } from './store.ts'

/** A response that is larger than a request may be is cut into fragments. */
const fragmentBytesDefault = 2 * 1024 * 1024
const trimPeriod = 1_024
/** The size of an empty database file. */
const emptyDatabaseBytes = 20_480
const pageBytes = 4_096
const leaseBytes = 80
/** How full the pages of the database are. */
const fill = 0.9

export function createCluster(options: ClusterOptions): Cluster {
  return new SimulatedCluster(options)
}

interface FullSnapshot extends Snapshot {
  readonly machine: MachineCopy
}

class SimulatedCluster implements Cluster, MemberCluster {
  readonly members: readonly SimulatedMember[]
  readonly leadership: Leadership
  readonly fragmentBytes: number
  readonly nextWatchLacksPrevious: () => boolean
  readonly rangeStreamShare: number
  machine: Machine
  quotaBytes: number
  readonly #observer: ClusterObserver
  readonly #now: () => number
  /** The history from the entry after `#trimmed` on. */
  #entries: Entry[] = []
  #trimmed = 0
  /** The oldest revision that can still be read. */
  #floor = -1

  constructor(options: ClusterOptions) {
    this.machine = new Machine(options.release ?? '3.5')
    this.quotaBytes = options.quotaBytes
    this.fragmentBytes = options.watchFragmentBytes ?? fragmentBytesDefault
    this.nextWatchLacksPrevious = options.watchLacksPrevious ?? (() => false)
    this.rangeStreamShare = options.rangeStreamShare ?? 0
    this.#observer = options.observer
    const worlds = Array.from({ length: options.size }, (_, index) => options.world(index))
    this.#now = () => (worlds[0] as (typeof worlds)[0]).now()
    this.members = worlds.map(
      (world, index) => new SimulatedMember(this, index, new MemberProcess(world)),
    )
    this.leadership = this.#newLeadership(options.network)
    this.#begin()
  }

  #newLeadership(network: PeerNetwork): Leadership {
    return new Leadership({
      members: this.members,
      network,
      commit: (proposal) => this.#commit(proposal),
      note: (text) => this.#note(text),
    })
  }

  get revision(): number {
    return this.machine.store.revision
  }

  get compactedRevision(): number {
    return Math.max(0, this.machine.store.compacted)
  }

  get leader(): number | undefined {
    return this.leadership.leader
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
    this.#note(`member ${member} crashes`)
    this.leadership.crashed(member)
  }

  restart(member: number): void {
    if (this.#member(member).isUp) return
    this.#member(member).start()
    this.#note(`member ${member} starts`)
    this.leadership.review()
  }

  pause(member: number): void {
    this.#member(member).process.pause()
    this.leadership.review()
  }

  resume(member: number): void {
    const { process } = this.#member(member)
    if (!process.isPaused) return
    process.resume()
    this.leadership.review()
  }

  networkChanged(): void {
    this.leadership.review()
  }

  moveLeader(to: number): void {
    const { leader } = this
    if (leader !== undefined) this.#member(leader).process.run(() => this.leadership.transfer(to))
  }

  snapshot(): Snapshot {
    const snapshot: FullSnapshot = { revision: this.revision, machine: this.machine.copy() }
    return snapshot
  }

  restore(snapshot: Snapshot, options: { readonly bump: number }): void {
    for (const member of this.members.keys()) this.crash(member)
    const { machine } = snapshot as FullSnapshot
    this.machine = new Machine(this.machine.release, machine, options.bump)
    const { revision } = this
    this.#observer.onRestore?.({ kept: snapshot.revision, revision, at: this.#now() })
    for (const member of this.members) member.start()
    this.#begin()
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

  // ---- the history

  entryAt(index: number): Entry {
    return this.#entries[index - this.#trimmed - 1] as Entry
  }

  compacted(): void {
    const floor = Math.min(...this.members.map((member) => member.compacted))
    if (floor <= this.#floor) return
    this.#floor = floor
    this.machine.store.drop(floor)
  }

  /** All members begin with the state of the machine and an empty history. */
  #begin(): void {
    this.#entries = []
    this.#trimmed = 0
    this.#floor = this.machine.store.compacted
    for (const member of this.members) member.begin(0)
    this.leadership.begin(0)
  }

  #commit(proposal: Proposal): number {
    const { command, cost } = proposal
    const outcome = this.machine.apply(command, cost)
    const { revision, changes, compacted, result } = outcome
    this.#entries.push({ ...proposal, outcome })
    if (changes.length > 0) {
      const at = this.#now()
      const txn = command.kind === 'txn' ? committed(command.txn) : undefined
      this.#observer.onCommit?.({ revision, at, changes: changes.map(changeOf), command: txn })
    }
    if (command.kind === 'compact' && !isStatus(result)) {
      this.#observer.onCompact?.(compacted, this.#now())
      this.#note(`compaction at ${compacted}`)
    }
    if (this.#entries.length > trimPeriod) this.#trim()
    return this.#trimmed + this.#entries.length
  }

  /** Drops the entries that every member has applied. */
  #trim(): void {
    const applied = Math.min(...this.members.map((member) => member.applied))
    this.#entries.splice(0, applied - this.#trimmed)
    this.#trimmed = applied
  }

  #note(text: string): void {
    this.#observer.onEvent?.(text)
  }

  #member(index: number): SimulatedMember {
    const member = this.members[index]
    if (member === undefined) throw new Error(`there is no member ${index}`)
    return member
  }
}

/** The store copies keys and values into buffers of their own. */
function changeOf({ record, version }: StoredChange): Change {
  const { kv } = version
  return {
    type: isDeletion(version) ? 'delete' : 'put',
    key: record.key,
    value: kv.value as Buffer,
    version: Number(kv.version),
    createRevision: Number(kv.createRevision),
    lease: kv.lease,
  }
}

function committed({ compare, success }: TxnRequest): CommittedTxn {
  const compares = compare.map(({ key, target, targetUnion: { value } }) => {
    return { key: nameOf(key), target, number: typeof value === 'bigint' ? Number(value) : 0 }
  })
  const ops: CommittedTxn['success'][number][] = []
  for (const { request } of success) {
    if (request.case === 'requestTxn') ops.push(committed(request.value))
    else if (request.case === 'requestPut')
      ops.push({ kind: 'put', key: nameOf(request.value.key) })
  }
  return { kind: 'txn', compares, success: ops }
}
