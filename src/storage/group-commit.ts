/**
 * Writes that arrive together share one etcd transaction.
 *
 * A transaction costs etcd and us about the same whether it carries one write or a hundred, so while
 * the transactions under way are being answered, further writes gather, and the next free place
 * takes what has gathered. Nothing waits on a timer: a write that comes alone goes alone, at the
 * end of the turn of the event loop in which it came.
 *
 * A key is in at most one transaction under way, and what waits for it goes in the order it came.
 *
 * Every operation ends in exactly one of: applied; refused, with what is there instead; or a
 * StorageError. Of those, `timeout` alone leaves open whether it happened. An operation is sent
 * again only when it is certain that the transaction it was in did not happen.
 */
import type { CallOptions, Txn, TxnResult } from '../etcd/client.ts'
import { EtcdError } from '../etcd/errors.ts'
import { type Clock, monotonicClock } from '../lib/clock.ts'
import {
  composeTxn,
  type Operation,
  type Outcome,
  operationBytes,
  readOutcomes,
} from './batch-txn.ts'
import { StorageError } from './errors.ts'
import { storageErrorOfWrite } from './etcd-errors.ts'
import type { PrefixCheck } from './prefix-check.ts'
import type { Presence } from './presence.ts'
import type { Space } from './space.ts'

/** etcd takes 128 operations and 1.5 MiB by default; the rest is room for framing. */
const batchOperationsMax = 100
const batchBytesMax = 1024 * 1024
/** One is being answered while the next is on its way; more would only make batches smaller. */
const batchesUnderWayMax = 2
/** For comparison: without grouping, as many single writes under way as etcd can make use of. */
const singlesUnderWayMax = 256
/** Half a second of the most that one etcd takes. */
const waitingOperationsMax = 10_000
const waitingBytesMax = 64 * 1024 * 1024
/** etcd itself answers a write that it forwarded to a leader which died only after some 7 s. */
const txnTimeoutMs = 3_000
/** How long after it came an operation may still be sent. */
const sendWithinMs = 5_000
const retryAfterMs = 1_000

export interface GroupCommitOptions {
  txn(txn: Txn, options: CallOptions): Promise<TxnResult>
  /** Default true. False sends every operation in a transaction of its own. */
  readonly grouped?: boolean | undefined
  readonly waitingOperationsMax?: number | undefined
  readonly waitingBytesMax?: number | undefined
  /** Wall time in ms, for the headers of what is written. */
  readonly now?: (() => number) | undefined
  /** For deadlines. */
  readonly clock?: Clock | undefined
  /** What has not been sent is refused while etcd is away. */
  readonly presence?: Pick<Presence, 'ending' | 'refusal' | 'onAway'> | undefined
  /** Told when etcd is full; puts that have not been sent are then refused, deletes go on. */
  readonly space?:
    | (Pick<Space, 'refusal' | 'onFull'> & Partial<Pick<Space, 'onWritten'>>)
    | undefined
  /** Refuses everything until what is in etcd has been checked. */
  readonly check?: Pick<PrefixCheck, 'refusal'> | undefined
  /** Told of each transaction that was answered, for metrics. */
  readonly onCommit?: ((operations: number) => void) | undefined
}

/** An operation from its arrival to its end; linked, so that queues cost nothing. */
interface Waiting extends Operation {
  readonly bytes: number
  readonly sendBefore: number
  readonly resolve: (outcome: Outcome) => void
  readonly reject: (error: StorageError) => void
  /** etcd would not take the transaction it was in for its size: try it by itself. */
  alone: boolean
  /** The one behind it among those that may go. */
  next: Waiting | undefined
  /** The one that waits for the same key. */
  nextOnKey: Waiting | undefined
}

export class GroupCommit {
  readonly #options: GroupCommitOptions
  readonly #clock: Clock
  readonly #now: () => number
  readonly #operationsMax: number
  readonly #underWayMax: number
  /** Those that may go: no two on the same key, none on a key that is under way. */
  #first: Waiting | undefined
  #last: Waiting | undefined
  /** By key: the last one that came, of those waiting and under way. */
  readonly #lastOnKey = new Map<string, Waiting>()
  #waitingOperations = 0
  #waitingBytes = 0
  #underWay = 0
  #isScheduled = false
  #closing: PromiseWithResolvers<void> | undefined

