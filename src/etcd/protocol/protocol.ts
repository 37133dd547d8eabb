import type { Traced } from '../../lib/tracing/span.ts'
import type { EtcdError } from '../errors.ts'

// The types of etcd's API for the rest of the program. Revisions are numbers (checked to be safe
// integers when decoded), lease ids are bigint, and everything is read-only.

/** Keys and values are raw bytes. Those the client returns are views into the received message. */
export type Bytes = Uint8Array

/** One key as etcd stores it. */
export interface KeyValue {
  readonly key: Buffer
  readonly value: Buffer
  readonly createRevision: number
  readonly modRevision: number
  /** Counts the writes since the key was created; 1 for a new key, 0 for a deleted one. */
  readonly version: number
  /** 0n when the key has no lease. */
  readonly lease: bigint
}

/**
 * Connections are numbered in the order in which they are established. A restored member can
 * respond only over a connection that was established after the restore.
 */
export type ConnectionNumber = number

export interface CallOptions extends Traced {
  /** Cancels a read at once. Ends the wait for a write, which may still be applied. */
  readonly signal?: AbortSignal | undefined
  /** The total time for this call, including attempts at other endpoints. */
  readonly timeoutMs?: number | undefined
  /** Cancels the call where the result stays certain: a read, or a write that was not sent yet. */
  readonly cancelIfSafe?: AbortSignal | undefined
  /**
   * The newest connection that a write may use that depends on an earlier read. The write fails with
   * `outdated` when all connections up to this one are lost.
   */
  readonly connectionMax?: ConnectionNumber | undefined
}

/** Always linearizable: confirmed by a majority of the members. */
export interface RangeRequest {
  readonly key: Bytes
  /** Exclusive end; undefined reads the one key. See `prefixEnd`. */
  readonly rangeEnd?: Bytes | undefined
  /** Read the state as of this revision; the latest one when undefined. */
  readonly revision?: number | undefined
  readonly limit?: number | undefined
  readonly keysOnly?: boolean | undefined
  readonly countOnly?: boolean | undefined
}

export interface RangeResult {
  /** The store's revision at the time of the response (not the requested revision). */
  readonly revision: number
  readonly kvs: readonly KeyValue[]
  readonly more: boolean
  /** How many keys the range has, regardless of the limit. */
  readonly count: number
  /** The connection of the response. Not set for a range inside a transaction. */
  readonly connection?: ConnectionNumber | undefined
}

/** All keys of a range at one revision; see range-scan.ts. */
export interface ScanRequest {
  readonly key: Bytes
  /** Exclusive end. */
  readonly rangeEnd: Bytes
  /** Read the state as of this revision; the latest one when undefined. */
  readonly revision?: number | undefined
  /** About how many keys the caller will read. */
  readonly limit?: number | undefined
  /** About how many bytes the caller will read, or read at a time. */
  readonly chunkBytes?: number | undefined
  /** The caller reads to the end, so the next chunk is requested while it processes one. */
  readonly isWhole?: boolean | undefined
}

export interface ScanChunk {
  /** The store's revision at the time of the first response (not the requested revision). */
  readonly revision: number
  readonly kvs: readonly KeyValue[]
  /** How many keys were left before this chunk, those of the chunk included. */
  readonly count: number
  /** The newest connection that this chunk or an earlier one came over. */
  readonly connection: ConnectionNumber
}

export type Compare = {
  readonly key: Bytes
  /** Compare every key in [key, rangeEnd); undefined compares the one key. */
  readonly rangeEnd?: Bytes | undefined
  /** Default '='. */
  readonly is?: '=' | '!=' | '>' | '<' | undefined
} & (
  | { readonly target: 'version' | 'createRevision' | 'modRevision'; readonly to: number }
  | { readonly target: 'lease'; readonly to: bigint }
  | { readonly target: 'value'; readonly to: Bytes }
)

export type TxnOp =
  | {
      readonly type: 'put'
      readonly key: Bytes
      readonly value: Bytes
      readonly lease?: bigint | undefined
      readonly prevKv?: boolean | undefined
    }
  | {
      readonly type: 'delete'
      readonly key: Bytes
      readonly rangeEnd?: Bytes | undefined
      readonly prevKv?: boolean | undefined
    }
  /**
   * Not at a revision: before 3.7, members differ after a transaction that writes and reads at a
   * revision that one of them has compacted already.
   */
  | ({ readonly type: 'range' } & Omit<RangeRequest, 'revision'>)
  | ({ readonly type: 'txn' } & Txn)

/** `success` runs if all compares hold, otherwise `failure`. An absent list is empty. */
export interface Txn {
  readonly compare?: readonly Compare[] | undefined
  readonly success?: readonly TxnOp[] | undefined
  readonly failure?: readonly TxnOp[] | undefined
}

