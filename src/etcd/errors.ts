import type { CallFailure } from '../grpc/call-failure.ts'
import { status as GrpcStatus } from '../grpc/status-codes.ts'

/** What went wrong; callers decide by it. */
export type EtcdErrorKind =
  /** No member could be reached, or the member cannot serve now. Worth retrying later. */
  | 'unavailable'
  /** Our own deadline expired. */
  | 'timeout'
  /** The requested revision was compacted; see `compactRevision`. */
  | 'compacted'
  | 'future-revision'
  /** etcd's space quota is exceeded: it accepts only reads and deletes. */
  | 'no-space'
  | 'too-many-requests'
  | 'too-large'
  /** etcd rejects our credentials, or they do not permit the request. */
  | 'unauthenticated'
  | 'not-found'
  /** Cancelled by the caller's signal or by closing the client. */
  | 'cancelled'
  /** etcd refuses the request as malformed or not allowed in this form. */
  | 'invalid'
  /** The member, or a proxy before it, does not have this method: it is of an earlier version. */
  | 'unimplemented'
  /** A write was limited to connections that are lost. It was not sent. */
  | 'outdated'
  /** etcd now has another history than the one that was followed. */
  | 'other-history'
  /** etcd has detected that the data of its members differs. */
  | 'corrupt'
  | 'internal'

export interface EtcdErrorDetails {
  readonly kind: EtcdErrorKind
  readonly message: string
  readonly endpoint?: string | undefined
  readonly mayHaveBeenApplied?: boolean | undefined
  readonly compactRevision?: number | undefined
  readonly cause?: unknown
}

/** The only kind of error that `src/etcd` throws. */
export class EtcdError extends Error {
  override readonly name = 'EtcdError'
  readonly kind: EtcdErrorKind
  /** The URL of the member from the flag. */
  readonly endpoint: string | undefined
  /**
   * Whether the write may have been applied (or may still be). False only if it certainly has not
   * been and will not be; always false for reads.
   */
  readonly mayHaveBeenApplied: boolean
  /** The oldest revision that is still available; set for `compacted` from a watch. */
  readonly compactRevision: number | undefined

  constructor(details: EtcdErrorDetails) {
    super(details.message, details.cause === undefined ? undefined : { cause: details.cause })
    this.kind = details.kind
    this.endpoint = details.endpoint
    this.mayHaveBeenApplied = details.mayHaveBeenApplied ?? false
    this.compactRevision = details.compactRevision
  }
}

/** The error for a mistake of the caller. */
export function invalid(message: string, cause?: unknown): EtcdError {
  return new EtcdError({ kind: 'invalid', message, cause })
}

/** The error for a call that failed at this member. */
export function errorOfCall(
  failure: Pick<CallFailure, 'code' | 'message' | 'origin' | 'mayHaveBeenApplied'>,
  call: { readonly endpoint: string; readonly isWrite: boolean },
): EtcdError {
  const { code, message, origin } = failure
  const known = origin === 'server' ? knownMessages.get(message) : undefined
  const isExcluded = origin === 'server' && (known?.neverApplied ?? isRefusal(code, message))
  return new EtcdError({
    kind: known?.kind ?? kindsOfCodes.get(code) ?? 'internal',
    message: message === '' ? `gRPC status ${code}` : message,
    endpoint: call.endpoint,
    mayHaveBeenApplied: call.isWrite && failure.mayHaveBeenApplied && !isExcluded,
  })
}

/** Whether another member, or the same member a little later, may succeed. */
export function isRetryable(error: EtcdError): boolean {
  return error.kind === 'unavailable'
}

interface KnownMessage {
  readonly kind: EtcdErrorKind
  /** Undefined: the code decides; see `isRefusal`. */
  readonly neverApplied?: boolean
}

