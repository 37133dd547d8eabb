/** One member: the API that clients call, and how it follows the history of the cluster. */
import {
  LeaseKeepAliveResponseSchema,
  LeaseTimeToLiveResponseSchema,
  RangeRequestSchema,
  StatusResponseSchema,
  TxnRequestSchema,
} from '../../support/etcd-protocol/rpc_pb.ts'
import type { CallReply, Member, StreamIn, StreamOut } from './contract.ts'
import { electionMs, type Leadership, type Participant, type Proposal } from './leadership.ts'
import { Lessor } from './lessor.ts'
import {
  type Alarm,
  type Command,
  type Header,
  isStatus,
  type Machine,
  type Outcome,
} from './machine.ts'
import { decode, encode, numbersOf } from './messages.ts'
import type { MemberProcess } from './process.ts'
import { RangeStream, type RangeStreamHost } from './range-stream.ts'
import { ReadGate, type ReadHost } from './read-gate.ts'
import type { Status } from './status.ts'
import * as statuses from './status.ts'
import type { Store } from './store.ts'
import { checkTxn, costOf, isReadOnly, isSerializable } from './txn-check.ts'
import { type WatchHost, WatchHub } from './watch.ts'

const requestTimeoutMs = 7_000
/** `--max-request-bytes`, and the size that the proposal adds to the request. */
const requestBytesMax = 1.5 * 1024 * 1024
const proposalBytes = 17
const messageBytesMax = requestBytesMax + 512 * 1024
const leaseCost = 64
/** A stream that needs a leader ends after so many election timeouts without one. */
const leaderlessPolls = 3
const retryForwardMs = 50

type Reply = (reply: CallReply) => void

/** An entry of the history. */
export interface Entry extends Proposal {
  readonly outcome: Outcome
}

interface Pending extends Proposal {
  readonly startedAt: number
  /** False while there is no leader to propose it to. */
  isProposed: boolean
  done(result: Outcome['result']): void
}

/** What members need from their cluster. */
export interface MemberCluster {
  readonly machine: Machine
  readonly leadership: Leadership
  readonly quotaBytes: number
  readonly fragmentBytes: number
  nextWatchLacksPrevious(): boolean
  readonly rangeStreamShare: number
  readonly members: readonly SimulatedMember[]
  /** The size of a database file without free pages. */
  readonly databaseBytes: number
  entryAt(index: number): Entry
  /** The member has compacted. */
  compacted(): void
}

export class SimulatedMember implements Member, Participant, ReadHost, WatchHost, RangeStreamHost {
  readonly id: bigint
  readonly index: number
  readonly process: MemberProcess
  /** The state as this member has applied it. */
  applied = 0
  revision = 1
  compacted = -1
  alarms: readonly Alarm[] = []
  databaseBytes = 0
  readonly #cluster: MemberCluster
  readonly #lessor: Lessor
  readonly #watches: WatchHub
  readonly #reads: ReadGate
  /** Ordered by start, and thereby by timeout. */
  readonly #pending = new Map<number, Pending>()
  #proposals = 0
  #leaseNumber = 0n
  #hasTimeout = false
  #isApplying = false
  #isPolling = false
  #hasRangeStream = false

