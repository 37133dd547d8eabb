import { type Clock, monotonicClock } from '../lib/clock.ts'
import { recorded } from '../lib/tracing/span.ts'
import { Calls } from './calls.ts'
import type { TlsMaterial } from './credentials.ts'
import type { EndpointSet } from './endpoints.ts'
import { EtcdError, invalid } from './errors.ts'
import { encode, methods } from './grpc.ts'
import { openEndpoints, type PrepareRenewal } from './open-endpoints.ts'
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
  Txn,
  TxnOp,
  TxnResult,
  Watch,
  WatchRequest,
} from './protocol/protocol.ts'
import {
  AlarmRequestSchema,
  CompactionRequestSchema,
  LeaseGrantRequestSchema,
  LeaseKeepAliveRequestSchema,
  LeaseRevokeRequestSchema,
  LeaseTimeToLiveRequestSchema,
  StatusRequestSchema,
} from './protocol/rpc_pb.ts'
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
  /** The timeout of calls that set none. */
  readonly defaultTimeoutMs: number
  readonly clock?: Clock | undefined
  readonly onCall?: CallObserver | undefined
}

/**
 * The only entry point to etcd. Every method fails with an EtcdError and nothing else.
 *
 * Reads fail over to another member when the first does not respond. Writes are sent once: when one
 * fails, `maybeApplied` says whether it may have been applied nevertheless. The signal ends the
 * wait for a write, not the write.
 */
export class EtcdClient {
  readonly #endpoints: EndpointSet
  readonly #calls: Calls
  readonly #closing = new AbortController()
  readonly #renewals: readonly PrepareRenewal[]

  /** Connects at once, in the background. */
  constructor(options: EtcdClientOptions) {
    const clock = options.clock ?? monotonicClock
    const opened = openEndpoints({ endpoints: options.endpoints, tls: options.tls, clock })
    this.#endpoints = opened.endpoints
    this.#renewals = opened.renewals
    this.#calls = new Calls({
      endpoints: this.#endpoints,
      closing: this.#closing.signal,
      clock,
      defaultTimeoutMs: options.defaultTimeoutMs,
      onCall: options.onCall,
    })
  }

  /** The number of the newest connection so far, to any member. */
  get newestConnection(): ConnectionNumber {
    return this.#endpoints.newest
  }

  /** Waits for a member that accepts calls and streams; returns the newest connection by then. */
  async connected(signal: AbortSignal): Promise<ConnectionNumber> {
    const isConnected = () =>
      this.#endpoints.all.some((member) => member.isReady('calls') && member.isReady('streams'))
    const ending = AbortSignal.any([signal, this.#closing.signal])
    // Connection timers are unref'd, so without this the process could end while the caller waits.
    const alive = setInterval(() => {}, aliveMs)
    try {
      while (!ending.aborted && !isConnected()) await this.#endpoints.changed(ending)
    } finally {
      clearInterval(alive)
    }
    return this.#endpoints.newest
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

  /** A transaction without puts and deletes is treated as a read. */
  async txn(txn: Txn, options?: CallOptions): Promise<TxnResult> {
    const message = encoded(() => encodeTxn(txn))
    const call = () =>
      isReadOnly(txn)
        ? this.#calls.read({ method: methods.readOnlyTxn, message }, options)
        : this.#calls.write({ method: methods.txn, message }, options)
    return (await recorded(options?.span, 'etcd txn', call, 'client')).response
  }

  /** Starts when it is iterated. */
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
      endpoints: this.#endpoints,
      closing: this.#closing.signal,
    })
  }

  async grantLease(ttlSeconds: number, options?: CallOptions): Promise<LeaseGrant> {
    const message = encoded(() => encode(LeaseGrantRequestSchema, { ttl: BigInt(ttlSeconds) }))
    const { response } = await this.#calls.write({ method: methods.leaseGrant, message }, options)
    return { id: response.id, ttlSeconds: Number(response.ttl) }
  }

  /** Renews once. Returns the new time to live in seconds; 0 when the lease has expired. */
  async keepLeaseAlive(id: bigint, options?: CallOptions): Promise<number> {
    const message = encoded(() => encode(LeaseKeepAliveRequestSchema, { id }))
    const request = { method: methods.leaseKeepAlive, message }
    const { response } = await this.#calls.read(request, options)
    return Math.max(0, Number(response.ttl))
  }

  /** Deletes its keys as well. Fails with `not-found` when the lease has expired. */
  async revokeLease(id: bigint, options?: CallOptions): Promise<void> {
    const message = encoded(() => encode(LeaseRevokeRequestSchema, { id }))
    await this.#calls.write({ method: methods.leaseRevoke, message }, options)
  }

  async leaseTtl(id: bigint, options?: CallOptions): Promise<LeaseTtl> {
    const message = encoded(() => encode(LeaseTimeToLiveRequestSchema, { id }))
    const request = { method: methods.leaseTimeToLive, message }
    const { response } = await this.#calls.read(request, options)
    return { ttlSeconds: Number(response.ttl), grantedTtlSeconds: Number(response.grantedTtl) }
  }

  /** Removes the history before `revision`. Fails with `compacted` when it was removed before. */
  async compact(revision: number, options?: CallOptions): Promise<void> {
    const message = encoded(() => encode(CompactionRequestSchema, { revision: BigInt(revision) }))
    await this.#calls.write({ method: methods.compact, message }, options)
  }

  /** The status of this one member; there is no failover. */
  async status(endpoint: string, options?: CallOptions): Promise<MemberStatus> {
    const member = this.#endpoints.find(endpoint)
    if (member === undefined) throw invalid(`${endpoint} is not one of the etcd endpoints`)
    const message = encoded(() => encode(StatusRequestSchema, {}))
    const { response } = await this.#calls.read({ method: methods.status, message }, options, [
      member,
    ])
    return {
      endpoint,
      version: response.version,
      dbBytes: Number(response.dbSize),
      dbBytesInUse: Number(response.dbSizeInUse),
      memberId: response.header?.memberId ?? 0n,
      leader: response.leader,
      revision: Number(response.header?.revision ?? 0n),
      raftTerm: Number(response.raftTerm),
      isLearner: response.isLearner,
      errors: response.errors,
    }
  }

  /** The alarms of the whole cluster. */
  async alarms(options?: CallOptions): Promise<readonly Alarm[]> {
    const message = encoded(() => encode(AlarmRequestSchema, {}))
    const { response } = await this.#calls.read({ method: methods.alarm, message }, options)
    return response.alarms.map(({ memberId, alarm }) => ({
      memberId,
      type: alarm === 1 ? 'no-space' : alarm === 2 ? 'corrupt' : 'unknown',
    }))
  }

  /** The last known connection state of each member, for logs and metrics. */
  endpoints(): readonly EndpointStatus[] {
    return this.#endpoints.all.map((endpoint) => endpoint.status())
  }

  /**
   * Switches to new connections with these credentials without cancelling calls in flight. Throws,
   * and changes nothing, when the credentials cannot be used at all.
   */
  renewCredentials(tls: TlsMaterial): void {
    const renewals = this.#renewals.map((prepare) => prepare(tls))
    for (const renew of renewals) renew()
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
    this.#endpoints.close()
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
  Txn,
  TxnOp,
  TxnOpResult,
  TxnResult,
  Watch,
  WatchBatch,
  WatchEvent,
  WatchRequest,
} from './protocol/protocol.ts'
