import { status as GrpcStatus } from './transport/codes.ts'

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
  readonly grpcCode?: number | undefined
  readonly endpoint?: string | undefined
  readonly maybeApplied?: boolean | undefined
  readonly compactRevision?: number | undefined
  readonly cause?: unknown
}

/** The only kind of error that `src/etcd` throws. */
export class EtcdError extends Error {
  override readonly name = 'EtcdError'
  readonly kind: EtcdErrorKind
  /** The gRPC status code, when there was a response or a broken call. */
  readonly grpcCode: number | undefined
  /** The member concerned, as configured. */
  readonly endpoint: string | undefined
  /**
   * Whether the write may have been applied (or may still be). False only if it certainly has not
   * been and will not be; always false for reads.
   */
  readonly maybeApplied: boolean
  /** With `compacted` from a watch: the oldest revision that is still available. */
  readonly compactRevision: number | undefined

  constructor(details: EtcdErrorDetails) {
    super(details.message, details.cause === undefined ? undefined : { cause: details.cause })
    this.kind = details.kind
    this.grpcCode = details.grpcCode
    this.endpoint = details.endpoint
    this.maybeApplied = details.maybeApplied ?? false
    this.compactRevision = details.compactRevision
  }
}

/** The error for a mistake of the caller. */
export function invalid(message: string, cause?: unknown): EtcdError {
  return new EtcdError({ kind: 'invalid', message, cause })
}

/** The status of a failed call, as gRPC reports it. */
export interface FailedStatus {
  readonly code: number
  readonly details: string
  readonly endpoint: string
  /** Whether the call could change anything. */
  readonly write: boolean
  /** The member has certainly not begun with it. */
  readonly neverSent?: boolean | undefined
  readonly cause?: unknown
}

/** The error for a call that ended with a status other than OK. */
export function errorFromStatus(failed: FailedStatus): EtcdError {
  const known = knownMessages.get(failed.details)
  const { details, cause } = failed
  const message = details === '' ? `gRPC status ${failed.code}` : withoutWrapping(details)
  // The log prints both: avoid the same text twice.
  if (cause instanceof Error && details !== '' && cause.message.endsWith(details)) {
    cause.message = message
  }
  return new EtcdError({
    kind: known?.kind ?? kindOfCode(failed.code, failed.details),
    message,
    grpcCode: failed.code,
    endpoint: failed.endpoint,
    maybeApplied: mayBeApplied(failed, known),
    cause,
  })
}

/** OpenSSL's own form of an error: thread, code, library, function, reason, file, line. */
function withoutWrapping(details: string): string {
  return details.replace(/[0-9A-F]+:error:[0-9A-F]+:[^:]*:[^:]*:([^:]+):\S*:\d+:.*$/s, 'TLS: $1')
}

function mayBeApplied(failed: FailedStatus, known: KnownMessage | undefined): boolean {
  if (!failed.write || failed.neverSent === true) return false
  return !(known?.neverApplied ?? isRefusal(failed))
}

/** Whether another member, or the same member a little later, may succeed. */
export function isRetryable(error: EtcdError): boolean {
  return error.kind === 'unavailable'
}

interface KnownMessage {
  readonly kind: EtcdErrorKind
  /** Undefined: the code decides, see `isRefusal`. */
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

/** Start of the message with which grpc-go, inside etcd, refuses a message over its limit. */
const tooLargeForServer = 'grpc: received message larger than max'

/**
 * Codes of refusals: etcd has checked the request, before proposing it or before applying any of
 * it, and changed nothing. Only together with etcd's message prefix: our own gRPC client creates
 * statuses with some of these codes too.
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

function isRefusal(failed: FailedStatus): boolean {
  if (failed.details.startsWith('etcdserver: ')) return refusals.has(failed.code)
  return (
    failed.code === GrpcStatus.RESOURCE_EXHAUSTED && failed.details.startsWith(tooLargeForServer)
  )
}

const kindsOfCodes: ReadonlyMap<number, EtcdErrorKind> = new Map<number, EtcdErrorKind>([
  // Our own cancels are reported elsewhere; this one is a stream that the member reset.
  [GrpcStatus.CANCELLED, 'unavailable'],
  [GrpcStatus.UNKNOWN, 'internal'],
  [GrpcStatus.INVALID_ARGUMENT, 'invalid'],
  [GrpcStatus.DEADLINE_EXCEEDED, 'timeout'],
  [GrpcStatus.NOT_FOUND, 'not-found'],
  [GrpcStatus.PERMISSION_DENIED, 'unauthenticated'],
  [GrpcStatus.RESOURCE_EXHAUSTED, 'too-large'],
  [GrpcStatus.FAILED_PRECONDITION, 'invalid'],
  [GrpcStatus.OUT_OF_RANGE, 'invalid'],
  [GrpcStatus.UNIMPLEMENTED, 'invalid'],
  [GrpcStatus.UNAVAILABLE, 'unavailable'],
  [GrpcStatus.DATA_LOSS, 'corrupt'],
  [GrpcStatus.UNAUTHENTICATED, 'unauthenticated'],
])

function kindOfCode(code: number, details: string): EtcdErrorKind {
  // A connection that breaks during a call ends the call with one of these.
  if (details.startsWith('Received RST_STREAM')) return 'unavailable'
  return kindsOfCodes.get(code) ?? 'internal'
}
