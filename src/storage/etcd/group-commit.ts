/**
 * Group commit: batches concurrent writes into shared etcd transactions.
 *
 * A transaction costs etcd and us about the same with one write or with a hundred. So writes are
 * queued while transactions are in flight, and the next free slot sends the queue as one batch.
 * There is no batching timer: a single write is sent alone, at the end of the event-loop tick in
 * which it arrived.
 *
 * A key is in at most one transaction in flight; further writes of the key keep their order.
 *
 * Every operation ends in exactly one of: applied; refused, with the current value; or a
 * StorageError. Only with `timeout` is it unknown whether the write was applied. An operation is
 * retried only when its transaction was certainly not applied.
 */
import type { EtcdClient } from '../../etcd/client.ts'
import { EtcdError } from '../../etcd/errors.ts'
import { type Clock, monotonicClock } from '../../lib/clock.ts'
import { BatchTrace, type TracedWrite, waitsInQueue } from '../../lib/tracing/batch-trace.ts'
import { StorageError } from '../errors.ts'
import type { OwnWrites } from '../own-writes.ts'
import {
  composeTxn,
  type Operation,
  type Outcome,
  operationBytes,
  readOutcomes,
} from './batch-txn.ts'
import type { EtcdAvailability } from './etcd-availability.ts'
import { storageErrorOfWrite } from './etcd-errors.ts'
import type { PrefixCheck } from './prefix-check.ts'
import type { QuotaAlarm } from './quota-alarm.ts'

/** etcd accepts 128 operations and 1.5 MiB by default; the rest is for framing. */
const batchOperationsMax = 100
const batchBytesMax = 1024 * 1024
/** One is being committed while the next is sent; more would only make batches smaller. */
const batchesInFlightMax = 2
/** The single writes in flight without grouping: as many as etcd can use. */
const singlesInFlightMax = 256
/** Half a second of the maximum throughput of one etcd. */
const waitingOperationsMax = 10_000
const waitingBytesMax = 64 * 1024 * 1024
/** Shorter than etcd's own timeout of some 7 s for a write that it forwarded to a dead leader. */
const txnTimeoutMs = 3_000
/** How long after its arrival an operation may still be sent. */
const sendWithinMs = 5_000
const retryAfterMs = 1_000
/** Often enough that no table survives two collections of the young generation. */
const mapRenewedEvery = 256

export interface GroupCommitOptions {
  readonly client: Pick<EtcdClient, 'txn'>
  /** Default true. False sends every operation in its own transaction. */
  readonly grouped?: boolean | undefined
  readonly waitingOperationsMax?: number | undefined
  readonly waitingBytesMax?: number | undefined
  /** Wall-clock time in ms, for the headers of stored values. */
  readonly now?: (() => number) | undefined
  /** The clock of deadlines. */
  readonly clock?: Clock | undefined
  /** Rejects unsent operations while etcd is unavailable. */
  readonly availability?:
    | Pick<EtcdAvailability, 'outageSignal' | 'refusal' | 'onOutage'>
    | undefined
  /** Gets notified when etcd is full; then rejects unsent puts, while deletes continue. */
  readonly quotaAlarm?:
    | (Pick<QuotaAlarm, 'refusal' | 'onFull'> & Partial<Pick<QuotaAlarm, 'onWritten'>>)
    | undefined
  /** Rejects all writes until the keys under the prefix have been checked. */
  readonly check?: Pick<PrefixCheck, 'refusal'> | undefined
  /** Gets each batch before it is sent. */
  readonly ownWrites?: Pick<OwnWrites, 'sending' | 'failed'> | undefined
  /** Called for each transaction that got a response, for metrics. */
  readonly onCommit?: ((operations: number) => void) | undefined
}

/** An operation from its arrival to its end; a linked list, so that queues cost nothing. */
interface Queued extends Operation, TracedWrite {
  readonly bytes: number
  readonly sendBefore: number
  readonly resolve: (outcome: Outcome) => void
  readonly reject: (error: StorageError) => void
  /** etcd refused its transaction because of the size: send it alone. */
  alone: boolean
  /** The next operation in the queue of sendable operations. */
  next: Queued | undefined
  /** The next operation on the same key. */
  nextOnKey: Queued | undefined
}

export class GroupCommit {
  readonly #options: GroupCommitOptions
  readonly #clock: Clock
  readonly #now: () => number
  readonly #operationsMax: number
  readonly #inFlightMax: number
  /** The queue of sendable operations: one per key, none on a key that is in flight. */
  #first: Queued | undefined
  #last: Queued | undefined
  /** The operation of each key that arrived last, queued or in flight. */
  #lastOnKey = new Map<string, Queued>()
  #finished = 0
  #queuedOperations = 0
  #queuedBytes = 0
  #inFlight = 0
  #isScheduled = false
  #closing: PromiseWithResolvers<void> | undefined

