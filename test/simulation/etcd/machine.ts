/**
 * The replicated state: what the committed entries of the log make of it. Entries are applied here
 * once, when they are committed; each member then follows at its own pace.
 */
import type {
  CompareRequest,
  DeleteRequest,
  Op,
  PutRequest,
  RangeRequest,
  TxnRequest,
} from './codec/requests.ts'
import type { Status } from './status.ts'
import * as statuses from './status.ts'
import {
  type KeyRecord,
  Store,
  type StoreCopy,
  type StoredChange,
  type Version,
  valueIn,
} from './store/store.ts'

/** Shorter leases are extended to this: one and a half election timeouts, rounded up. */
const ttlMinSeconds = 2
const ttlMaxSeconds = 9_000_000_000n

export interface Lease {
  readonly id: bigint
  readonly ttlSeconds: number
  readonly keys: Set<string>
}

export interface Alarm {
  readonly memberId: bigint
  /** 1: no space. 2: corrupt. */
  readonly alarm: number
}

export type Command =
  | { readonly kind: 'empty' }
  /** What is left of another command that was applied. */
  | { readonly kind: 'done' }
  | TxnRequest
  | PutRequest
  | DeleteRequest
  | { readonly kind: 'compact'; readonly revision: number }
  | { readonly kind: 'grant'; readonly id: bigint; readonly ttl: bigint }
  | { readonly kind: 'revoke'; readonly id: bigint }
  | {
      readonly kind: 'alarm'
      readonly action: number
      readonly memberId: bigint
      readonly alarm: number
    }

export type OpResult =
  | {
      readonly kind: 'range'
      readonly revision: number
      readonly versions: readonly Version[]
      readonly count: number
      readonly more: boolean
      readonly keysOnly: boolean
    }
  | { readonly kind: 'put'; readonly revision: number; readonly prev: Version | undefined }
  | {
      readonly kind: 'delete'
      readonly revision: number
      readonly deleted: number
      readonly prevs: readonly Version[]
    }
  | TxnResult

export interface TxnResult {
  readonly kind: 'txn'
  /** 0 for a nested transaction: only the outermost has a revision. */
  revision: number
  readonly succeeded: boolean
  readonly results: readonly OpResult[]
}

export type Result =
  | OpResult
  | { readonly kind: 'grant'; readonly lease: Lease }
  | { readonly kind: 'alarm'; readonly alarms: readonly Alarm[] }
  | undefined

/** What became of a committed entry: the same for every member. */
export interface Outcome {
  readonly status: Status | undefined
  /** For the member that replies; dropped when it has. */
  result: Result
  readonly changes: readonly StoredChange[]
  /** The state after the entry. */
  readonly revision: number
  readonly compacted: number
  readonly leases: { readonly granted?: Lease; readonly revoked?: bigint } | undefined
  readonly alarms: readonly Alarm[]
}

export interface MachineCopy {
  readonly store: StoreCopy
  readonly leases: readonly (readonly [bigint, number])[]
  readonly alarms: readonly Alarm[]
}

/** A transaction with the branch that its compares chose. */
interface Choice {
  readonly succeeded: boolean
  readonly ops: readonly (Op | undefined)[]
  /** For the nested transactions of the branch, in order. */
  readonly nested: readonly Choice[]
}

const noChoices: readonly Choice[] = []
const noVersions: readonly Version[] = []

export class Machine {
  readonly store: Store
  readonly leases: Map<bigint, Lease> = new Map()
  alarms: readonly Alarm[] = []
  #leaseChange: Outcome['leases']

  constructor(copy?: MachineCopy, bump: number = 0) {
    this.store = new Store(copy?.store, bump)
    if (copy === undefined) return
    this.alarms = copy.alarms
    for (const [id, ttlSeconds] of copy.leases) {
      this.leases.set(id, { id, ttlSeconds, keys: new Set() })
    }
    for (const { name, versions } of copy.store.records) {
      const lease = versions.at(-1)?.lease ?? 0n
      if (lease !== 0n) this.leases.get(lease)?.keys.add(name)
    }
  }

  copy(): MachineCopy {
    const leases = [...this.leases.values()].map(({ id, ttlSeconds }) => [id, ttlSeconds] as const)
    return { store: this.store.copy(), leases, alarms: this.alarms }
  }

  /** NOSPACE: etcd then refuses what needs space. */
  get isFull(): boolean {
    return this.alarms.length > 0 && this.alarms.some(({ alarm }) => alarm === 1)
  }

