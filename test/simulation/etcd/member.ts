/**
 * One member: the API that clients call, and what the member does with committed entries.
 */

import * as requests from './codec/requests.ts'
import { Encoder, encodeIds, type Header } from './codec/responses.ts'
import type { CallReply, Member, StreamIn, StreamOut } from './contract.ts'
import { Lessor } from './lessor.ts'
import { type Alarm, type Command, isStatus, type Machine, type Outcome } from './machine.ts'
import type { MemberProcess } from './process.ts'
import { electionMs, type RaftHost, RaftNode, type RaftPeers, type RaftState } from './raft/raft.ts'
import type { Entry } from './raft/raft-log.ts'
import { ReadGate, type ReadGates } from './raft/read-gate.ts'
import type { Status } from './status.ts'
import * as statuses from './status.ts'
import type { Store } from './store/store.ts'
import { checkTxn, costOf, costOfPut, isReadOnly, isSerializable } from './txn-check.ts'
import { WatchHub } from './watch.ts'

export const requestTimeoutMs = 7_000
/** `--max-request-bytes`, and what the proposal adds to the request. */
const requestBytesMax = 1.5 * 1024 * 1024
const proposalBytes = 17
const messageBytesMax = requestBytesMax + 512 * 1024
const leaseCost = 64
/** A stream that needs a leader ends after so many election timeouts without one. */
const leaderlessPolls = 3
const retryForwardMs = 50

type Reply = (reply: CallReply) => void

interface Pending {
  readonly number: number
  readonly startedAt: number
  readonly command: Command
  readonly cost: number
  /** False while there is no leader to propose it to. */
  isProposed: boolean
  isDone: boolean
  done(result: Outcome | Status): void
}

/** What members need from their cluster. */
export interface MemberCluster extends RaftPeers, ReadGates {
  readonly machine: Machine
  readonly clusterId: bigint
  readonly quotaBytes: number
  readonly fragmentBytes: number
  readonly members: readonly SimulatedMember[]
  /** The size of a database file without free pages. */
  readonly databaseBytes: number
  compacted(): void
  connectedSince(from: number, to: number): number
}

export class SimulatedMember implements Member, RaftHost {
  readonly id: bigint
  readonly process: MemberProcess
  readonly raft: RaftNode
  readonly encoder: Encoder = new Encoder()
  /** The state as this member has applied it. */
  revision = 1
  compacted = -1
  alarms: readonly Alarm[] = []
  databaseBytes = 0
  readonly #cluster: MemberCluster
  readonly #ids: Buffer
  readonly #lessor: Lessor
  readonly #watches: WatchHub
  readonly reads: ReadGate
  readonly #pending = new Map<number, Pending>()
  /** In the order of their start, which is that of their timeouts. */
  #queue: Pending[] = []
  #hasTimeout = false
  #proposals = 0
  #leaseNumber = 0n
  #isPolling = false