  constructor(options: GroupCommitOptions) {
    this.#options = options
    this.#clock = options.clock ?? monotonicClock
    this.#now = options.now ?? Date.now
    const grouped = options.grouped ?? true
    this.#operationsMax = grouped ? batchOperationsMax : 1
    this.#inFlightMax = grouped ? batchesInFlightMax : singlesInFlightMax
    options.availability?.onOutage(() => this.#rejectQueued())
  }

  get waiting(): { readonly operations: number; readonly bytes: number } {
    return { operations: this.#queuedOperations, bytes: this.#queuedBytes }
  }

  submit(operation: Operation): Promise<Outcome> {
    const bytes = operationBytes(operation)
    const refusal = this.#refuse(operation, bytes)
    if (refusal !== undefined) return Promise.reject(refusal)
    return new Promise((resolve, reject) => {
      const queued: Queued = {
        key: operation.key,
        expected: operation.expected,
        value: operation.value,
        fence: operation.fence,
        connectionMax: operation.connectionMax,
        span: operation.span,
        step: undefined,
        bytes,
        sendBefore: this.#clock.now() + sendWithinMs,
        resolve,
        reject,
        alone: false,
        next: undefined,
        nextOnKey: undefined,
      }
      waitsInQueue(queued)
      this.#queuedOperations++
      this.#queuedBytes += bytes
      const before = this.#lastOnKey.get(operation.key)
      this.#lastOnKey.set(operation.key, queued)
      if (before === undefined) this.#append(queued)
      else before.nextOnKey = queued
    })
  }

  /** Rejects new operations; resolves when all accepted operations have ended. */
  close(): Promise<void> {
    this.#closing ??= Promise.withResolvers()
    this.#schedule()
    return this.#closing.promise
  }

  #refuse(operation: Operation, bytes: number): StorageError | undefined {
    if (this.#closing !== undefined) {
      return new StorageError({
        kind: 'unavailable',
        message: 'this replica is shutting down',
        retryAfterMs,
      })
    }
    const outage = this.#options.availability?.refusal() ?? this.#options.check?.refusal()
    if (outage !== undefined) return outage
    const quotaRefusal = this.#quotaRefusal(operation)
    if (quotaRefusal !== undefined) return quotaRefusal
    const operationsMax = this.#options.waitingOperationsMax ?? waitingOperationsMax
    const bytesMax = this.#options.waitingBytesMax ?? waitingBytesMax
    const hasRoom = this.#queuedOperations < operationsMax && this.#queuedBytes + bytes <= bytesMax
    if (hasRoom) return undefined
    return new StorageError({
      kind: 'overloaded',
      message: `${this.#queuedOperations} writes are already queued for etcd`,
      retryAfterMs,
    })
  }

  /** Rejects puts while etcd is full: they would make the deletes of their transaction fail too. */
  #quotaRefusal(operation: Operation): StorageError | undefined {
    return operation.value === undefined ? undefined : this.#options.quotaAlarm?.refusal()
  }

  #append(operation: Queued): void {
    if (this.#last === undefined) this.#first = operation
    else this.#last.next = operation
    this.#last = operation
    this.#schedule()
  }