  apply(command: Command, cost: number): Outcome {
    this.#leaseChange = undefined
    let result: Result
    let status: Status | undefined
    if (cost > 0 && this.isFull) status = statuses.noSpace
    else {
      const made = this.#perform(command)
      if (isStatus(made)) status = made
      else result = made
    }
    const { store, alarms } = this
    const changes = store.commit()
    const { revision, compacted } = store
    return { status, result, changes, revision, compacted, leases: this.#leaseChange, alarms }
  }

  #perform(command: Command): Result | Status {
    switch (command.kind) {
      case 'empty':
      case 'done':
        return undefined
      case 'txn':
        return this.#txn(command)
      case 'put':
        if (command.lease !== 0n && !this.leases.has(command.lease)) return statuses.leaseNotFound
        return this.#put(command)
      case 'delete':
        return this.#delete(command)
      case 'compact':
        return this.#compact(command.revision)
      case 'grant':
        return this.#grant(command.id, command.ttl)
      case 'revoke':
        return this.#revoke(command.id)
      case 'alarm':
        return { kind: 'alarm', alarms: this.#alarm(command) }
    }
  }

  /** A transaction that only reads, on a member whose state is as of `revision`. */
  readTxn(
    txn: TxnRequest,
    view: { readonly revision: number; readonly compacted: number },
  ): TxnResult | Status {
    const choice = choose(this.store, txn, view.revision)
    const status = checkRanges(choice, view)
    if (status !== undefined) return status
    const results = choice.ops.map((op) =>
      rangeResult(this.store, op as RangeRequest, view.revision),
    )
    return { kind: 'txn', revision: view.revision, succeeded: choice.succeeded, results }
  }

  readRange(
    range: RangeRequest,
    view: { readonly revision: number; readonly compacted: number },
  ): OpResult | Status {
    if (range.revision > view.revision) return statuses.futureRevision
    const revision = range.revision <= 0 ? view.revision : range.revision
    if (revision < view.compacted) return statuses.compacted
    return rangeResult(this.store, range, view.revision)
  }

  #txn(txn: TxnRequest): TxnResult | Status {
    const { store } = this
    const choice = choose(store, txn, store.revision)
    const status = this.#checkPuts(choice) ?? checkRanges(choice, store)
    if (status !== undefined) return status
    const results = this.#run(choice)
    return { kind: 'txn', revision: store.readRevision, succeeded: choice.succeeded, results }
  }

  #checkPuts(choice: Choice): Status | undefined {
    let nested = 0
    for (const op of choice.ops) {
      if (op === undefined) continue
      if (op.kind === 'txn') {
        const status = this.#checkPuts(choice.nested[nested++] as Choice)
        if (status !== undefined) return status
      } else if (op.kind === 'put' && op.lease !== 0n && !this.leases.has(op.lease)) {
        return statuses.leaseNotFound
      }
    }
    return undefined
  }

  #run(choice: Choice): OpResult[] {
    const results: OpResult[] = []
    let nested = 0
    for (const op of choice.ops) {
      if (op === undefined) continue
      if (op.kind === 'put') results.push(this.#put(op))
      else if (op.kind === 'delete') results.push(this.#delete(op))
      else if (op.kind === 'range') {
        results.push(rangeResult(this.store, op, this.store.readRevision))
      } else {
        const inner = choice.nested[nested++] as Choice
        const { succeeded } = inner
        results.push({ kind: 'txn', revision: 0, succeeded, results: this.#run(inner) })
      }
    }
    return results
  }

  #put(put: PutRequest): OpResult {
    const { store } = this
    const { key, lease } = put
    const before = store.get(key, store.readRevision)
    store.put(put)
    if (before !== undefined && before.lease !== lease) {
      this.leases.get(before.lease)?.keys.delete(key)
    }
    if (lease !== 0n) this.leases.get(lease)?.keys.add(key)
    return { kind: 'put', revision: store.readRevision, prev: put.prevKv ? before : undefined }
  }

  #delete(request: DeleteRequest): OpResult {
    const { store } = this
    const revision = store.readRevision
    const records = store.records(request.key, request.end, revision)
    const prevs = request.prevKv
      ? records.map((record) => record.at(revision) as Version)
      : noVersions
    for (const record of records) this.#deleteRecord(record)
    return { kind: 'delete', revision: store.readRevision, deleted: records.length, prevs }
  }

  #deleteRecord(record: KeyRecord): void {
    const lease = record.versions.at(-1)?.lease ?? 0n
    if (lease !== 0n) this.leases.get(lease)?.keys.delete(record.name)
    this.store.delete(record)
  }

  #compact(revision: number): Status | undefined {
    if (revision <= this.store.compacted) return statuses.compacted
    if (revision > this.store.revision) return statuses.futureRevision
    this.store.compacted = revision
    return undefined
  }

  #grant(id: bigint, ttl: bigint): Result | Status {
    if (ttl > ttlMaxSeconds) return statuses.ttlTooLarge
    if (this.leases.has(id)) return statuses.leaseExists
    const lease = { id, ttlSeconds: Math.max(ttlMinSeconds, Number(ttl)), keys: new Set<string>() }
    this.leases.set(id, lease)
    this.#leaseChange = { granted: lease }
    return { kind: 'grant', lease }
  }

  #revoke(id: bigint): Status | undefined {
    const lease = this.leases.get(id)
    if (lease === undefined) return statuses.leaseNotFound
    for (const key of [...lease.keys].sort()) {
      for (const record of this.store.records(key, undefined, this.store.readRevision)) {
        this.#deleteRecord(record)
      }
    }
    this.leases.delete(id)
    this.#leaseChange = { revoked: id }
    return undefined
  }

  #alarm(command: Command & { readonly kind: 'alarm' }): readonly Alarm[] {
    const { action, memberId, alarm } = command
    if (action === 0) return this.alarms.filter((one) => alarm === 0 || one.alarm === alarm)
    const isSame = (one: Alarm) => one.alarm === alarm && one.memberId === memberId
    const found = this.alarms.find(isSame)
    if (action === 1) {
      if (alarm === 0) return []
      if (found !== undefined) return [found]
      const raised = { memberId, alarm }
      this.alarms = [...this.alarms, raised]
      return [raised]
    }
    if (found === undefined) return []
    this.alarms = this.alarms.filter((one) => one !== found)
    return [found]
  }
}

