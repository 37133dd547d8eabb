import type { DuplexOptions } from '../grpc/session.ts'
import {
  decodeAlarms,
  decodeLeaseGrant,
  decodeLeaseKeepAlive,
  decodeLeaseTtl,
  decodeNothing,
  decodeStatus,
} from './protocol/control-messages.ts'
import {
  decodeRangeChunk,
  decodeRangeResult,
  decodeTxnResult,
  decodeWatchMessage,
  type WatchMessage,
} from './protocol/hot-messages.ts'
import type {
  Alarm,
  KeyValue,
  LeaseGrant,
  LeaseTtl,
  MemberStatus,
  RangeResult,
  TxnResult,
} from './protocol/protocol.ts'

/** A unary method, and what may be done when a call of it fails. */
export interface Method<Response> {
  readonly path: string
  /** Whether the call can change anything: then it is never sent twice. */
  readonly isWrite: boolean
  readonly metadata: typeof needsLeader | undefined
  /** Largest accepted response message, in bytes. */
  readonly maxBytes: number
  decode(message: Buffer): Response
}

/** A member without a leader refuses the call at once, and ends streams when it loses its leader. */
const needsLeader = { hasleader: 'true' } as const

/**
 * Pages aim at 4 MB, and are requested again with fewer keys when their values are larger than
 * those before. etcd splits watch responses at its own limit for requests, 1.5 MiB by default; a
 * watch that does not let it split them (watch-stream.ts) gets 250,000 deletes at once.
 */
const maxPageBytes = 32 * 1024 * 1024
/** A batch of 100 writes may return the values they conflict with, up to 1.5 MiB each by default. */
const maxTxnBytes = 160 * 1024 * 1024
/** Leases, status and alarms: a few numbers and names. */
const maxSmallBytes = 1024 * 1024

export const methods: {
  readonly range: Method<RangeResult>
  readonly txn: Method<TxnResult>
  readonly readOnlyTxn: Method<TxnResult>
  readonly compact: Method<void>
  readonly leaseGrant: Method<LeaseGrant>
  readonly leaseRevoke: Method<void>
  readonly leaseKeepAlive: Method<number>
  readonly leaseTimeToLive: Method<LeaseTtl>
  readonly status: Method<Omit<MemberStatus, 'endpoint'>>
  readonly alarm: Method<readonly Alarm[]>
} = {
  range: read('KV/Range', decodeRangeResult, maxPageBytes),
  txn: write('KV/Txn', decodeTxnResult, maxTxnBytes),
  readOnlyTxn: read('KV/Txn', decodeTxnResult, maxTxnBytes),
  compact: write('KV/Compact', decodeNothing),
  leaseGrant: write('Lease/LeaseGrant', decodeLeaseGrant),
  leaseRevoke: write('Lease/LeaseRevoke', decodeNothing),
  // Renewal is idempotent, so it may be retried like a read. etcd offers it as a stream, but one
  // request and one response on a stream are the same bytes as a unary call.
  leaseKeepAlive: read('Lease/LeaseKeepAlive', decodeLeaseKeepAlive),
  leaseTimeToLive: read('Lease/LeaseTimeToLive', decodeLeaseTtl),
  status: { ...read('Maintenance/Status', decodeStatus), metadata: undefined },
  alarm: read('Maintenance/Alarm', decodeAlarms),
}

export const watchMethod: DuplexOptions<WatchMessage> = {
  path: '/etcdserverpb.Watch/Watch',
  metadata: needsLeader,
  decode: decodeWatchMessage,
  maxBytes: maxPageBytes,
}

/**
 * A message of a stream has up to twice `--max-request-bytes`, 3 MiB by default; values that are
 * much larger than those before them make it longer. One message is read ahead, and what is on its
 * way behind it is limited by the window of the stream.
 */
export const rangeStreamMethod: DuplexOptions<readonly KeyValue[]> = {
  path: '/etcdserverpb.KV/RangeStream',
  metadata: needsLeader,
  decode: decodeRangeChunk,
  maxBytes: maxPageBytes,
  readAhead: 1,
}

function read<Response>(
  name: string,
  decode: (message: Buffer) => Response,
  maxBytes = maxSmallBytes,
): Method<Response> {
  const path = `/etcdserverpb.${name}`
  return { path, isWrite: false, metadata: needsLeader, decode, maxBytes }
}

function write<Response>(
  name: string,
  decode: (message: Buffer) => Response,
  maxBytes = maxSmallBytes,
): Method<Response> {
  return { ...read(name, decode, maxBytes), isWrite: true }
}
