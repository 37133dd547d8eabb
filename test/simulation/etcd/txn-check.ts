/** The checks of a transaction before it is proposed, with etcd's rules and their gaps. */
import type { PutRequest, RequestOp, TxnRequest } from '../../support/etcd-protocol/rpc_pb.ts'
import type { Release } from './contract.ts'
import { nameOf } from './messages.ts'
import type { Status } from './status.ts'
import * as statuses from './status.ts'

/** `--max-txn-ops`. */
const opsMax = 128

export function checkTxn(txn: TxnRequest): Status | undefined {
  return checkOps(txn, opsMax) ?? checkDuplicates(txn.success) ?? checkDuplicates(txn.failure)
}

/** The number of operations is limited along each path through nested transactions. */
function checkOps(txn: TxnRequest, max: number): Status | undefined {
  const { compare, success, failure } = txn
  const count = Math.max(compare.length, success.length, failure.length)
  if (count > max) return statuses.tooManyOps
  if (compare.some(({ key }) => key.length === 0)) return statuses.emptyKey
  for (const op of [...success, ...failure]) {
    const status = checkOp(op, max - count)
    if (status !== undefined) return status
  }
  return undefined
}

function checkOp({ request }: RequestOp, max: number): Status | undefined {
  if (request.case === undefined) return statuses.keyNotFound
  if (request.case === 'requestTxn') return checkOps(request.value, max)
  return request.value.key.length === 0 ? statuses.emptyKey : undefined
}

/**
 * Keys that the operations of one level put or delete. A key may be put once, and not be both put
 * and deleted. Like etcd's check this has gaps: puts of a nested transaction are compared with the
 * deletes before it only, and a delete up to the end of all keys ('\0') is compared as the empty
 * interval that it would be as a string.
 */
class Touched {
  readonly puts: Set<string> = new Set()
  readonly deletes: { readonly from: string; readonly end: string }[] = []
  hasDuplicate = false

  /** A single key ends before the next possible key. */
  delete(key: string, end: string): void {
    this.deletes.push({ from: key, end: end === '' ? `${key}\0` : end })
  }

  put(key: string): void {
    this.#check(key)
    this.puts.add(key)
  }

  /** Only one of the branches of a nested transaction runs. */
  nested(success: Touched, failure: Touched): void {
    if (success.hasDuplicate || failure.hasDuplicate) this.hasDuplicate = true
    const puts = [...success.puts, ...failure.puts]
    for (const key of puts) this.#check(key)
    for (const key of puts) this.puts.add(key)
    this.deletes.push(...success.deletes, ...failure.deletes)
  }

  #check(key: string): void {
    const isDeleted = this.deletes.some(({ from, end }) => from <= key && key < end)
    if (isDeleted || this.puts.has(key)) this.hasDuplicate = true
  }
}

/** etcd looks at deletes first, then at nested transactions, then at puts. */
function touchedBy(ops: readonly RequestOp[]): Touched {
  const touched = new Touched()
  for (const { request } of ops) {
    if (request.case !== 'requestDeleteRange') continue
    touched.delete(nameOf(request.value.key), nameOf(request.value.rangeEnd))
  }
  for (const { request } of ops) {
    if (request.case !== 'requestTxn') continue
    touched.nested(touchedBy(request.value.success), touchedBy(request.value.failure))
  }
  for (const { request } of ops) {
    if (request.case === 'requestPut') touched.put(nameOf(request.value.key))
  }
  return touched
}

function checkDuplicates(ops: readonly RequestOp[]): Status | undefined {
  // The usual case: nothing to compare with.
  if (ops.length < 2 && ops[0]?.request.case !== 'requestTxn') return undefined
  return touchedBy(ops).hasDuplicate ? statuses.duplicateKey : undefined
}

/** Whether both branches have only ranges, so that there is nothing to replicate. */
export function isReadOnly({ success, failure }: TxnRequest): boolean {
  return [...success, ...failure].every(({ request }) => request.case === 'requestRange')
}

/** A transaction without any operation counts as serializable, whatever it compares. */
export function isSerializable({ success, failure }: TxnRequest): boolean {
  return [...success, ...failure].every(
    ({ request }) => request.case === 'requestRange' && request.value.serializable,
  )
}

/** What the space quota charges for a transaction. etcd 3.5 does not count nested transactions. */
export function costOf(txn: TxnRequest, release: Release): number {
  const costOfOps = (ops: readonly RequestOp[]): number => {
    let cost = 0
    for (const { request } of ops) {
      if (request.case === 'requestPut') cost += costOfPut(request.value)
      else if (request.case === 'requestTxn' && release !== '3.5') {
        cost += costOf(request.value, release)
      }
    }
    return cost
  }
  return Math.max(costOfOps(txn.success), costOfOps(txn.failure))
}

function costOfPut({ key, value }: PutRequest): number {
  return 256 + key.length + value.length
}
