import { type Clock, monotonicClock } from '../lib/clock.ts'
import { recorded } from '../lib/tracing/span.ts'
import { Calls } from './calls.ts'
import { EtcdError, invalid } from './errors.ts'
import type { Members } from './members.ts'
import { methods } from './methods.ts'
import { openMembers } from './open-members.ts'
import {
  emptyRequest,
  encodeCompaction,
  encodeLeaseGrant,
  encodeLeaseId,
} from './protocol/control-messages.ts'
import { encodeRange, encodeTxn } from './protocol/hot-messages.ts'
import type {
  Alarm,
  Bytes,
  CallObserver,
  CallOptions,
  ConnectionNumber,
  EndpointStatus,
  HistoryWatch,
  HistoryWatchRequest,
  LeaseGrant,
  LeaseTtl,
  MemberStatus,
  RangeRequest,
  RangeResult,
  ScanChunk,
  ScanRequest,
  Txn,
  TxnOp,
  TxnResult,
  Watch,
  WatchRequest,
} from './protocol/protocol.ts'
import { RangeScanner } from './range-scan.ts'
import { secureContextOf, type TlsMaterial } from './tls-material.ts'
import { WatchStream } from './watch-stream.ts'

/** An arbitrary period: the timer only keeps the process alive. */
const aliveMs = 60_000

export interface EtcdClientOptions {
  /**
   * `http://host:port`, `https://host:port` or `host:port` (encrypted when `tls` is given). The
   * first reachable endpoint is used; give replicas different orders to spread the load.
   */
  readonly endpoints: readonly string[]
  readonly tls?: TlsMaterial | undefined
  /** Applies to calls without a timeout of their own. */
  readonly defaultTimeoutMs: number
  readonly clock?: Clock | undefined
  readonly onCall?: CallObserver | undefined
}

/**
 * The only entry point to etcd. Every method fails with an EtcdError and nothing else.
 *
 * Reads fail over to another member when the first does not respond. Writes are sent once: when one
 * fails, `mayHaveBeenApplied` says whether it may have been applied nevertheless. The signal ends the
 * wait for a write, not the write.
 */
export class EtcdClient {
  readonly #members: Members
  readonly #calls: Calls
  readonly #scanner: RangeScanner
  readonly #closing = new AbortController()