  constructor(options: GroupCommitOptions) {
    this.#options = options
    this.#clock = options.clock ?? monotonicClock
    this.#now = options.now ?? Date.now
    const grouped = options.grouped ?? true
    this.#operationsMax = grouped ? batchOperationsMax : 1
    this.#underWayMax = grouped ? batchesUnderWayMax : singlesUnderWayMax
    options.presence?.onAway(() => this.#refuseWaiting())
  }

  get waiting(): { readonly operations: number; readonly bytes: number } {
    return { operations: this.#waitingOperations, bytes: this.#waitingBytes }
  }

  submit(operation: Operation): Promise<Outcome> {
    const bytes = operationBytes(operation)
    const refusal = this.#refuse(operation, bytes)
    if (refusal !== undefined) return Promise.reject(refusal)
    return new Promise((resolve, reject) => {
      const waiting: Waiting = {
        key: operation.key,
        expected: operation.expected,
        value: operation.value,
        connectionMax: operation.connectionMax,
        bytes,
        sendBefore: this.#clock.now() + sendWithinMs,
        resolve,
        reject,
        alone: false,
        next: undefined,
        nextOnKey: undefined,
      }
      this.#waitingOperations++
      this.#waitingBytes += bytes
      const before = this.#lastOnKey.get(operation.key)
      this.#lastOnKey.set(operation.key, waiting)
      if (before === undefined) this.#append(waiting)
      else before.nextOnKey = waiting
    })
  }

  /** Takes nothing more; resolves when everything that was taken has ended. */
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
    const outage = this.#options.presence?.refusal() ?? this.#options.check?.refusal()
    if (outage !== undefined) return outage
    const fullness = this.#noRoomFor(operation)
    if (fullness !== undefined) return fullness
    const operationsMax = this.#options.waitingOperationsMax ?? waitingOperationsMax
    const bytesMax = this.#options.waitingBytesMax ?? waitingBytesMax
    const isRoom = this.#waitingOperations < operationsMax && this.#waitingBytes + bytes <= bytesMax
    if (isRoom) return undefined
    return new StorageError({
      kind: 'overloaded',
      message: `${this.#waitingOperations} writes wait for etcd already`,
      retryAfterMs,
    })
  }

  /** While etcd is full: deletes would go under with puts in the same transaction. */
  #noRoomFor(operation: Operation): StorageError | undefined {
    return operation.value === undefined ? undefined : this.#options.space?.refusal()
  }

  #append(waiting: Waiting): void {
    if (this.#last === undefined) this.#first = waiting
    else this.#last.next = waiting
    this.#last = waiting
    this.#schedule()
  }

