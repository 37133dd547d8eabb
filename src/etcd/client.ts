import type { ChannelCredentials, ChannelOptions } from '@grpc/grpc-js'
import { type Clock, monotonicClock } from '../lib/clock.ts'
import { Calls } from './calls.ts'
import { Connection } from './connection.ts'
import { channelCredentials, nameOverride, type TlsMaterial } from './credentials.ts'
import { Endpoint, EndpointSet } from './endpoints.ts'
import { EtcdError } from './errors.ts'
import { encode, methods } from './grpc.ts'
import { encodeRange, encodeTxn } from './hot-messages.ts'
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
} from './protocol.ts'
import { RenewableLink } from './renewable-link.ts'
import {
  AlarmRequestSchema,
  CompactionRequestSchema,
  LeaseGrantRequestSchema,
  LeaseKeepAliveRequestSchema,
  LeaseRevokeRequestSchema,
  LeaseTimeToLiveRequestSchema,
  StatusRequestSchema,
} from './rpc_pb.ts'
import { WatchStream } from './watch-stream.ts'

/** Any time will do. */
const aliveMs = 60_000

export interface EtcdClientOptions {
  /**
   * `http://host:port`, `https://host:port` or `host:port` (encrypted when `tls` is given). The
   * first that can be reached is used; hand replicas different orders to spread them.
   */
  readonly endpoints: readonly string[]
  readonly tls?: TlsMaterial | undefined
  /** The deadline of calls that name none. */
  readonly defaultTimeoutMs: number
  readonly clock?: Clock | undefined
  readonly onCall?: CallObserver | undefined
}

/**
 * The door to etcd. Every method fails with an EtcdError and nothing else.
 *
 * Reads go to another member when the first does not answer. Writes are sent once: when one fails,
 * `maybeApplied` says whether it may have happened all the same. The signal ends the wait for a
 * write, not the write.
 */
export class EtcdClient {
  readonly #endpoints: EndpointSet
  readonly #calls: Calls
  readonly #closing = new AbortController()
  /** Of encrypted endpoints only. */
  readonly #renewals: ((tls: TlsMaterial) => () => void)[] = []