  /** Connects at once, in the background. */
  constructor(options: EtcdClientOptions) {
    const clock = options.clock ?? monotonicClock
    this.#members = openMembers({ endpoints: options.endpoints, tls: options.tls, clock })
    this.#calls = new Calls({
      members: this.#members,
      closing: this.#closing.signal,
      clock,
      defaultTimeoutMs: options.defaultTimeoutMs,
      onCall: options.onCall,
    })
    this.#scanner = new RangeScanner({
      members: this.#members,
      range: (request, callOptions) => this.range(request, callOptions),
      clock,
      onCall: options.onCall,
    })
  }

  /** The number of the newest connection so far, to any member. */
  get newestConnection(): ConnectionNumber {
    return this.#members.newest
  }

  /** Waits for a member that accepts calls and streams; returns the newest connection by then. */
  async connected(signal: AbortSignal): Promise<ConnectionNumber> {
    const isConnected = () =>
      this.#members.all.some(
        (member) =>
          member.session('calls') !== undefined && member.session('streams') !== undefined,
      )
    const ending = AbortSignal.any([signal, this.#closing.signal])
    // Connection timers are unref'd, so without this the process could end while the caller waits.
    const alive = setInterval(() => {}, aliveMs)
    try {
      while (!ending.aborted && !isConnected()) await this.#members.changed(ending)
    } finally {
      clearInterval(alive)
    }
    return this.#members.newest
  }

  async range(request: RangeRequest, options?: CallOptions): Promise<RangeResult> {
    const message = encoded(() => encodeRange(request))
    const { response, connection } = await recorded(
      options?.span,
      'etcd range',
      () => this.#calls.read({ method: methods.range, message }, options),
      'client',
    )
    return { ...response, connection }
  }

  /** All keys of a range at one revision, in order. The timeout applies to each call. */
  scan(request: ScanRequest, options?: CallOptions): AsyncGenerator<ScanChunk, void, undefined> {
    return this.#scanner.scan(request, options)
  }

  /** A transaction without puts and deletes is treated as a read. */
  async txn(txn: Txn, options?: CallOptions): Promise<TxnResult> {
    const message = encoded(() => encodeTxn(txn))
    const call = () =>
      isReadOnly(txn)
        ? this.#calls.read({ method: methods.readOnlyTxn, message }, options)
        : this.#calls.write({ method: methods.txn, message }, options)
    return (await recorded(options?.span, 'etcd txn', call, 'client')).response
  }

  /** The watch starts when it is iterated. */
  watch(request: WatchRequest): Watch {
    return this.#watch(request)
  }

  /** A watch that fails when it cannot verify that etcd still has the history that was read. */
  follow(request: HistoryWatchRequest): HistoryWatch {
    return this.#watch(request)
  }

  #watch(request: WatchRequest | HistoryWatchRequest): HistoryWatch {
    if (!Number.isSafeInteger(request.startRevision) || request.startRevision < 1) {
      throw invalid(`a watch cannot start at revision ${request.startRevision}`)
    }
    return new WatchStream({
      request,
      members: this.#members,
      closing: this.#closing.signal,
    })
  }

  async grantLease(ttlSeconds: number, options?: CallOptions): Promise<LeaseGrant> {
    const message = encoded(() => encodeLeaseGrant(ttlSeconds))
    const { response } = await this.#calls.write({ method: methods.leaseGrant, message }, options)
    return response
  }

  /** Renews once. Returns the new time to live in seconds; 0 when the lease has expired. */
  async keepLeaseAlive(id: bigint, options?: CallOptions): Promise<number> {
    const request = { method: methods.leaseKeepAlive, message: encodeLeaseId(id) }
    return (await this.#calls.read(request, options)).response
  }

  /** Deletes its keys as well. Fails with `not-found` when the lease has expired. */
  async revokeLease(id: bigint, options?: CallOptions): Promise<void> {
    const request = { method: methods.leaseRevoke, message: encodeLeaseId(id) }
    await this.#calls.write(request, options)
  }

  async leaseTtl(id: bigint, options?: CallOptions): Promise<LeaseTtl> {
    const request = { method: methods.leaseTimeToLive, message: encodeLeaseId(id) }
    return (await this.#calls.read(request, options)).response
  }

  /** Removes the history before `revision`. Fails with `compacted` when it was removed before. */
  async compact(revision: number, options?: CallOptions): Promise<void> {
    const message = encoded(() => encodeCompaction(revision))
    await this.#calls.write({ method: methods.compact, message }, options)
  }

  /** The status of this one member; there is no failover. */
  async status(endpoint: string, options?: CallOptions): Promise<MemberStatus> {
    const member = this.#members.find(endpoint)
    if (member === undefined) throw invalid(`${endpoint} is not one of the etcd endpoints`)
    const request = { method: methods.status, message: emptyRequest }
    const { response } = await this.#calls.read(request, options, [member])
    return { endpoint, ...response }
  }

  /** The alarms of the whole cluster. */
  async alarms(options?: CallOptions): Promise<readonly Alarm[]> {
    const request = { method: methods.alarm, message: emptyRequest }
    return (await this.#calls.read(request, options)).response
  }

  /** The last known connection state of each member, for logs and metrics. */
  endpoints(): readonly EndpointStatus[] {
    return this.#members.all.map((member) => member.status())
  }

  /**
   * Switches to new connections with these credentials without cancelling calls in flight. Throws,
   * and changes nothing, when the credentials cannot be used at all.
   */
  renewCredentials(tls: TlsMaterial): void {
    const context = secureContextOf(tls)
    for (const member of this.#members.all) member.renew(context)
  }

  /**
   * How long past its own deadline the most overdue call is; 0 when none is. Calls end at their
   * deadlines by our own timers, so any other value means that this process is stuck.
   */
  overdueMs(): number {
    return this.#calls.overdueMs()
  }

  /** Ends every call and watch with `cancelled`, and closes every connection. */
  close(): void {
    if (this.#closing.signal.aborted) return
    this.#closing.abort(new EtcdError({ kind: 'cancelled', message: 'the etcd client is closed' }))
    this.#members.close()
  }
}

/** A request that cannot be encoded is a mistake of the caller. */
function encoded(encodeRequest: () => Buffer): Buffer {
  try {
    return encodeRequest()
  } catch (cause) {
    throw invalid('the request cannot be encoded', cause)
  }
}

function isReadOnly(txn: Txn): boolean {
  return [...(txn.success ?? []), ...(txn.failure ?? [])].every(isReadOnlyOp)
}

function isReadOnlyOp(op: TxnOp): boolean {
  if (op.type === 'txn') return isReadOnly(op)
  return op.type === 'range'
}

/** The exclusive end of the range that holds every key starting with `prefix`. */
export function prefixEnd(prefix: Bytes): Buffer {
  const end = Buffer.from(prefix)
  for (let index = end.length - 1; index >= 0; index--) {
    const byte = end[index] ?? 0
    if (byte === 0xff) continue
    end[index] = byte + 1
    return end.subarray(0, index + 1)
  }
  return Buffer.of(0)
}

export type {
  Alarm,
  Bytes,
  CallOptions,
  Compare,
  ConnectionNumber,
  EndpointStatus,
  HistoryWatch,
  HistoryWatchRequest,
  KeyValue,
  LeaseGrant,
  LeaseTtl,
  MemberStatus,
  RangeRequest,
  RangeResult,
  ScanChunk,
  ScanRequest,
  Txn,
  TxnOp,
  TxnOpResult,
  TxnResult,
  Watch,
  WatchBatch,
  WatchEvent,
  WatchRequest,
} from './protocol/protocol.ts'