/**
 * Error messages of etcd that say more than the gRPC code. The message is checked before the code,
 * because etcd sends some of them (too many requests) with the code `unknown`.
 *
 * Sent before a proposal is made, hence never applied: no leader (requested with the `hasleader`
 * header, checked before the request is read), not capable, learner, too many requests, raft
 * proposal dropped (refused by the member's own raft node, never forwarded).
 *
 * No proof either way: all timeouts, server stopped, and database space exceeded, which etcd also
 * returns for a transaction that it has just applied and that exceeded its quota.
 */
const knownMessages: ReadonlyMap<string, KnownMessage> = new Map<string, KnownMessage>([
  ['etcdserver: mvcc: required revision has been compacted', { kind: 'compacted' }],
  ['etcdserver: mvcc: required revision is a future revision', { kind: 'future-revision' }],
  ['etcdserver: mvcc: database space exceeded', { kind: 'no-space', neverApplied: false }],
  ['etcdserver: too many requests', { kind: 'too-many-requests', neverApplied: true }],
  ['etcdserver: request is too large', { kind: 'too-large' }],
  ['etcdserver: corrupt cluster', { kind: 'corrupt' }],
  ['etcdserver: no leader', { kind: 'unavailable', neverApplied: true }],
  ['etcdserver: not capable', { kind: 'unavailable', neverApplied: true }],
  ['etcdserver: rpc not supported for learner', { kind: 'unavailable', neverApplied: true }],
  ['raft proposal dropped', { kind: 'unavailable', neverApplied: true }],
  ['etcdserver: user name is empty', { kind: 'unauthenticated' }],
  ['etcdserver: revision of auth store is old', { kind: 'unauthenticated' }],
  ['etcdserver: authentication is not enabled', { kind: 'unauthenticated' }],
])

/** How the message begins with which grpc-go, inside etcd, refuses a request over its limit. */
const tooLargeForServer = 'grpc: received message larger than max'

/**
 * Codes of refusals: etcd has checked the request, before proposing it or before applying any of
 * it, and changed nothing. Only together with etcd's message prefix: the gRPC library inside etcd
 * uses some of these codes too.
 */
const refusals: ReadonlySet<number> = new Set([
  GrpcStatus.INVALID_ARGUMENT,
  GrpcStatus.NOT_FOUND,
  GrpcStatus.PERMISSION_DENIED,
  GrpcStatus.UNAUTHENTICATED,
  GrpcStatus.FAILED_PRECONDITION,
  GrpcStatus.OUT_OF_RANGE,
  GrpcStatus.DATA_LOSS,
])

function isRefusal(code: number, message: string): boolean {
  if (message.startsWith('etcdserver: ')) return refusals.has(code)
  return code === GrpcStatus.RESOURCE_EXHAUSTED && message.startsWith(tooLargeForServer)
}

const kindsOfCodes: ReadonlyMap<number, EtcdErrorKind> = new Map<number, EtcdErrorKind>([
  // Our own cancels are reported elsewhere; this is the member's.
  [GrpcStatus.CANCELLED, 'unavailable'],
  [GrpcStatus.UNKNOWN, 'internal'],
  [GrpcStatus.INVALID_ARGUMENT, 'invalid'],
  [GrpcStatus.DEADLINE_EXCEEDED, 'timeout'],
  [GrpcStatus.NOT_FOUND, 'not-found'],
  [GrpcStatus.PERMISSION_DENIED, 'unauthenticated'],
  [GrpcStatus.RESOURCE_EXHAUSTED, 'too-large'],
  [GrpcStatus.FAILED_PRECONDITION, 'invalid'],
  [GrpcStatus.OUT_OF_RANGE, 'invalid'],
  [GrpcStatus.UNIMPLEMENTED, 'unimplemented'],
  [GrpcStatus.UNAVAILABLE, 'unavailable'],
  [GrpcStatus.DATA_LOSS, 'corrupt'],
  [GrpcStatus.UNAUTHENTICATED, 'unauthenticated'],
])