export function isStatus(value: object | undefined): value is Status {
  return value !== undefined && 'code' in value
}

/** Every compare is evaluated before the transaction changes anything, nested ones too. */
function choose(store: Store, txn: TxnRequest, revision: number): Choice {
  const succeeded = txn.compares.every((compare) => holds(store, compare, revision))
  const ops = succeeded ? txn.success : txn.failure
  let nested: Choice[] | undefined
  for (const op of ops) {
    if (op?.kind !== 'txn') continue
    nested ??= []
    nested.push(choose(store, op, revision))
  }
  return { succeeded, ops, nested: nested ?? noChoices }
}

function checkRanges(
  choice: Choice,
  view: { readonly revision: number; readonly compacted: number },
): Status | undefined {
  let nested = 0
  for (const op of choice.ops) {
    if (op?.kind === 'txn') {
      const status = checkRanges(choice.nested[nested++] as Choice, view)
      if (status !== undefined) return status
    } else if (op?.kind === 'range' && op.revision !== 0) {
      if (op.revision > view.revision) return statuses.futureRevision
      if (op.revision < view.compacted) return statuses.compacted
    }
  }
  return undefined
}

function rangeResult(store: Store, range: RangeRequest, current: number): OpResult {
  const revision = range.revision <= 0 ? current : range.revision
  const { limit } = range
  // One more than the limit, to know whether there are more.
  const found = store.range(range, revision, limit > 0 ? limit + 1 : 0)
  const { count } = found
  const more = !range.countOnly && limit > 0 && found.versions.length > limit
  if (more) found.versions.length = limit
  const versions = range.countOnly ? noVersions : found.versions
  return { kind: 'range', revision: current, versions, count, more, keysOnly: range.keysOnly }
}

function holds(store: Store, compare: CompareRequest, revision: number): boolean {
  if (compare.end === undefined) {
    return holdsFor(compare, store.get(compare.key, revision))
  }
  const { versions } = store.range(compare, revision, 0)
  if (versions.length === 0) return holdsFor(compare, undefined)
  return versions.every((version) => holdsFor(compare, version))
}

/** For a key that does not exist every number is 0, and every comparison of its value fails. */
function holdsFor(compare: CompareRequest, version: Version | undefined): boolean {
  if (version === undefined && compare.target === 3) return false
  const order = orderOf(compare, version)
  switch (compare.result) {
    case 0:
      return order === 0
    case 1:
      return order > 0
    case 2:
      return order < 0
    case 3:
      return order !== 0
    default:
      return true
  }
}

/** An operand that does not belong to the target counts as 0, or as empty. */
function orderOf(compare: CompareRequest, version: Version | undefined): number {
  const { target, field } = compare
  if (target === 3) {
    const operand = field === 7 ? compare.value : Buffer.alloc(0)
    return Buffer.compare(version === undefined ? Buffer.alloc(0) : valueIn(version), operand)
  }
  if (target === 4) {
    const lease = version?.lease ?? 0n
    const operand = field === 8 ? compare.lease : 0n
    return lease < operand ? -1 : lease > operand ? 1 : 0
  }
  const operand = field === target + 4 ? compare.number : 0
  const actual = numberOf(target, version)
  return actual - operand
}

function numberOf(target: number, version: Version | undefined): number {
  if (version === undefined) return 0
  if (target === 0) return version.version
  if (target === 1) return version.createRevision
  return target === 2 ? version.revision : 0
}