  constructor(cluster: MemberCluster, index: number, process: MemberProcess) {
    this.id = BigInt.asUintN(64, 0x8e9e_05c5_2164_694dn + BigInt(index) * 0x1234_5678_9abc_def1n)
    this.process = process
    this.#cluster = cluster
    this.#ids = encodeIds(cluster.clusterId, this.id)
    this.raft = new RaftNode({ id: index, process, peers: cluster, host: this })
    this.reads = new ReadGate(this.raft, cluster)
    this.#lessor = new Lessor(process, (id) => {
      this.#propose({ kind: 'revoke', id }, 0, () => {})
    })
    this.#watches = new WatchHub(this)
    this.#newLeaseNumbers()
  }

  get isUp(): boolean {
    return this.process.isUp
  }

  get store(): Store {
    return this.#cluster.machine.store
  }

  get fragmentBytes(): number {
    return this.#cluster.fragmentBytes
  }

  get hasLeader(): boolean {
    return this.raft.leader !== undefined
  }

  header(revision: number): Header {
    return { ids: this.#ids, term: this.raft.term, revision }
  }

  // ---- the process

  crash(): void {
    this.process.crash()
    this.raft.crash()
    this.#lessor.crash()
    this.#watches.crash()
    this.reads.crash()
    this.#pending.clear()
    this.#queue = []
    this.#hasTimeout = false
    this.#isPolling = false
  }

  /** Starts from the state of the cluster, as a member of a new or restored cluster. */
  begin(): void {
    const { machine, members } = this.#cluster
    this.revision = machine.store.revision
    this.compacted = machine.store.compacted
    this.alarms = machine.alarms
    this.databaseBytes = this.#cluster.databaseBytes
    // The entries that make the members known to each other.
    this.raft.begin(1, members.length)
  }

  start(): void {
    this.process.start()
    this.raft.start()
    this.#newLeaseNumbers()
  }

  // ---- what raft decides

  get state(): RaftState {
    const { raft, revision, compacted } = this
    const term = raft.log.termAt(raft.applied) ?? raft.term
    return { index: raft.applied, term, revision, compacted }
  }

  install(state: RaftState): void {
    this.revision = state.revision
    this.compacted = state.compacted
    this.alarms = this.#cluster.machine.alarms
    this.databaseBytes = Math.max(this.databaseBytes, this.#cluster.databaseBytes)
    this.#watches.installed()
    this.reads.applied()
    this.#cluster.compacted()
  }

  onLeader(leader: number | undefined, before: number | undefined): void {
    if (before === this.raft.id) this.#lessor.demote()
    if (leader === undefined) {
      this.#pollLeader(0)
      return
    }
    this.reads.leaderChanged()
    for (const pending of [...this.#queue]) {
      if (!pending.isProposed && !pending.isDone) this.#offer(pending)
    }
  }

  apply(entry: Entry): void {
    const outcome = entry.outcome as Outcome
    const hasRoom = this.#hasRoom(entry.cost)
    this.revision = outcome.revision
    this.alarms = outcome.alarms
    this.databaseBytes = Math.max(this.databaseBytes, this.#cluster.databaseBytes)
    if (outcome.compacted !== this.compacted) {
      this.compacted = outcome.compacted
      this.#cluster.compacted()
    }
    if (outcome.leases?.granted !== undefined) this.#lessor.granted(outcome.leases.granted)
    if (outcome.leases?.revoked !== undefined) this.#lessor.revoked(outcome.leases.revoked)
    if (entry.command.kind === 'empty') this.#appliedFirstOfTerm()
    if (outcome.changes.length > 0) this.#watches.notify(outcome.revision, outcome.changes)
    this.reads.applied()
    if (entry.origin !== this.raft.id) return
    this.#resolve(entry, outcome, hasRoom)
    outcome.result = undefined
  }

  #appliedFirstOfTerm(): void {
    if (this.raft.role === 'leader') this.#lessor.promote(this.#cluster.machine.leases.values())
    this.reads.firstOfTerm()
  }

  #resolve(entry: Entry, outcome: Outcome, hasRoom: boolean): void {
    const pending = this.#pending.get(entry.proposal)
    if (pending === undefined) return
    if (hasRoom || outcome.status !== undefined) {
      this.#finish(pending, outcome)
      return
    }
    // Applied, and nevertheless refused: it took the space that was left.
    if (this.alarms.some(({ alarm }) => alarm === 1)) this.#finish(pending, statuses.noSpace)
    else this.#raiseAlarm(() => this.#finish(pending, statuses.noSpace))
  }

  /** Ends streams that need a leader when there is none for several polls. */
  #pollLeader(count: number): void {
    if (count === 0) {
      if (this.#isPolling) return
      this.#isPolling = true
    }
    const sinceLast = this.process.world.now() % electionMs
    this.process.after(Math.max(1, electionMs - sinceLast), () => {
      if (this.hasLeader) this.#isPolling = false
      else if (count + 1 < leaderlessPolls) this.#pollLeader(count + 1)
      else {
        this.#isPolling = false
        this.#watches.endWithoutLeader()
      }
    })
  }

  // ---- clients

  call(
    path: string,
    message: Buffer,
    options: { readonly needsLeader: boolean },
    reply: Reply,
  ): void {
    this.process.run(() => {
      if (message.length > messageBytesMax) {
        reply(statuses.messageTooLarge(message.length, messageBytesMax))
      } else if (options.needsLeader && !this.hasLeader) reply(statuses.noLeader)
      else this.#dispatch(path, message, reply)
    })
  }

  openWatch(out: StreamOut, options: { readonly needsLeader: boolean }): StreamIn {
    return this.#watches.open(out, options.needsLeader)
  }

  #dispatch(path: string, message: Buffer, reply: Reply): void {
    switch (path) {
      case '/etcdserverpb.KV/Range':
        this.#range(message, reply)
        break
      case '/etcdserverpb.KV/Txn':
        this.#txn(message, reply)
        break
      case '/etcdserverpb.KV/Put':
        this.#put(message, reply)
        break
      case '/etcdserverpb.KV/DeleteRange':
        this.#delete(message, reply)
        break
      case '/etcdserverpb.Maintenance/Status':
        this.#status(reply)
        break
      default:
        this.#dispatchNumbers(path, message, reply)
    }
  }

  #dispatchNumbers(path: string, message: Buffer, reply: Reply): void {
    const fields = decoded(() => requests.decodeNumbers(message), reply)
    if (fields === undefined) return
    const number = (field: number) => fields.get(field) ?? 0n
    switch (path) {
      case '/etcdserverpb.KV/Compact':
        this.#command({ kind: 'compact', revision: Number(number(1)) }, reply)
        break
      case '/etcdserverpb.Lease/LeaseGrant':
        this.#grant(number(1), number(2), reply)
        break
      case '/etcdserverpb.Lease/LeaseRevoke':
        this.#command({ kind: 'revoke', id: number(1) }, reply)
        break
      case '/etcdserverpb.Lease/LeaseKeepAlive':
        this.#keepAlive(number(1), reply)
        break
      case '/etcdserverpb.Lease/LeaseTimeToLive':
        this.#timeToLive(number(1), number(2) !== 0n, reply)
        break
      case '/etcdserverpb.Maintenance/Alarm':
        this.#command(
          {
            kind: 'alarm',
            action: Number(number(1)),
            memberId: BigInt.asUintN(64, number(2)),
            alarm: Number(number(3)),
          },
          reply,
        )
        break
      default:
        reply(statuses.unknownMethod(path))
    }
  }

  #range(message: Buffer, reply: Reply): void {
    const range = decoded(() => requests.decodeRange(message), reply)
    if (range === undefined) return
    if (range.key === '') {
      reply(statuses.emptyKey)
      return
    }
    const answer = () => this.#answer(this.#cluster.machine.readRange(range, this), reply)
    if (range.serializable) answer()
    else this.reads.wait((status) => (status === undefined ? answer() : reply(status)))
  }

  #txn(message: Buffer, reply: Reply): void {
    const txn = decoded(() => requests.decodeTxn(message), reply)
    if (txn === undefined) return
    const cost = costOf(txn)
    this.#withRoom(cost, reply, () => {
      const refusal = checkTxn(txn)
      if (refusal !== undefined) {
        reply(refusal)
        return
      }
      if (!isReadOnly(txn)) {
        this.#write(txn, { cost, bytes: message.length }, reply)
        return
      }
      const answer = () => this.#answer(this.#cluster.machine.readTxn(txn, this), reply)
      if (isSerializable(txn)) answer()
      else this.reads.wait((status) => (status === undefined ? answer() : reply(status)))
    })
  }

  #put(message: Buffer, reply: Reply): void {
    const put = decoded(() => requests.decodePut(message), reply)
    if (put === undefined) return
    const cost = costOfPut(put)
    this.#withRoom(cost, reply, () => {
      if (put.key === '') reply(statuses.emptyKey)
      else this.#write(put, { cost, bytes: message.length }, reply)
    })
  }

  #delete(message: Buffer, reply: Reply): void {
    const request = decoded(() => requests.decodeDelete(message), reply)
    if (request === undefined) return
    if (request.key === '') reply(statuses.emptyKey)
    else this.#write(request, { cost: 0, bytes: message.length }, reply)
  }

  #grant(ttl: bigint, wanted: bigint, reply: Reply): void {
    this.#withRoom(leaseCost, reply, () => {
      const id = wanted === 0n ? this.#nextLease() : wanted
      this.#write({ kind: 'grant', id, ttl }, { cost: leaseCost, bytes: 0 }, reply)
    })
  }

  /** What an operator asks for; nothing waits for the result. */
  order(command: Command): void {
    this.process.run(() => this.#propose(command, 0, () => {}))
  }

  #command(command: Command, reply: Reply): void {
    this.#write(command, { cost: 0, bytes: 0 }, reply)
  }

  #write(
    command: Command,
    size: { readonly cost: number; readonly bytes: number },
    reply: Reply,
  ): void {
    if (size.bytes + proposalBytes > requestBytesMax) {
      reply(statuses.tooLarge)
      return
    }
    this.#propose(command, size.cost, (result) => {
      if (isStatus(result)) reply(result)
      else if (result.status !== undefined) reply(result.status)
      else reply({ code: 0, message: this.#encode(result) })
    })
  }

  #encode({ result, revision }: Outcome): Buffer {
    const { encoder } = this
    if (result === undefined) return encoder.plain(this.header(revision))
    if (result.kind === 'grant') return encoder.grant(this.header(revision), result.lease)
    if (result.kind === 'alarm') return encoder.alarms(this.header(revision), result.alarms)
    return encoder.op(this.header(result.revision), result)
  }

  #answer(result: ReturnType<Machine['readRange']>, reply: Reply): void {
    if (isStatus(result)) reply(result)
    else reply({ code: 0, message: this.encoder.op(this.header(result.revision), result) })
  }

  #status(reply: Reply): void {
    const { raft, alarms } = this
    const leader = raft.leader === undefined ? undefined : this.#cluster.members[raft.leader]
    const names = ['NONE', 'NOSPACE', 'CORRUPT']
    const errors = alarms.map(
      ({ memberId, alarm }) => `memberID:${memberId} alarm:${names[alarm]} `,
    )
    if (leader === undefined) errors.unshift(statuses.noLeader.details)
    const message = this.encoder.status(this.header(this.revision), {
      version: '3.5.30',
      dbSize: this.databaseBytes,
      dbSizeInUse: Math.min(this.databaseBytes, this.#cluster.databaseBytes),
      leader: leader?.id ?? 0n,
      raftIndex: raft.commit,
      raftTerm: raft.term,
      raftAppliedIndex: raft.applied,
      errors,
    })
    reply({ code: 0, message })
  }

  // ---- leases: the leader answers

  #keepAlive(id: bigint, reply: Reply): void {
    // The revision is that of before the renewal.
    const header = this.header(this.revision)
    this.#askLeader<number>(
      (leader, answer) => leader.#lessor.renew(id, answer),
      (ttl) => {
        if (typeof ttl !== 'number') reply(ttl)
        else reply({ code: 0, message: this.encoder.keepAlive(header, id, ttl) })
      },
    )
  }

  #timeToLive(id: bigint, withKeys: boolean, reply: Reply): void {
    const lookUp = (leader: SimulatedMember) => {
      const found = leader.#lessor.remaining(id)
      if (found === undefined) return { ttl: -1, granted: 0, keys: [] }
      const { ttlSeconds, keys } = found.lease
      const ttl = Math.trunc(found.ms / 1000)
      return { ttl, granted: ttlSeconds, keys: withKeys ? [...keys].sort() : [] }
    }
    const exists = (leader: SimulatedMember) => leader.#cluster.machine.leases.has(id)
    if (this.raft.role === 'leader' && !this.#lessor.isPrimary && exists(this)) {
      reply(statuses.leaderChanged)
      return
    }
    this.#askLeader<ReturnType<typeof lookUp>>(
      (leader, answer) => answer(leader.#lessor.isPrimary ? lookUp(leader) : undefined),
      (found) => {
        if (isStatus(found)) reply(found)
        else {
          const message = this.encoder.timeToLive(this.header(this.revision), id, found)
          reply({ code: 0, message })
        }
      },
    )
  }

  /** Asks the leader until it answers, for the time of a request. It answers undefined if it is none. */
  #askLeader<Answer extends object | number>(
    ask: (leader: SimulatedMember, answer: (answer: Answer | undefined) => void) => void,
    done: (answer: Answer | Status) => void,
  ): void {
    const deadline = this.process.world.now() + requestTimeoutMs
    let isDone = false
    const finish = (answer: Answer | Status) => {
      if (isDone) return
      isDone = true
      done(answer)
    }
    const attempt = () => {
      if (isDone) return
      const { leader } = this.raft
      if (this.process.world.now() >= deadline) {
        finish(leader === undefined ? statuses.noLeader : statuses.timedOut)
      } else if (leader === undefined) this.process.after(electionMs, attempt)
      else this.#askOnce(leader, ask, (answer) => (answer === undefined ? retry() : finish(answer)))
    }
    const retry = () => this.process.after(retryForwardMs, attempt)
    attempt()
  }

  #askOnce<Answer extends object | number>(
    leader: number,
    ask: (leader: SimulatedMember, answer: (answer: Answer | undefined) => void) => void,
    done: (answer: Answer | undefined) => void,
  ): void {
    if (leader === this.raft.id) {
      ask(this, done)
      return
    }
    let isAnswered = false
    const once = (answer: Answer | undefined) => {
      if (isAnswered) return
      isAnswered = true
      cancel()
      done(answer)
    }
    // A request that is lost is not noticed before the connection is.
    const cancel = this.process.timer(electionMs, () => once(undefined))
    const member = this.#cluster.members[leader] as SimulatedMember
    this.raft.deliver(leader, (node) =>
      ask(member, (answer) => node.deliver(this.raft.id, () => once(answer))),
    )
  }

  #nextLease(): bigint {
    return ++this.#leaseNumber
  }

  /** Positive, and different for every member and start. */
  #newLeaseNumbers(): void {
    const random = Math.floor(this.process.world.random() * 2 ** 31)
    this.#leaseNumber = (BigInt(this.raft.id + 1) << 56n) | (BigInt(random) << 24n)
  }

  // ---- space

  #hasRoom(cost: number): boolean {
    const { quotaBytes } = this.#cluster
    return cost === 0 || quotaBytes === 0 || this.databaseBytes + cost < quotaBytes
  }

  #withRoom(cost: number, reply: Reply, proceed: () => void): void {
    if (this.#hasRoom(cost)) proceed()
    else this.#raiseAlarm(() => reply(statuses.noSpace))
  }

  #raiseAlarm(done: () => void): void {
    this.#propose({ kind: 'alarm', action: 1, memberId: this.id, alarm: 1 }, 0, done)
  }

  // ---- proposals

  #propose(command: Command, cost: number, done: (result: Outcome | Status) => void): void {
    const pending: Pending = {
      number: ++this.#proposals,
      startedAt: this.process.world.now(),
      command,
      cost,
      isProposed: false,
      isDone: false,
      done,
    }
    this.#pending.set(pending.number, pending)
    this.#queue.push(pending)
    if (this.raft.leader !== undefined) this.#offer(pending)
    if (!this.#hasTimeout && this.#queue.length > 0) this.#armTimeout()
  }

  /** To the leader: itself, or by a message that may be lost. */
  #offer(pending: Pending): void {
    pending.isProposed = true
    const { command, cost, number: proposal } = pending
    const content = { command, cost, origin: this.raft.id, proposal }
    if (this.raft.role !== 'leader') {
      this.#forward(this.raft, content)
    } else if (this.raft.isTransferring) this.#finish(pending, statuses.proposalDropped)
    else this.raft.append(content)
  }

  #forward(from: RaftNode, content: Parameters<RaftNode['append']>[0]): void {
    if (from.leader === undefined) return
    from.deliver(from.leader, (node) => {
      if (node.role === 'leader') {
        if (!node.isTransferring) node.append(content)
      } else this.#forward(node, content)
    })
  }

  #finish(pending: Pending, result: Outcome | Status): void {
    if (pending.isDone) return
    pending.isDone = true
    this.#pending.delete(pending.number)
    while (this.#queue[0]?.isDone === true) this.#queue.shift()
    pending.done(result)
  }

  /** One timer for all: it waits for the oldest. */
  #armTimeout(): void {
    const oldest = this.#queue[0]
    this.#hasTimeout = oldest !== undefined
    if (oldest === undefined) return
    const ms = oldest.startedAt + requestTimeoutMs - this.process.world.now()
    // Not sooner than after a millisecond: a rest from rounding would never pass.
    this.process.after(Math.max(1, ms), () => {
      const now = this.process.world.now()
      let oldest = this.#queue[0]
      while (
        oldest !== undefined &&
        (oldest.isDone || oldest.startedAt + requestTimeoutMs <= now)
      ) {
        this.#queue.shift()
        if (!oldest.isDone) this.#finish(oldest, this.#timeoutStatus(oldest))
        oldest = this.#queue[0]
      }
      this.#armTimeout()
    })
  }

  #timeoutStatus(pending: Pending): Status {
    if (!pending.isProposed) return statuses.deadlineExceeded
    const { raft } = this
    const { startedAt } = pending
    if (startedAt > raft.electedAt - 2 * electionMs && startedAt < raft.electedAt) {
      return statuses.timedOutLeaderFailure
    }
    if (raft.leader === undefined) return statuses.timedOut
    const isConnected = (to: number) => this.#cluster.connectedSince(raft.id, to) < startedAt
    const others = this.#cluster.nodes.filter((node) => node !== raft).map((node) => node.id)
    const isLinked =
      raft.leader === raft.id
        ? others.filter(isConnected).length + 1 >= raft.quorum
        : isConnected(raft.leader)
    return isLinked ? statuses.timedOut : statuses.timedOutConnectionLost
  }
}

function decoded<Request>(decode: () => Request, reply: Reply): Request | undefined {
  try {
    return decode()
  } catch {
    reply(statuses.notDecodable)
    return undefined
  }
}