  /** Puts the batch back to the front of the queue, in order. */
  #requeue(batch: readonly Queued[]): void {
    for (const operation of batch.toReversed()) {
      waitsInQueue(operation)
      operation.next = this.#first
      this.#first = operation
      this.#last ??= operation
      this.#queuedOperations++
      this.#queuedBytes += operation.bytes
    }
  }

  /** Operations that arrive in one event-loop tick are sent together. */
  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      this.#sendQueued()
    })
  }

  #sendQueued(): void {
    this.#rejectQueued()
    while (this.#inFlight < this.#inFlightMax && this.#first !== undefined) {
      const batch = this.#takeBatch()
      if (batch.length > 0) void this.#send(batch)
    }
    if (this.#inFlight === 0 && this.#first === undefined) this.#closing?.resolve()
  }

  /** During an outage of etcd: queued operations were not sent and will not be. */
  #rejectQueued(): void {
    const outage = this.#options.availability?.refusal()
    if (outage === undefined) return
    while (this.#first !== undefined) this.#rejectFirst(this.#first, outage)
  }

  #takeBatch(): readonly Queued[] {
    const batch: Queued[] = []
    const now = this.#clock.now()
    let bytes = 0
    while (batch.length < this.#operationsMax) {
      const first = this.#first
      if (first === undefined) break
      const refusal = now > first.sendBefore ? tooLate() : this.#quotaRefusal(first)
      if (refusal !== undefined) {
        this.#rejectFirst(first, refusal)
        continue
      }
      if (!this.#fits(first, batch, bytes)) break
      this.#removeFirst(first)
      batch.push(first)
      bytes += first.bytes
    }
    return batch
  }

  #removeFirst(first: Queued): void {
    this.#first = first.next
    if (this.#first === undefined) this.#last = undefined
    first.next = undefined
    this.#queuedOperations--
    this.#queuedBytes -= first.bytes
  }

  #rejectFirst(first: Queued, error: StorageError): void {
    this.#removeFirst(first)
    first.step?.end(error)
    first.reject(error)
    this.#finish(first)
  }

  #fits(operation: Queued, batch: readonly Queued[], bytes: number): boolean {
    const [first] = batch
    if (first === undefined) return true
    return !first.alone && !operation.alone && bytes + operation.bytes <= batchBytesMax
  }

  async #send(batch: readonly Queued[]): Promise<void> {
    this.#inFlight++
    const writtenAtMs = this.#now()
    const trace = BatchTrace.begin(batch)
    let outcomes: readonly Outcome[] | undefined
    let failure: unknown
    try {
      const txn = composeTxn(batch, writtenAtMs)
      this.#options.ownWrites?.sending(batch)
      const cancelIfSafe = this.#options.availability?.outageSignal
      const connectionMax = connectionMaxOf(batch)
      const span = trace?.span
      const options = { timeoutMs: txnTimeoutMs, cancelIfSafe, connectionMax, span }
      const result = await this.#options.client.txn(txn, options)
      outcomes = readOutcomes(batch, result, writtenAtMs)
    } catch (error) {
      failure = error
    }
    this.#inFlight--
    trace?.end(failure)
    if (outcomes === undefined) this.#onFailure(batch, failure)
    else this.#onOutcomes(batch, outcomes)
    this.#schedule()
  }

  #onOutcomes(batch: readonly Queued[], outcomes: readonly Outcome[]): void {
    let bytes = 0
    batch.forEach((operation, index) => {
      const outcome = outcomes[index]
      if (outcome?.applied === true) bytes += operation.bytes
      else this.#options.ownWrites?.failed(operation)
      if (outcome !== undefined) operation.resolve(outcome)
      this.#finish(operation)
    })
    this.#options.quotaAlarm?.onWritten?.(bytes)
    this.#options.onCommit?.(batch.length)
  }

  /** The transaction as a whole failed. */
  #onFailure(batch: readonly Queued[], error: unknown): void {
    for (const operation of batch) this.#options.ownWrites?.failed(operation)
    if (error instanceof EtcdError) {
      if (error.kind === 'no-space') this.#options.quotaAlarm?.onFull()
      if (error.kind === 'outdated') {
        this.#returnOutdated(batch)
        return
      }
      if (!error.mayHaveBeenApplied && isRetryable(error, batch.length)) {
        for (const operation of batch) operation.alone ||= error.kind !== 'unavailable'
        this.#requeue(batch)
        return
      }
    }
    const failure = storageErrorOfWrite(error)
    for (const operation of batch) {
      operation.reject(failure)
      this.#finish(operation)
    }
  }

  /** Ends the operations with a `connectionMax`, whose connections are lost; retries the others. */
  #returnOutdated(batch: readonly Queued[]): void {
    this.#requeue(batch.filter(({ connectionMax }) => connectionMax === undefined))
    for (const operation of batch) {
      if (operation.connectionMax === undefined) continue
      operation.resolve({ applied: false, current: undefined, isOutdated: true })
      this.#finish(operation)
    }
  }

  /** The operation has ended: the next operation on its key may be sent. */
  #finish(operation: Queued): void {
    const { nextOnKey } = operation
    if (nextOnKey === undefined) this.#forget(operation.key)
    else this.#append(nextOnKey)
  }

  /**
   * A Map with much traffic replaces its hash table again and again, and each old table retains the
   * next one and its operations from being collected; a new Map does not.
   */
  #forget(key: string): void {
    this.#lastOnKey.delete(key)
    this.#finished++
    if (this.#finished % mapRenewedEvery === 0) this.#lastOnKey = new Map(this.#lastOnKey)
  }
}

/** The lowest limit of all operations in the batch. */
function connectionMaxOf(batch: readonly Operation[]): number | undefined {
  let lowest: number | undefined
  for (const { connectionMax } of batch) {
    if (connectionMax === undefined) continue
    if (lowest === undefined || connectionMax < lowest) lowest = connectionMax
  }
  return lowest
}

/**
 * Handles an error of a transaction that was certainly not applied. An error about the size or the
 * number of operations may be caused by the other operations of the batch.
 */
function isRetryable(error: EtcdError, operations: number): boolean {
  if (error.kind === 'unavailable') return true
  return operations > 1 && (error.kind === 'too-large' || error.kind === 'invalid')
}

function tooLate(): StorageError {
  return new StorageError({
    kind: 'unavailable',
    message: `etcd accepted no writes for ${sendWithinMs / 1000} s`,
    retryAfterMs,
  })
}
