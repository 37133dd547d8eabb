/**
 * The state that members share, and what each committed entry of the history makes of it. An entry
 * is applied here once, when it is committed; each member then follows at its own pace.
 */
import type { MessageInitShape } from '@bufbuild/protobuf'
import {
  AlarmResponseSchema,
  CompactionResponseSchema,
  type Compare,
  type DeleteRangeRequest,
  type KeyValue,
  LeaseGrantResponseSchema,
  LeaseRevokeResponseSchema,
  type PutRequest,
  type RangeRequest,
  RangeResponseSchema,
  type RequestOp,
  type ResponseOpSchema,
  type TxnRequest,
  TxnResponseSchema,
} from '../../support/etcd-protocol/rpc_pb.ts'
import type { Release } from './contract.ts'
import { encode, endOf, nameOf } from './messages.ts'
import type { Status } from './status.ts'
import * as statuses from './status.ts'
import { type KeyRecord, Store, type StoreCopy, type StoredChange, type Version } from './store.ts'

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
  /** The first entry of a new leader. */
  | { readonly kind: 'elected' }
  | { readonly kind: 'txn'; readonly txn: TxnRequest }
  | { readonly kind: 'compact'; readonly revision: number }
  | { readonly kind: 'grant'; readonly id: bigint; readonly ttl: bigint }
  | { readonly kind: 'revoke'; readonly id: bigint }
  | {
      readonly kind: 'alarm'
      readonly action: number
      readonly memberId: bigint
      readonly alarm: number
    }

/** The header of a response, which names the member that replies. */
export interface Header {
  readonly memberId: bigint
  readonly revision: bigint
}

/** The response to a command, encoded for the member that replies. */
type Encode = (header: Header) => Buffer

/** The effect of a committed command, which is the same for every member. */
export interface Outcome {
  readonly result: Encode | Status
  readonly changes: readonly StoredChange[]
  /** The state after the command. */
  readonly revision: number
  readonly compacted: number
  readonly alarms: readonly Alarm[]
  readonly granted: Lease | undefined
  readonly revoked: bigint | undefined
}

export interface MachineCopy {
  readonly store: StoreCopy
  readonly leases: readonly (readonly [bigint, number])[]
  readonly alarms: readonly Alarm[]
}

/** How much of the history a member has applied. */
export interface View {
  readonly revision: number
  readonly compacted: number
}

type ResponseOp = MessageInitShape<typeof ResponseOpSchema>

/** A transaction with the branch that its compares chose. */
interface Choice {
  readonly succeeded: boolean
  readonly ops: readonly (RequestOp['request'] | { case: 'choice'; value: Choice })[]
}

export class Machine {
  readonly store: Store
  readonly leases: Map<bigint, Lease> = new Map()
  alarms: readonly Alarm[] = []

  readonly release: Release

  constructor(release: Release, copy?: MachineCopy, bump: number = 0) {
    this.release = release
    this.store = new Store(copy?.store, bump)
    if (copy === undefined) return
    this.alarms = copy.alarms
    for (const [id, ttlSeconds] of copy.leases) {
      this.leases.set(id, { id, ttlSeconds, keys: new Set() })
    }
    for (const { name, versions } of copy.store.records) {
      this.leases.get(versions.at(-1)?.kv.lease ?? 0n)?.keys.add(name)
    }
  }

  copy(): MachineCopy {
    const leases = [...this.leases.values()].map(({ id, ttlSeconds }) => [id, ttlSeconds] as const)
    return { store: this.store.copy(), leases, alarms: this.alarms }
  }

  apply(command: Command, cost: number): Outcome {
    const isRefused = cost > 0 && this.alarms.some(({ alarm }) => alarm === 1)
    const result = isRefused ? statuses.noSpace : this.#perform(command)
    const isDone = !isStatus(result)
    const { store, alarms } = this
    const changes = store.commit()
    return {
      result,
      changes,
      revision: store.revision,
      compacted: store.compacted,
      alarms,
      granted: isDone && command.kind === 'grant' ? this.leases.get(command.id) : undefined,
      revoked: isDone && command.kind === 'revoke' ? command.id : undefined,
    }
  }

  #perform(command: Command): Encode | Status {
    switch (command.kind) {
      case 'elected':
        return () => Buffer.alloc(0)
      case 'txn':
        return this.#txn(command.txn)
      case 'compact':
        return this.#compact(command.revision)
      case 'grant':
        return this.#grant(command.id, command.ttl)
      case 'revoke':
        return this.#revoke(command.id)
      case 'alarm': {
        const alarms = [...this.#alarm(command)]
        return (header) => encode(AlarmResponseSchema, { header, alarms })
      }
    }
  }

