/** The checks of a transaction before it is proposed, with etcd's rules and their gaps. */
import type { Op, PutRequest, TxnRequest } from './codec/requests.ts'
import type { Status } from './status.ts'
import * as statuses from './status.ts'

/** `--max-txn-ops`. */
const opsMax = 128

export function checkTxn(txn: TxnRequest): Status | undefined {
  return checkOps(txn, opsMax) ?? checkDuplicates(txn.success) ?? checkDuplicates(txn.failure)
}

/** The number of operations is limited along each path through nested transactions. */
function checkOps(txn: TxnRequest, max: number): Status | undefined {
  const { compares, success, failure } = txn
  const count = Math.max(compares.length, success.length, failure.length)
  if (count > max) return statuses.tooManyOps
  if (compares.some(({ key }) => key === '')) return statuses.emptyKey
  for (const op of success) {
    const status = checkOp(op, max - count)
    if (status !== undefined) return status
  }
  for (const op of failure) {
    const status = checkOp(op, max - count)
    if (status !== undefined) return status
  }
  return undefined
}

function checkOp(op: Op | undefined, max: number): Status | undefined {
  if (op === undefined) return statuses.keyNotFound
  if (op.kind === 'txn') return checkOps(op, max)
  return op.key === '' ? statuses.emptyKey : undefined
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
  delete({ key, rawEnd }: { readonly key: string; readonly rawEnd: string }): void {
    this.deletes.push({ from: key, end: rawEnd === '' ? `${key}\0` : rawEnd })
  }

  put(key: string): void {
    this.#check(key)
    this.puts.add(key)
  }

  /** Only one of the branches of a nested transaction runs. */
  nested(success: Touched, failure: Touched): void {
    if (success.hasDuplicate || failure.hasDuplicate) this.hasDuplicate = true
    for (const key of success.puts) this.#check(key)
    for (const key of failure.puts) this.#check(key)
    for (const key of success.puts) this.puts.add(key)
    for (const key of failure.puts) this.puts.add(key)
    this.deletes.push(...success.deletes, ...failure.deletes)
  }

  #check(key: string): void {
    const isDeleted = this.deletes.some(({ from, end }) => from <= key && key < end)
    if (isDeleted || this.puts.has(key)) this.hasDuplicate = true
  }
}

function touchedBy(ops: readonly (Op | undefined)[]): Touched {
  const touched = new Touched()
  for (const op of ops) if (op?.kind === 'delete') touched.delete(op)
  for (const op of ops) {
    if (op?.kind === 'txn') touched.nested(touchedBy(op.success), touchedBy(op.failure))
  }
  for (const op of ops) if (op?.kind === 'put') touched.put(op.key)
  return touched
}

function checkDuplicates(ops: readonly (Op | undefined)[]): Status | undefined {
  // The usual case: nothing to compare with.
  if (ops.length < 2 && ops[0]?.kind !== 'txn') return undefined
  return touchedBy(ops).hasDuplicate ? statuses.duplicateKey : undefined
}

/** The order of the branches' operations does not matter: only ranges, so nothing to replicate. */
export function isReadOnly(txn: TxnRequest): boolean {
  return txn.success.every(isRange) && txn.failure.every(isRange)
}

function isRange(op: Op | undefined): boolean {
  return op?.kind === 'range'
}

/** A transaction without any operation counts as serializable, whatever it compares. */
export function isSerializable(txn: TxnRequest): boolean {
  const isLocal = (op: Op | undefined) => op?.kind === 'range' && op.serializable
  return txn.success.every(isLocal) && txn.failure.every(isLocal)
}

/** What the space quota charges for a transaction. Nested transactions are not counted. */
export function costOf(txn: TxnRequest): number {
  return Math.max(costOfOps(txn.success), costOfOps(txn.failure))
}

function costOfOps(ops: readonly (Op | undefined)[]): number {
  let cost = 0
  for (const op of ops) if (op?.kind === 'put') cost += costOfPut(op)
  return cost
}

export function costOfPut(put: PutRequest): number {
  return 256 + put.key.length + put.valueTo - put.valueFrom
}