  /** Connects at once, in the background. */
  constructor(options: EtcdClientOptions) {
    if (options.endpoints.length === 0) throw invalid('no etcd endpoint is given')
    const clock = options.clock ?? monotonicClock
    const targets = options.endpoints.map((name) => parseEndpoint(name, options.tls !== undefined))
    const openers = targets.map((target) => opener(target, options.tls))
    this.#endpoints = new EndpointSet((onChange, takeNumber) =>
      targets.map((target, index) => {
        const open = openers[index] as Opener
        const calls = new RenewableLink((changed) => open(changed, takeNumber), onChange)
        const streams = new RenewableLink((changed) => open(changed, takeNumber), onChange)
        if (target.isEncrypted) {
          this.#renewals.push((tls) => {
            const reopen = opener(target, tls)
            return () => {
              calls.renew((changed) => reopen(changed, takeNumber))
              streams.renew((changed) => reopen(changed, takeNumber))
            }
          })
        }
        return new Endpoint({ name: target.name, calls, streams, clock })
      }),
    )
    this.#calls = new Calls({
      endpoints: this.#endpoints,
      closing: this.#closing.signal,
      clock,
      defaultTimeoutMs: options.defaultTimeoutMs,
      onCall: options.onCall,
    })
  }

  /** The number of the newest connection there has been. */
  get newestConnection(): ConnectionNumber {
    return this.#endpoints.newest
  }

  /** Waits for a member that takes calls and streams; the newest connection by then. */
  async connected(signal: AbortSignal): Promise<ConnectionNumber> {
    const isConnected = () =>
      this.#endpoints.all.some((member) => member.isReady('calls') && member.isReady('streams'))
    const ending = AbortSignal.any([signal, this.#closing.signal])
    // Connecting keeps no process alive, and whoever waits here has nothing else that does.
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
    const { answer, connection } = await this.#calls.read(
      { method: methods.range, message },
      options,
    )
    return { ...answer, connection }
  }

  /** A transaction without puts and deletes in it is a read, and treated as one. */
  async txn(txn: Txn, options?: CallOptions): Promise<TxnResult> {
    const message = encoded(() => encodeTxn(txn))
    const { answer } = isReadOnly(txn)
      ? await this.#calls.read({ method: methods.readOnlyTxn, message }, options)
      : await this.#calls.write({ method: methods.txn, message }, options)
    return answer
  }

  /** Begins when it is iterated. */
  watch(request: WatchRequest): Watch {
    return this.#watch(request)
  }

  /** A watch that ends when it can no longer be sure to be in the history that was read before. */
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
    const { answer } = await this.#calls.write({ method: methods.leaseGrant, message }, options)
    return { id: answer.id, ttlSeconds: Number(answer.ttl) }
  }

  /** Renews once. Answers the new time to live; 0 when the lease is gone. */
  async keepLeaseAlive(id: bigint, options?: CallOptions): Promise<number> {
    const message = encoded(() => encode(LeaseKeepAliveRequestSchema, { id }))
    const { answer } = await this.#calls.read({ method: methods.leaseKeepAlive, message }, options)
    return Math.max(0, Number(answer.ttl))
  }

  /** The keys that hang on the lease go with it. Fails with `not-found` when it is gone already. */
  async revokeLease(id: bigint, options?: CallOptions): Promise<void> {
    const message = encoded(() => encode(LeaseRevokeRequestSchema, { id }))
    await this.#calls.write({ method: methods.leaseRevoke, message }, options)
  }

  async leaseTtl(id: bigint, options?: CallOptions): Promise<LeaseTtl> {
    const message = encoded(() => encode(LeaseTimeToLiveRequestSchema, { id }))
    const { answer } = await this.#calls.read({ method: methods.leaseTimeToLive, message }, options)
    return { ttlSeconds: Number(answer.ttl), grantedTtlSeconds: Number(answer.grantedTtl) }
  }

  /** Forgets the history before `revision`. Fails with `compacted` when that has been done. */
  async compact(revision: number, options?: CallOptions): Promise<void> {
    const message = encoded(() => encode(CompactionRequestSchema, { revision: BigInt(revision) }))
    await this.#calls.write({ method: methods.compact, message }, options)
  }

  /** Asks this one member about itself, and no other. */
  async status(endpoint: string, options?: CallOptions): Promise<MemberStatus> {
    const member = this.#endpoints.find(endpoint)
    if (member === undefined) throw invalid(`${endpoint} is not one of the etcd endpoints`)
    const message = encoded(() => encode(StatusRequestSchema, {}))
    const { answer } = await this.#calls.read({ method: methods.status, message }, options, [
      member,
    ])
    return {
      endpoint,
      version: answer.version,
      dbBytes: Number(answer.dbSize),
      dbBytesInUse: Number(answer.dbSizeInUse),
      memberId: answer.header?.memberId ?? 0n,
      leader: answer.leader,
      revision: Number(answer.header?.revision ?? 0n),
      raftTerm: Number(answer.raftTerm),
      isLearner: answer.isLearner,
      errors: answer.errors,
    }
  }

  /** The alarms of the whole cluster. */
  async alarms(options?: CallOptions): Promise<readonly Alarm[]> {
    const message = encoded(() => encode(AlarmRequestSchema, {}))
    const { answer } = await this.#calls.read({ method: methods.alarm, message }, options)
    return answer.alarms.map(({ memberId, alarm }) => ({
      memberId,
      type: alarm === 1 ? 'no-space' : alarm === 2 ? 'corrupt' : 'unknown',
    }))
  }

  /** Each member's connection as last known, for logs and metrics. */
  endpoints(): readonly EndpointStatus[] {
    return this.#endpoints.all.map((endpoint) => endpoint.status())
  }

  /**
   * Moves to connections with these credentials, without breaking off calls under way. Throws, and
   * leaves everything as it is, when they cannot be used at all.
   */
  renewCredentials(tls: TlsMaterial): void {
    const renewals = this.#renewals.map((prepare) => prepare(tls))
    for (const renew of renewals) renew()
  }

  /**
   * How long past its own deadline the most overdue call is; 0 when none is. Calls end at their
   * deadlines by our own timers, so anything else means that this process is stuck.
   */
  overdueMs(): number {
    return this.#calls.overdueMs()
  }

  /** Ends every call and watch with `cancelled` and every connection. */
  close(): void {
    if (this.#closing.signal.aborted) return
    this.#closing.abort(new EtcdError({ kind: 'cancelled', message: 'the etcd client is closed' }))
    this.#endpoints.close()
  }
}

/** Opens a connection; `takeNumber` gives it its number once it is made. */
type Opener = (onChange: () => void, takeNumber: () => ConnectionNumber) => Connection

interface Target {
  readonly name: string
  readonly address: string
  /** Who its certificate must be for. */
  readonly host: string
  readonly isEncrypted: boolean
}

function parseEndpoint(name: string, isEncryptedByDefault: boolean): Target {
  const match = /^(?:(https?):\/\/)?(\[[^\]\s]+\]|[^/\s:]+):(\d+)\/?$/.exec(name)
  const [, scheme, bracketed, port] = match ?? []
  if (bracketed === undefined) throw invalid(`not an etcd endpoint: ${name}`)
  return {
    name,
    address: `dns:${bracketed}:${port}`,
    host: bracketed.replace(/^\[|\]$/g, ''),
    isEncrypted: scheme === undefined ? isEncryptedByDefault : scheme === 'https',
  }
}

function makeCredentials(material: TlsMaterial | undefined, host: string): ChannelCredentials {
  try {
    return channelCredentials(material, host)
  } catch (cause) {
    throw invalid('the certificates for etcd cannot be used', cause)
  }
}

/** Opens connections to one endpoint with these credentials. */
function opener(target: Target, tls: TlsMaterial | undefined): Opener {
  const { name: endpoint, address, host, isEncrypted } = target
  const credentials = makeCredentials(isEncrypted ? (tls ?? {}) : undefined, host)
  const options: ChannelOptions = isEncrypted ? nameOverride(host) : {}
  return (onChange, takeNumber) =>
    new Connection({ endpoint, target: address, credentials, options, onChange, takeNumber })
}

/** A request that cannot even be written is the caller's mistake. */
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

function invalid(message: string, cause?: unknown): EtcdError {
  return new EtcdError({ kind: 'invalid', message, cause })
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
} from './protocol.ts'