  /** A transaction that only reads. */
  readTxn(txn: TxnRequest, view: View): Encode | Status {
    const choice = choose(this.store, txn, view.revision)
    const status = checkRanges(choice, view)
    if (status !== undefined) return status
    return this.#txnResponse(choice, this.#run(choice, view.revision))
  }

  readRange(range: RangeRequest, view: View): Encode | Status {
    const response = this.findRange(range, view)
    if (isStatus(response)) return response
    return (header) => encode(RangeResponseSchema, { ...response, header })
  }

  findRange(range: RangeRequest, view: View): FoundRange | Status {
    if (range.revision > view.revision) return statuses.futureRevision
    if (range.revision > 0 && range.revision < view.compacted) return statuses.compacted
    return this.#rangeResponse(range, view.revision)
  }

  #txn(txn: TxnRequest): Encode | Status {
    const { store } = this
    const choice = choose(store, txn, store.revision)
    const status = this.#checkPuts(choice) ?? checkRanges(choice, store)
    if (status !== undefined) return status
    return this.#txnResponse(choice, this.#run(choice, undefined))
  }

  #txnResponse({ succeeded }: Choice, responses: ResponseOp[]): Encode {
    return (header) => encode(TxnResponseSchema, { header, succeeded, responses })
  }

  #checkPuts(choice: Choice): Status | undefined {
    for (const op of choice.ops) {
      if (op.case === 'choice') {
        const status = this.#checkPuts(op.value)
        if (status !== undefined) return status
      } else if (op.case === 'requestPut' && op.value.lease !== 0n) {
        if (!this.leases.has(op.value.lease)) return statuses.leaseNotFound
      }
    }
    return undefined
  }

  /** `revision`: what a read-only transaction sees; undefined: the newest, with its own changes. */
  #run(choice: Choice, revision: number | undefined): ResponseOp[] {
    return choice.ops.map((op) => {
      switch (op.case) {
        case 'requestPut':
          return { response: { case: 'responsePut', value: this.#put(op.value) } }
        case 'requestDeleteRange':
          return { response: { case: 'responseDeleteRange', value: this.#delete(op.value) } }
        case 'requestRange': {
          const value = this.#rangeResponse(op.value, revision ?? this.store.readRevision)
          return { response: { case: 'responseRange', value } }
        }
        case 'choice': {
          const responses = this.#run(op.value, revision)
          // Only the header of the outermost transaction has a revision.
          const value = { header: {}, succeeded: op.value.succeeded, responses }
          return { response: { case: 'responseTxn', value } }
        }
        default:
          throw new Error(`an operation of a checked transaction is ${op.case}`)
      }
    })
  }

  #rangeResponse(range: RangeRequest, current: number): FoundRange {
    const { countOnly, keysOnly } = range
    const revision = range.revision <= 0n ? current : Number(range.revision)
    const limit = Number(range.limit)
    const found = this.store.records(nameOf(range.key), endOf(range.rangeEnd), revision)
    const isLimited = !countOnly && limit > 0 && found.length > limit
    const records = countOnly ? [] : isLimited ? found.slice(0, limit) : found
    const kvs = records.map((record) => {
      const { kv } = record.at(revision) as Version
      return keysOnly ? this.#withoutValue(kv) : kv
    })
    const header = { revision: BigInt(current) }
    return { header, kvs, more: isLimited, count: BigInt(found.length) }
  }

  /** etcd 3.7 does not read the value, which has the lease as well. */
  #withoutValue(kv: KeyValue): KeyValue {
    const lease = this.release === '3.7' ? 0n : kv.lease
    return { ...kv, lease, value: new Uint8Array() }
  }

  #put({ key, value, lease, prevKv }: PutRequest) {
    const { store } = this
    const name = nameOf(key)
    const before = store.get(name, store.readRevision)
    store.put(name, value, lease)
    if (before !== undefined && before.lease !== lease) {
      this.leases.get(before.lease)?.keys.delete(name)
    }
    if (lease !== 0n) this.leases.get(lease)?.keys.add(name)
    return { header: this.#header(), prevKv: prevKv ? before : undefined }
  }

  #delete({ key, rangeEnd, prevKv }: DeleteRangeRequest) {
    const { store } = this
    const revision = store.readRevision
    const records = store.records(nameOf(key), endOf(rangeEnd), revision)
    const prevKvs = prevKv ? records.map((record) => (record.at(revision) as Version).kv) : []
    for (const record of records) this.#deleteRecord(record)
    return { header: this.#header(), deleted: BigInt(records.length), prevKvs }
  }

  #header() {
    return { revision: BigInt(this.store.readRevision) }
  }

  #deleteRecord(record: KeyRecord): void {
    const lease = record.versions.at(-1)?.kv.lease ?? 0n
    if (lease !== 0n) this.leases.get(lease)?.keys.delete(record.name)
    this.store.delete(record)
  }

  #compact(revision: number): Encode | Status {
    if (revision <= this.store.compacted) return statuses.compacted
    if (revision > this.store.revision) return statuses.futureRevision
    this.store.compacted = revision
    return (header) => encode(CompactionResponseSchema, { header })
  }

  #grant(id: bigint, ttl: bigint): Encode | Status {
    if (ttl > ttlMaxSeconds) return statuses.ttlTooLarge
    if (this.leases.has(id)) return statuses.leaseExists
    const ttlSeconds = Math.max(ttlMinSeconds, Number(ttl))
    this.leases.set(id, { id, ttlSeconds, keys: new Set<string>() })
    return (header) => encode(LeaseGrantResponseSchema, { header, id, ttl: BigInt(ttlSeconds) })
  }

  #revoke(id: bigint): Encode | Status {
    const lease = this.leases.get(id)
    if (lease === undefined) return statuses.leaseNotFound
    for (const key of [...lease.keys].sort()) {
      for (const record of this.store.records(key, undefined, this.store.readRevision)) {
        this.#deleteRecord(record)
      }
    }
    this.leases.delete(id)
    return (header) => encode(LeaseRevokeResponseSchema, { header })
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

