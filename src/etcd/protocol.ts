import type { EtcdError } from './errors.ts'

// The nouns of etcd as the rest of the program sees them. Revisions are numbers (asserted safe
// integers when decoded), lease ids are bigint, and everything is handed out read-only.

/** Keys and values are raw bytes. What the client hands out are views into the received message. */
export type Bytes = Uint8Array

/** One key as etcd keeps it. */
export interface KeyValue {
  readonly key: Buffer
  readonly value: Buffer
  readonly createRevision: number
  readonly modRevision: number
  /** Counts the writes since the key was created; 1 for a new key, 0 for a deleted one. */
  readonly version: number
  /** 0n when the key hangs on no lease. */
  readonly lease: bigint
}

/**
 * Connections are numbered in the order in which they are made. A member that was restored can only
 * answer over a connection that was made after that.
 */
export type ConnectionNumber = number

export interface CallOptions {
  /** Ends a read at once. Ends the wait for a write: that write may still happen. */
  readonly signal?: AbortSignal | undefined
  /** The whole time this call may take, other endpoints tried included. */
  readonly timeoutMs?: number | undefined
  /** Ends what it can without leaving anything in doubt: a read, or a write that was not sent yet. */
  readonly harmlessEnd?: AbortSignal | undefined
  /**
   * Of a write that rests on what was read: it is sent over connections up to this one only, and fails
   * with `outdated` when none of them is left.
   */
  readonly connectionMax?: ConnectionNumber | undefined
}

/** Always linearizable: an answer is one of a majority. */
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
  /** The store's revision when it answered (not the one that was asked for). */
  readonly revision: number
  readonly kvs: readonly KeyValue[]
  readonly more: boolean
  /** How many keys the range holds, whatever the limit was. */
  readonly count: number
  /** Over which it came, or a later one; known of a range by itself, not of one in a transaction. */
  readonly connection?: ConnectionNumber | undefined
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
  | ({ readonly type: 'range' } & RangeRequest)
  | ({ readonly type: 'txn' } & Txn)

/** All compares must hold for `success` to run; else `failure` runs. An absent list is empty. */
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
  /** The revision of this transaction if it wrote, else the store's revision. */
  readonly revision: number
  readonly succeeded: boolean
  readonly results: readonly TxnOpResult[]
}

export interface LeaseGrant {
  readonly id: bigint
  readonly ttlSeconds: number
}

export interface LeaseTtl {
  /** -1 when the lease is gone. */
  readonly ttlSeconds: number
  readonly grantedTtlSeconds: number
}

export interface MemberStatus {
  readonly endpoint: string
  readonly version: string
  readonly dbBytes: number
  readonly dbBytesInUse: number
  readonly memberId: bigint
  /** 0n when the member knows of no leader. */
  readonly leader: bigint
  readonly revision: number
  readonly raftTerm: number
  readonly isLearner: boolean
  readonly errors: readonly string[]
}

export interface Alarm {
  readonly memberId: bigint
  readonly type: 'no-space' | 'corrupt' | 'unknown'
}

export interface WatchRequest {
  readonly key: Bytes
  readonly rangeEnd?: Bytes | undefined
  /** The first revision that is owed, from 1. */
  readonly startRevision: number
  readonly prevKv?: boolean | undefined
  /** Ends the watch: the iteration finishes without an error. */
  readonly signal: AbortSignal
}

/**
 * For a watch that continues what was read: it fails with `other-history` when etcd turns out to go on
 * in another one, and with `compacted` when that cannot be told.
 */
export interface SameHistory {
  /** Whether no other history can have this value at this revision. */
  isUnique(kv: KeyValue): boolean
  /** The newest connection when the reading began. */
  readonly connectionMax: ConnectionNumber
}

export interface HistoryWatchRequest extends WatchRequest {
  readonly sameHistory: SameHistory
}

export type WatchEvent =
  | { readonly type: 'put'; readonly kv: KeyValue; readonly prevKv: KeyValue | undefined }
  /** `kv` carries the key and, as modRevision, the revision of the delete. */
  | { readonly type: 'delete'; readonly kv: KeyValue; readonly prevKv: KeyValue | undefined }

/** Whole revisions, in order, each once. No events: only progress was made. */
export interface WatchBatch {
  /** Nothing at or below this revision is owed any more. Never goes back. */
  readonly revision: number
  readonly events: readonly WatchEvent[]
}

/**
 * A watch that outlives connections and members: after a failure it goes on elsewhere, after the
 * last revision delivered. It can be iterated once. It fails with an EtcdError of kind `compacted`
 * (see `compactRevision`) when the history that is owed is gone, and with `cancelled` when the
 * client is closed; it never fails for want of a member, it keeps trying.
 */
export interface Watch extends AsyncIterable<WatchBatch> {
  /** What was delivered came over connections up to this one. */
  readonly connection: ConnectionNumber
  /**
   * Asks etcd how far this watch has come; the answer is a batch, possibly without events. Until
   * it arrives a watchdog runs that moves the watch elsewhere when the member stays silent.
   * Calls while one question is open are folded into it.
   */
  requestProgress(): void
}

/** One that continues what was read. */
export interface HistoryWatch extends Watch {
  /**
   * What comes over connections up to this one is of the history that was delivered.
   * 0 while that is not known: from each break of the stream until the next one is found to continue it.
   */
  readonly verified: ConnectionNumber
  /** Sees to it that `verified` reaches this connection, by opening the stream anew if need be. */
  verify(connection: ConnectionNumber): void
}

export interface EndpointStatus {
  readonly endpoint: string
  readonly state: 'idle' | 'connecting' | 'ready' | 'failing'
  readonly lastError: EtcdError | undefined
  /** Why there is no connection with renewed credentials yet; the old one is in use meanwhile. */
  readonly renewalError?: EtcdError | undefined
}

/**
 * Told of every call that has ended, its retries included; `path` is the gRPC method's. Not of those
 * that were given up before anything of them was sent: they say nothing of etcd. That none of its
 * members could be reached in all the time there was does.
 */
export type CallObserver = (call: {
  readonly path: string
  readonly ms: number
  readonly hasFailed: boolean
}) => void
