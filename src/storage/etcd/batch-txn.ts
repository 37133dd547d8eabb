/**
 * Composes operations on different keys into one etcd transaction, and splits its response into one
 * outcome per operation. Each operation is a nested transaction with its own compare, so that a
 * refused operation does not affect the others; it reads the current value in the same step.
 */

import type {
  ConnectionNumber,
  KeyValue,
  Txn,
  TxnOp,
  TxnOpResult,
  TxnResult,
} from '../../etcd/client.ts'
import type { Traced } from '../../lib/tracing/span.ts'
import { ChangeNumbering, type Version } from '../resource-version.ts'
import type { Fence } from '../storage.ts'
import { type PreparedValue, sealValue } from '../stored-form.ts'

/** A conditional write: applied only if the key still has the expected revision. */
export interface Operation extends Traced {
  /** The key in etcd. */
  readonly key: string
  /** The revision that last wrote the key; 0 when the key must not exist. */
  readonly expected: number
  /** The value to put; undefined deletes the key. */
  readonly value: PreparedValue | undefined
  readonly fence?: Fence | undefined
  /**
   * The newest connection when the key was read. The operation is not sent over later connections:
   * in another history the same revision may have written another value.
   */
  readonly connectionMax?: ConnectionNumber | undefined
}

export type Outcome =
  | { readonly applied: true; readonly version: Version; readonly writtenAtMs: number }
  /** Refused. `current` is the current value; undefined when the key does not exist. */
  | {
      readonly applied: false
      readonly current: KeyValue | undefined
      /** It was not sent: the connections up to `connectionMax` are lost. Read again. */
      readonly isOutdated?: true
    }

/** The index of a put is the position of its operation; see resource-version.ts. */
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
 * etcd applies its quota only to a transaction that contains a put, and 3.5 does not check nested
 * transactions: our puts would fill the disk without an alarm. So the outer transaction contains a
 * put where etcd looks for it: in the failure branch, which never runs because there is no compare.
 * From 3.6 on the nested puts are charged, and the larger of both branches counts.
 */
function neverPut(operations: readonly Operation[]): readonly TxnOp[] {
  const put = operations.find(({ value }) => value !== undefined)
  if (put === undefined) return []
  return [{ type: 'put', key: Buffer.from(put.key), value: Buffer.alloc(0) }]
}

/** One outcome per operation. Throws when the response does not fit the operations. */
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

/**
 * Approximate size of an operation in a request: three times its key, the key of its fence, its
 * value, and framing.
 */
export function operationBytes({ key, fence, value }: Operation): number {
  return key.length * 3 + (fence?.key.length ?? 0) + (value?.bytes.length ?? 0) + 48
}

function branches(operation: Operation, writtenAtMs: number, index: number): Txn {
  const { expected, value, fence } = operation
  const key = Buffer.from(operation.key)
  const write: TxnOp =
    value === undefined
      ? { type: 'delete', key }
      : { type: 'put', key, value: sealValue(value, writtenAtMs, index) }
  return {
    compare: [{ key, target: 'modRevision', to: expected }, ...fenceCompares(fence)],
    success: [write],
    failure: [{ type: 'range', key }],
  }
}

function fenceCompares(fence: Fence | undefined): NonNullable<Txn['compare']> {
  if (fence === undefined) return []
  return [{ key: Buffer.from(fence.key), target: 'modRevision', to: fence.revision }]
}

interface Branch {
  readonly succeeded: boolean
  readonly results: readonly TxnOpResult[]
}

function nestedAt(result: TxnResult, index: number): Branch {
  const nested = result.results[index]
  if (nested?.type !== 'txn') throw new Error(`no response to operation ${index}`)
  return nested
}

function foundBy(results: readonly TxnOpResult[]): KeyValue | undefined {
  const [read] = results
  if (read?.type !== 'range') throw new Error('a refused operation did not read the current value')
  return read.kvs[0]
}