/** One result per operation of the branch that ran, in order. */
export type TxnOpResult =
  | { readonly type: 'put'; readonly prevKv: KeyValue | undefined }
  | { readonly type: 'delete'; readonly deleted: number; readonly prevKvs: readonly KeyValue[] }
  | ({ readonly type: 'range' } & RangeResult)
  | { readonly type: 'txn'; readonly succeeded: boolean; readonly results: readonly TxnOpResult[] }

export interface TxnResult {
  /** The revision of this transaction if it wrote, otherwise the store's revision. */
  readonly revision: number
  readonly succeeded: boolean
  readonly results: readonly TxnOpResult[]
}

export interface LeaseGrant {
  readonly id: bigint
  readonly ttlSeconds: number
}

export interface LeaseTtl {
  /** -1 when the lease has expired. */
  readonly ttlSeconds: number
  readonly grantedTtlSeconds: number
}

export interface MemberStatus {
  readonly endpoint: string
  readonly version: string
  readonly dbBytes: number
  readonly dbBytesInUse: number
  readonly memberId: bigint
  /** 0n when the member has no leader. */
  readonly leader: bigint
  readonly revision: number
  readonly raftTerm: number
  readonly isLearner: boolean
  /** Alarms, and that there is no leader. */
  readonly errors: readonly string[]
  /** The version of the database's format; empty before etcd 3.6. */
  readonly storageVersion: string
  /** The space quota: 0 if the member does not say (before etcd 3.6), below 0 if it has none. */
  readonly quotaBytes: number
  /** The version to which the cluster may be downgraded; undefined unless that is enabled. */
  readonly downgradeTo: string | undefined
}

export interface Alarm {
  readonly memberId: bigint
  readonly type: 'no-space' | 'corrupt' | 'unknown'
}

export interface WatchRequest {
  readonly key: Bytes
  readonly rangeEnd?: Bytes | undefined
  /** The first revision to deliver, at least 1. */
  readonly startRevision: number
  readonly prevKv?: boolean | undefined
  /** Ends the watch: the iteration finishes without an error. */
  readonly signal: AbortSignal
}

/**
 * Makes a watch continue an earlier read: it fails with `other-history` when etcd turns out to have
 * another history, and with `compacted` when that cannot be determined.
 */
export interface SameHistory {
  /** Whether this value can exist at this revision in one history only. */
  isUnique(kv: KeyValue): boolean
  /** The newest connection when the read began. */
  readonly connectionMax: ConnectionNumber
}

export interface HistoryWatchRequest extends WatchRequest {
  readonly sameHistory: SameHistory
}

export type WatchEvent =
  | { readonly type: 'put'; readonly kv: KeyValue; readonly prevKv: KeyValue | undefined }
  /** `kv` carries the key and, as modRevision, the revision of the delete. */
  | { readonly type: 'delete'; readonly kv: KeyValue; readonly prevKv: KeyValue | undefined }

/** Whole revisions, in order, each once. Without events it only reports progress. */
export interface WatchBatch {
  /** All changes up to this revision have been delivered. Never goes back. */
  readonly revision: number
  readonly events: readonly WatchEvent[]
}

/**
 * A watch that fails over between connections and members: after a failure it resumes after the
 * last revision delivered. It can be iterated once. It fails with an EtcdError of kind `compacted`
 * (see `compactRevision`) when the history to deliver is lost, and with `cancelled` when the client
 * is closed. When no member is available it does not fail but keeps retrying.
 */
export interface Watch extends AsyncIterable<WatchBatch> {
  /** The newest connection that delivered changes came over. */
  readonly connection: ConnectionNumber
  /**
   * Requests the current position of this watch from etcd; the response is a batch, possibly
   * without events. Until it arrives, a watchdog moves the watch to another member when this member
   * is silent. Further calls while a request is pending are coalesced into it.
   */
  requestProgress(): void
}

/** A watch that continues an earlier read. */
export interface HistoryWatch extends Watch {
  /**
   * Responses over connections up to this one belong to the delivered history. 0 while that is not
   * known: after the stream breaks, until the next stream is found to continue the history.
   */
  readonly verified: ConnectionNumber
  /** Makes `verified` reach this connection, by reopening the stream if necessary. */
  verify(connection: ConnectionNumber): void
}

/** `failing`: the last attempt to connect failed, and the next one follows. */
export type ConnectionState = 'connecting' | 'ready' | 'failing' | 'closed'

export interface EndpointStatus {
  readonly endpoint: string
  readonly state: ConnectionState
  readonly lastError: EtcdError | undefined
  /** Why there is no connection with renewed credentials yet; the old one is still in use. */
  readonly renewalError?: EtcdError | undefined
}

/**
 * Called for every call that has ended, after its retries; `path` is the path of the gRPC method.
 * Not called for calls that were cancelled before they were sent: they say nothing about etcd. A
 * call that timed out because no member could be reached does, and is reported.
 */
export type CallObserver = (call: {
  readonly path: string
  readonly ms: number
  readonly hasFailed: boolean
}) => void