  /** To the front, in their order. */
  #putBack(batch: readonly Waiting[]): void {
    for (const waiting of batch.toReversed()) {
      waiting.next = this.#first
      this.#first = waiting
      this.#last ??= waiting
      this.#waitingOperations++
      this.#waitingBytes += waiting.bytes
    }
  }

  /** What comes in one turn of the event loop goes together. */
  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      this.#sendWaiting()
    })
  }

  #sendWaiting(): void {
    this.#refuseWaiting()
    while (this.#underWay < this.#underWayMax && this.#first !== undefined) {
      const batch = this.#take()
      if (batch.length > 0) void this.#send(batch)
    }
    if (this.#underWay === 0 && this.#first === undefined) this.#closing?.resolve()
  }

  /** While etcd is away: none of what waits was sent, and none will be. */
  #refuseWaiting(): void {
    const outage = this.#options.presence?.refusal()
    if (outage === undefined) return
    while (this.#first !== undefined) this.#turnAway(this.#first, outage)
  }

  #take(): readonly Waiting[] {
    const batch: Waiting[] = []
    const now = this.#clock.now()
    let bytes = 0
    while (batch.length < this.#operationsMax) {
      const waiting = this.#first
      if (waiting === undefined) break
      const refusal = now > waiting.sendBefore ? tooLate() : this.#noRoomFor(waiting)
      if (refusal !== undefined) {
        this.#turnAway(waiting, refusal)
        continue
      }
      if (!this.#fits(waiting, batch, bytes)) break
      this.#removeFirst(waiting)
      batch.push(waiting)
      bytes += waiting.bytes
    }
    return batch
  }

  #removeFirst(first: Waiting): void {
    this.#first = first.next
    if (this.#first === undefined) this.#last = undefined
    first.next = undefined
    this.#waitingOperations--
    this.#waitingBytes -= first.bytes
  }

  #turnAway(first: Waiting, error: StorageError): void {
    this.#removeFirst(first)
    first.reject(error)
    this.#leave(first)
  }

  #fits(waiting: Waiting, batch: readonly Waiting[], bytes: number): boolean {
    const [first] = batch
    if (first === undefined) return true
    return !first.alone && !waiting.alone && bytes + waiting.bytes <= batchBytesMax
  }

  async #send(batch: readonly Waiting[]): Promise<void> {
    this.#underWay++
    const writtenAtMs = this.#now()
    let outcomes: readonly Outcome[] | undefined
    let failure: unknown
    try {
      const txn = composeTxn(batch, writtenAtMs)
      const harmlessEnd = this.#options.presence?.ending
      const connectionMax = connectionMaxOf(batch)
      const options = { timeoutMs: txnTimeoutMs, harmlessEnd, connectionMax }
      const result = await this.#options.txn(txn, options)
      outcomes = readOutcomes(batch, result, writtenAtMs)
    } catch (error) {
      failure = error
    }
    this.#underWay--
    if (outcomes === undefined) this.#failed(batch, failure)
    else this.#answered(batch, outcomes)
    this.#schedule()
  }

  #answered(batch: readonly Waiting[], outcomes: readonly Outcome[]): void {
    let bytes = 0
    batch.forEach((waiting, index) => {
      const outcome = outcomes[index]
      if (outcome?.applied === true) bytes += waiting.bytes
      if (outcome !== undefined) waiting.resolve(outcome)
      this.#leave(waiting)
    })
    this.#options.space?.onWritten?.(bytes)
    this.#options.onCommit?.(batch.length)
  }

  /** The transaction as a whole failed. */
  #failed(batch: readonly Waiting[], error: unknown): void {
    if (error instanceof EtcdError) {
      if (error.kind === 'no-space') this.#options.space?.onFull()
      if (error.kind === 'outdated') {
        this.#sendBack(batch)
        return
      }
      if (!error.maybeApplied && isWorthSendingAgain(error, batch.length)) {
        for (const waiting of batch) waiting.alone ||= error.kind !== 'unavailable'
        this.#putBack(batch)
        return
      }
    }
    const failure = storageErrorOfWrite(error)
    for (const waiting of batch) {
      waiting.reject(failure)
      this.#leave(waiting)
    }
  }

  /** Those that rest on what was seen over connections that are gone; the others are sent again. */
  #sendBack(batch: readonly Waiting[]): void {
    this.#putBack(batch.filter(({ connectionMax }) => connectionMax === undefined))
    for (const waiting of batch) {
      if (waiting.connectionMax === undefined) continue
      waiting.resolve({ applied: false, current: undefined, isOutdated: true })
      this.#leave(waiting)
    }
  }

  /** The operation has ended: the next one on its key may go. */
  #leave(waiting: Waiting): void {
    const { nextOnKey } = waiting
    if (nextOnKey === undefined) this.#lastOnKey.delete(waiting.key)
    else this.#append(nextOnKey)
  }
}

/** That of the operation that was seen the longest time ago. */
function connectionMaxOf(batch: readonly Operation[]): number | undefined {
  let lowest: number | undefined
  for (const { connectionMax } of batch) {
    if (connectionMax === undefined) continue
    if (lowest === undefined || connectionMax < lowest) lowest = connectionMax
  }
  return lowest
}

/**
 * Of an error that says the transaction did not happen. Those for its size or for the number of
 * its operations may be the fault of the company an operation was in.
 */
function isWorthSendingAgain(error: EtcdError, operations: number): boolean {
  if (error.kind === 'unavailable') return true
  return operations > 1 && (error.kind === 'too-large' || error.kind === 'invalid')
}

function tooLate(): StorageError {
  return new StorageError({
    kind: 'unavailable',
    message: `etcd took no writes for ${sendWithinMs / 1000} s`,
    retryAfterMs,
  })
}