  constructor(cluster: MemberCluster, index: number, process: MemberProcess) {
    this.id = BigInt.asUintN(64, 0x8e9e_05c5_2164_694dn + BigInt(index) * 0x1234_5678_9abc_def1n)
    this.index = index
    this.process = process
    this.#cluster = cluster
    this.#lessor = new Lessor(process, (id) => {
      this.#propose({ kind: 'revoke', id }, 0, () => {})
    })
    this.#watches = new WatchHub(this)
    this.#reads = new ReadGate(this)
    this.#newLeaseNumbers()
    this.#chooseVersion()
  }

  get isUp(): boolean {
    return this.process.isUp
  }

  get leadership(): Leadership {
    return this.#cluster.leadership
  }

  get machine(): Machine {
    return this.#cluster.machine
  }

  get store(): Store {
    return this.#cluster.machine.store
  }

  get fragmentBytes(): number {
    return this.#cluster.fragmentBytes
  }

  nextWatchLacksPrevious(): boolean {
    return this.#cluster.nextWatchLacksPrevious()
  }

  get hasLeader(): boolean {
    return this.leadership.knownTo(this.index) !== undefined
  }

  header(revision: number): Header {
    return { memberId: this.id, revision: BigInt(revision) }
  }

  // ---- the process

  crash(): void {
    this.process.crash()
    this.#lessor.crash()
    this.#watches.crash()
    this.#reads.crash()
    this.#pending.clear()
    this.#hasTimeout = false
    this.#isPolling = false
  }

  /** Starts from the state of the cluster, as a member of a new or restored cluster. */
  begin(applied: number): void {
    const { machine, databaseBytes } = this.#cluster
    this.applied = applied
    this.revision = machine.store.revision
    this.compacted = machine.store.compacted
    this.alarms = machine.alarms
    this.databaseBytes = databaseBytes
  }

  start(): void {
    this.process.start()
    this.#newLeaseNumbers()
    this.#chooseVersion()
  }

  // ---- the history

  onLeader(leader: number | undefined, before: number | undefined): void {
    if (before === this.index) this.#lessor.demote()
    if (leader === undefined) {
      this.#pollLeader(0)
      return
    }
    this.#reads.leaderChanged()
    for (const pending of [...this.#pending.values()]) {
      if (!pending.isProposed) this.#offer(pending)
    }
  }

  applyTo(index: number): void {
    if (this.#isApplying) return
    this.#isApplying = true
    while (this.applied < index) {
      this.applied++
      this.#apply(this.#cluster.entryAt(this.applied))
    }
    this.#isApplying = false
  }

  #apply({ outcome, cost, command, origin, number }: Entry): void {
    const hasSpace = this.#hasSpace(cost)
    this.revision = outcome.revision
    this.alarms = outcome.alarms
    this.databaseBytes = Math.max(this.databaseBytes, this.#cluster.databaseBytes)
    if (outcome.compacted !== this.compacted) {
      this.compacted = outcome.compacted
      this.#cluster.compacted()
    }
    if (outcome.granted !== undefined) this.#lessor.granted(outcome.granted)
    if (outcome.revoked !== undefined) this.#lessor.revoked(outcome.revoked)
    if (command.kind === 'elected') this.#leaderIsEstablished()
    if (outcome.changes.length > 0) this.#watches.notify(outcome.changes)
    this.#reads.applied()
    const pending = origin === this.index ? this.#pending.get(number) : undefined
    if (pending === undefined) return
    const { result } = outcome
    if (hasSpace || isStatus(result)) this.#finish(pending, result)
    // Applied, and nevertheless refused: it took the space that was left.
    else if (this.alarms.some(({ alarm }) => alarm === 1)) this.#finish(pending, statuses.noSpace)
    else this.#raiseAlarm(() => this.#finish(pending, statuses.noSpace))
  }

  #leaderIsEstablished(): void {
    if (this.leadership.knownTo(this.index) === this.index) {
      this.#lessor.promote(this.#cluster.machine.leases.values())
    }
    this.#reads.leaderEstablished()
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

  openRangeStream(out: StreamOut, { needsLeader }: { readonly needsLeader: boolean }): StreamIn {
    if (this.#hasRangeStream) return new RangeStream(this, out, needsLeader)
    const { code, details } = statuses.noRangeStream
    this.process.run(() => out.end(code, details))
    return { receive: () => {}, onDrain: () => {}, close: () => {} }
  }

  waitForRead(done: (status: Status | undefined) => void): void {
    this.#reads.wait(done)
  }

  #dispatch(path: string, message: Buffer, reply: Reply): void {
    const method = path.replace('/etcdserverpb.', '')
    if (method === 'KV/Range') this.#range(message, reply)
    else if (method === 'KV/Txn') this.#txn(message, reply)
    else if (method === 'Maintenance/Status') this.#status(reply)
    else {
      const numbers = numbersOf(message)
      this.#dispatchNumbers(path, (field) => numbers.get(field) ?? 0n, reply)
    }
  }

  #dispatchNumbers(path: string, number: (field: number) => bigint, reply: Reply): void {
    switch (path.replace('/etcdserverpb.', '')) {
      case 'KV/Compact':
        this.#write({ kind: 'compact', revision: Number(number(1)) }, 0, reply)
        break
      case 'Lease/LeaseGrant':
        this.#grant(number(1), number(2), reply)
        break
      case 'Lease/LeaseRevoke':
        this.#write({ kind: 'revoke', id: number(1) }, 0, reply)
        break
      case 'Lease/LeaseKeepAlive':
        this.#keepAlive(number(1), reply)
        break
      case 'Lease/LeaseTimeToLive':
        this.#timeToLive(number(1), reply)
        break
      case 'Maintenance/Alarm': {
        const memberId = BigInt.asUintN(64, number(2))
        const action = Number(number(1))
        this.#write({ kind: 'alarm', action, memberId, alarm: Number(number(3)) }, 0, reply)
        break
      }
      default:
        throw new Error(`the simulated etcd does not handle ${path}`)
    }
  }

  #range(message: Buffer, reply: Reply): void {
    const range = decode(RangeRequestSchema, message)
    if (range.key.length === 0) {
      reply(statuses.emptyKey)
      return
    }
    this.#read(range.serializable, reply, () => this.#cluster.machine.readRange(range, this))
  }

  #txn(message: Buffer, reply: Reply): void {
    const txn = decode(TxnRequestSchema, message)
    const cost = costOf(txn, this.#cluster.machine.release)
    this.#withSpace(cost, reply, () => {
      const refusal = checkTxn(txn)
      if (refusal !== undefined) reply(refusal)
      else if (isReadOnly(txn)) {
        this.#read(isSerializable(txn), reply, () => this.#cluster.machine.readTxn(txn, this))
      } else if (message.length + proposalBytes > requestBytesMax) reply(statuses.tooLarge)
      else this.#write({ kind: 'txn', txn }, cost, reply)
    })
  }

  #read(isSerializable: boolean, reply: Reply, read: () => Outcome['result']): void {
    const answer = () => this.#answer(read(), reply)
    if (isSerializable) answer()
    else this.#reads.wait((status) => (status === undefined ? answer() : reply(status)))
  }

  #write(command: Command, cost: number, reply: Reply): void {
    this.#propose(command, cost, (result) => this.#answer(result, reply))
  }

  #answer(result: Outcome['result'], reply: Reply): void {
    if (isStatus(result)) reply(result)
    else reply({ code: 0, message: result(this.header(this.revision)) })
  }

  #grant(ttl: bigint, wanted: bigint, reply: Reply): void {
    this.#withSpace(leaseCost, reply, () => {
      const id = wanted === 0n ? ++this.#leaseNumber : wanted
      this.#write({ kind: 'grant', id, ttl }, leaseCost, reply)
    })
  }

  /** An operator's command, which nothing waits for. */
  order(command: Command): void {
    this.process.run(() => this.#propose(command, 0, () => {}))
  }

  #status(reply: Reply): void {
    const leader = this.#cluster.members[this.leadership.knownTo(this.index) ?? -1]
    const names = ['NONE', 'NOSPACE', 'CORRUPT']
    const errors = this.alarms.map(
      ({ memberId, alarm }) => `memberID:${memberId} alarm:${names[alarm]} `,
    )
    if (leader === undefined) errors.unshift(statuses.noLeader.details)
    const message = encode(StatusResponseSchema, {
      header: this.header(this.revision),
      version: this.#hasRangeStream ? '3.7.1' : '3.5.30',
      dbSizeQuota: this.#hasRangeStream ? BigInt(this.#cluster.quotaBytes) : 0n,
      dbSize: BigInt(this.databaseBytes),
      dbSizeInUse: BigInt(Math.min(this.databaseBytes, this.#cluster.databaseBytes)),
      leader: leader?.id ?? 0n,
      raftTerm: BigInt(this.leadership.term),
      errors,
    })
    reply({ code: 0, message })
  }

  // ---- leases: the leader answers

  #keepAlive(id: bigint, reply: Reply): void {
    // The header has the revision from before the renewal.
    const header = this.header(this.revision)
    this.#askLeader<number>(
      (leader, answer) => leader.#lessor.renew(id, answer),
      (ttl) => {
        if (typeof ttl !== 'number') reply(ttl)
        else {
          const response = { header, id, ttl: BigInt(ttl) }
          reply({ code: 0, message: encode(LeaseKeepAliveResponseSchema, response) })
        }
      },
    )
  }

  #timeToLive(id: bigint, reply: Reply): void {
    const lookUp = (leader: SimulatedMember) => {
      const found = leader.#lessor.remaining(id)
      if (found === undefined) return { ttl: -1n, grantedTtl: 0n }
      const ttl = BigInt(Math.trunc(found.ms / 1000))
      return { ttl, grantedTtl: BigInt(found.lease.ttlSeconds) }
    }
    const isLeader = this.leadership.knownTo(this.index) === this.index
    if (isLeader && !this.#lessor.isPrimary && this.#cluster.machine.leases.has(id)) {
      reply(statuses.leaderChanged)
      return
    }
    this.#askLeader<ReturnType<typeof lookUp>>(
      (leader, answer) => answer(leader.#lessor.isPrimary ? lookUp(leader) : undefined),
      (found) => {
        if (isStatus(found)) reply(found)
        else {
          const response = { header: this.header(this.revision), id, ...found }
          reply({ code: 0, message: encode(LeaseTimeToLiveResponseSchema, response) })
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
    const attempt = () => {
      const leader = this.leadership.knownTo(this.index)
      if (this.process.world.now() >= deadline) {
        done(leader === undefined ? statuses.noLeader : statuses.timedOut)
      } else if (leader === undefined) this.process.after(electionMs, attempt)
      else {
        this.#askOnce(leader, ask, (answer) => {
          if (answer === undefined) this.process.after(retryForwardMs, attempt)
          else done(answer)
        })
      }
    }
    attempt()
  }

  #askOnce<Answer extends object | number>(
    leader: number,
    ask: (leader: SimulatedMember, answer: (answer: Answer | undefined) => void) => void,
    done: (answer: Answer | undefined) => void,
  ): void {
    let isAnswered = false
    const once = (answer: Answer | undefined) => {
      if (isAnswered) return
      isAnswered = true
      cancel?.()
      done(answer)
    }
    // A request that is lost is not noticed before the connection is.
    const cancel =
      leader === this.index ? undefined : this.process.timer(electionMs, () => once(undefined))
    const { leadership } = this
    leadership.send(this.index, leader, () => {
      const member = this.#cluster.members[leader] as SimulatedMember
      ask(member, (answer) => leadership.send(leader, this.index, () => once(answer)))
    })
  }

  /** Positive, and different for every member and start. */
  #newLeaseNumbers(): void {
    const random = Math.floor(this.process.world.random() * 2 ** 31)
    this.#leaseNumber = (BigInt(this.index + 1) << 56n) | (BigInt(random) << 24n)
  }

  #chooseVersion(): void {
    const share = this.#cluster.rangeStreamShare
    const isMixed = share > 0 && share < 1
    this.#hasRangeStream = isMixed ? this.process.world.random() < share : share === 1
  }

  // ---- space

  #hasSpace(cost: number): boolean {
    const { quotaBytes } = this.#cluster
    return cost === 0 || quotaBytes === 0 || this.databaseBytes + cost < quotaBytes
  }

  #withSpace(cost: number, reply: Reply, proceed: () => void): void {
    if (this.#hasSpace(cost)) proceed()
    else this.#raiseAlarm(() => reply(statuses.noSpace))
  }

  #raiseAlarm(done: () => void): void {
    this.#propose({ kind: 'alarm', action: 1, memberId: this.id, alarm: 1 }, 0, done)
  }

  // ---- proposals

  #propose(command: Command, cost: number, done: (result: Outcome['result']) => void): void {
    const number = ++this.#proposals
    const startedAt = this.process.world.now()
    const pending = {
      command,
      cost,
      origin: this.index,
      number,
      startedAt,
      isProposed: false,
      done,
    }
    this.#pending.set(number, pending)
    if (this.hasLeader) this.#offer(pending)
    if (!this.#hasTimeout) this.#armTimeout()
  }

  #offer(pending: Pending): void {
    pending.isProposed = true
    const isAccepted = this.leadership.propose(this.index, pending)
    if (!isAccepted) this.#finish(pending, statuses.proposalDropped)
  }

  #finish(pending: Pending, result: Outcome['result']): void {
    if (this.#pending.delete(pending.number)) pending.done(result)
  }

  /** One timer for all: it waits for the oldest. */
  #armTimeout(): void {
    const [oldest] = this.#pending.values()
    this.#hasTimeout = oldest !== undefined
    if (oldest === undefined) return
    const ms = oldest.startedAt + requestTimeoutMs - this.process.world.now()
    // At least a millisecond: a remainder from rounding would never pass.
    this.process.after(Math.max(1, ms), () => {
      const now = this.process.world.now()
      for (const pending of [...this.#pending.values()]) {
        if (pending.startedAt + requestTimeoutMs > now) break
        this.#finish(pending, this.#timeoutStatus(pending))
      }
      this.#armTimeout()
    })
  }

  #timeoutStatus({ isProposed, startedAt }: Pending): Status {
    if (!isProposed) return statuses.deadlineExceeded
    const { leader, electedAt } = this.leadership
    // Only a member that became leader itself says why.
    const isSuccessor = leader === this.index && startedAt < electedAt
    return isSuccessor ? statuses.timedOutLeaderFailure : statuses.timedOut
  }
}