export function isStatus(value: unknown): value is Status {
  return typeof value === 'object' && value !== null && 'code' in value
}

/** Every compare is evaluated before the transaction changes anything, nested ones too. */
function choose(store: Store, txn: TxnRequest, revision: number): Choice {
  const succeeded = txn.compare.every((compare) => holds(store, compare, revision))
  const ops = (succeeded ? txn.success : txn.failure).map(({ request }) =>
    request.case === 'requestTxn'
      ? { case: 'choice' as const, value: choose(store, request.value, revision) }
      : request,
  )
  return { succeeded, ops }
}

function checkRanges(choice: Choice, view: View): Status | undefined {
  for (const op of choice.ops) {
    if (op.case === 'choice') {
      const status = checkRanges(op.value, view)
      if (status !== undefined) return status
    } else if (op.case === 'requestRange' && op.value.revision !== 0n) {
      if (op.value.revision > view.revision) return statuses.futureRevision
      if (op.value.revision < view.compacted) return statuses.compacted
    }
  }
  return undefined
}

interface FoundRange {
  readonly header: { readonly revision: bigint }
  readonly kvs: KeyValue[]
  readonly more: boolean
  readonly count: bigint
}

function holds(store: Store, compare: Compare, revision: number): boolean {
  const end = endOf(compare.rangeEnd)
  if (end === undefined) return holdsFor(compare, store.get(nameOf(compare.key), revision))
  const records = store.records(nameOf(compare.key), end, revision)
  if (records.length === 0) return holdsFor(compare, undefined)
  return records.every((record) => holdsFor(compare, record.at(revision)?.kv))
}

const targets = ['version', 'createRevision', 'modRevision', 'value', 'lease'] as const

/** The numbers of a key that does not exist are 0, and every comparison of its value fails. */
function holdsFor(compare: Compare, kv: KeyValue | undefined): boolean {
  const target = targets[compare.target]
  if (kv === undefined && target === 'value') return false
  const order = orderOf(compare, kv)
  return [order === 0, order > 0, order < 0, order !== 0][compare.result] ?? true
}

/** An operand that does not belong to the target counts as 0, or as empty. */
function orderOf({ target, targetUnion }: Compare, kv: KeyValue | undefined): number {
  const name = targets[target]
  if (name === undefined) return 0
  if (name === 'value') {
    const operand = targetUnion.case === 'value' ? targetUnion.value : new Uint8Array()
    return Buffer.compare(kv?.value ?? new Uint8Array(), operand)
  }
  const operand = targetUnion.case === name ? targetUnion.value : 0n
  const actual = kv?.[name] ?? 0n
  return actual < operand ? -1 : actual > operand ? 1 : 0
}
