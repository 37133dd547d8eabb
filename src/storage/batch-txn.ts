/**
 * Operations on different keys as one etcd transaction, and its answer taken apart again. Each
 * operation sits in a transaction of its own with its own compare, so that one which is refused
 * changes nothing for the others; what is there instead is read in the same step.
 */
import type {
  ConnectionNumber,
  KeyValue,
  Txn,
  TxnOp,
  TxnOpResult,
  TxnResult,
} from '../etcd/client.ts'
import { ChangeNumbering, type Version } from './resource-version.ts'
import { type PreparedValue, sealValue } from './stored-form.ts'

/** A write that happens only if the key is as it was last seen. */
export interface Operation {
  /** The key in etcd. */
  readonly key: string
  /** The revision that last wrote the key; 0 when there must be no such key. */
  readonly expected: number
  /** What to put; undefined deletes. */
  readonly value: PreparedValue | undefined
  /**
   * The newest connection when the key was seen so. It is not sent over later ones: in another history
   * the same revision may have left something else.
   */
  readonly connectionMax?: ConnectionNumber | undefined
}

export type Outcome =
  | { readonly applied: true; readonly version: Version; readonly writtenAtMs: number }
  /** With what is there instead; undefined when nothing is. */
  | {
      readonly applied: false
      readonly current: KeyValue | undefined
      /** It was not sent, as the connections it may go over are gone. Look again. */
      readonly isOutdated?: true
    }

/** The index of a put is the place of its operation; see resource-version.ts. */
export function composeTxn(operations: readonly Operation[], writtenAtMs: number): Txn {
  const [first] = operations
  if (operations.length === 1 && first !== undefined) return branches(first, writtenAtMs, 0)
  return {
    success: operations.map((operation, index) => ({
      type: 'txn',
      ...branches(operation, writtenAtMs, index),
    })),
    failure: neverPut(operations),
  }
}

/**
 * etcd holds a transaction to its quota only if it finds a put in it, and does not look into nested
 * ones: our puts would fill the disk past every alarm. So there is a put where it looks, in the
 * branch that never runs, because the transaction as a whole has no condition.
 */
function neverPut(operations: readonly Operation[]): readonly TxnOp[] {
  const put = operations.find(({ value }) => value !== undefined)
  if (put === undefined) return []
  return [{ type: 'put', key: Buffer.from(put.key), value: Buffer.alloc(0) }]
}

/** One outcome per operation. Throws when the answer is not one to this question. */
export function readOutcomes(
  operations: readonly Operation[],
  result: TxnResult,
  writtenAtMs: number,
): readonly Outcome[] {
  const numbering = new ChangeNumbering()
  return operations.map((operation, index) => {
    const own = operations.length === 1 ? result : nestedAt(result, index)
    if (!own.succeeded) return { applied: false, current: foundBy(own.results) }
    const version =
      operation.value === undefined
        ? numbering.delete(result.revision)
        : numbering.put(result.revision, index)
    if (version === undefined) throw new Error(`no version for operation ${index}`)
    return { applied: true, version, writtenAtMs }
  })
}

/** About what an operation adds to the size of a request: its key thrice, its value, and framing. */
export function operationBytes(operation: Operation): number {
  return operation.key.length * 3 + (operation.value?.bytes.length ?? 0) + 48
}

function branches(operation: Operation, writtenAtMs: number, index: number): Txn {
  const { expected, value } = operation
  const key = Buffer.from(operation.key)
  const write: TxnOp =
    value === undefined
      ? { type: 'delete', key }
      : { type: 'put', key, value: sealValue(value, writtenAtMs, index) }
  return {
    compare: [{ key, target: 'modRevision', to: expected }],
    success: [write],
    failure: [{ type: 'range', key }],
  }
}

interface Branch {
  readonly succeeded: boolean
  readonly results: readonly TxnOpResult[]
}

function nestedAt(result: TxnResult, index: number): Branch {
  const nested = result.results[index]
  if (nested?.type !== 'txn') throw new Error(`no answer to operation ${index}`)
  return nested
}

function foundBy(results: readonly TxnOpResult[]): KeyValue | undefined {
  const [read] = results
  if (read?.type !== 'range') throw new Error('a refused operation did not read what is there')
  return read.kvs[0]
}
