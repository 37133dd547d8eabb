import { status as GrpcStatus } from '@grpc/grpc-js'

/** What went wrong, in the words callers decide by. */
export type EtcdErrorKind =
  /** No member could be reached, or the one reached cannot serve now. Worth trying later. */
  | 'unavailable'
  /** Our own deadline passed first. */
  | 'timeout'
  /** The revision asked for is gone; see `compactRevision`. */
  | 'compacted'
  | 'future-revision'
  /** etcd's quota is used up: it takes only reads and deletes. */
  | 'no-space'
  | 'too-many-requests'
  | 'too-large'
  /** etcd does not know us or does not allow us this. */
  | 'unauthenticated'
  | 'not-found'
  /** The caller's signal, or the closing of the client. */
  | 'cancelled'
  /** etcd refuses the request as it stands. */
  | 'invalid'
  /** A write was to go over connections that are gone by now. It was not sent. */
  | 'outdated'
  /** etcd goes on in another history than the one that was followed. */
  | 'other-history'
  /** etcd has found that its members disagree. */
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

/** The one family of errors that leaves this room. */
export class EtcdError extends Error {
  override readonly name = 'EtcdError'
  readonly kind: EtcdErrorKind
  /** The gRPC status code, when there was an answer or a broken call. */
  readonly grpcCode: number | undefined
  /** The member concerned, as configured. */
  readonly endpoint: string | undefined
  /**
   * Whether the write may have happened (or may happen yet). False only where it is certain that it
   * has not and will not; always false for reads.
   */
  readonly maybeApplied: boolean
  /** With `compacted` from a watch: the oldest revision that is still there. */
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

/** How a call ended that was not a success, as gRPC tells it. */
export interface FailedStatus {
  readonly code: number
  readonly details: string
  readonly endpoint: string
  /** Whether the call could change anything. */
  readonly write: boolean
  readonly cause?: unknown
}

/** The error for a call that ended with a status other than OK. */
export function errorFromStatus(failed: FailedStatus): EtcdError {
  const known = answers.get(failed.details)
  const { details, cause } = failed
  const message = details === '' ? `gRPC status ${failed.code}` : plainWords(details)
  // gRPC made it for this call alone, and a log that tells of both need not say the same twice.
  if (cause instanceof Error && details !== '' && cause.message.endsWith(details)) {
    cause.message = message
  }
  return new EtcdError({
    kind: known?.kind ?? kindOfCode(failed.code, failed.details),
    message,
    grpcCode: failed.code,
    endpoint: failed.endpoint,
    maybeApplied: failed.write && !(known?.neverApplied ?? isRefusal(failed)),
    cause,
  })
}

/** Takes off what gRPC wraps around the system's own words when it cannot connect. */
function plainWords(details: string): string {
  return (
    details
      .replace(/^No connection established\. Last error: (?:Error: )?/, 'cannot connect: ')
      .replace(/\.? Resolution note: ?$/, '')
      .replace(/\s*\(\d{4}-\d\d-\d\dT[\d:.]+Z\)$/, '')
      // OpenSSL's own form: thread, code, library, function, reason, file, line.
      .replace(/[0-9A-F]+:error:[0-9A-F]+:[^:]*:[^:]*:([^:]+):\S*:\d+:.*$/s, 'TLS: $1')
  )
}

/** Whether another member, or the same one a little later, may well do better. */
export function isWorthAnotherTry(error: EtcdError): boolean {
  return error.kind === 'unavailable'
}

interface KnownAnswer {
  readonly kind: EtcdErrorKind
  /** Left out: the code decides, see `isRefusal`. */
  readonly neverApplied?: boolean
}

/**
 * etcd's own words, where they say more than the gRPC code does. The words are looked at before the
 * code, because etcd sends some of them (too many requests) under the code `unknown`.
 *
 * Said before a proposal is made, hence never applied: no leader (asked for with the `hasleader`
 * header, checked before the request is looked at), not capable, learner, too many requests, raft
 * proposal dropped (refused by the member's own raft node, never forwarded).
 *
 * Not proof of anything: all the time-outs, server stopped, and database space exceeded, which etcd
 * also answers for a transaction that it has just applied and that took it over its quota.
 */
const answers: ReadonlyMap<string, KnownAnswer> = new Map<string, KnownAnswer>([
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

/** How grpc-go, inside etcd, begins its refusal to read a message over its limit. */
const tooLargeForServer = 'grpc: received message larger than max'

/**
 * Codes under which etcd refuses: it has checked the request, before proposing it or before applying
 * any of it, and left everything as it was. Only together with etcd's prefix: our own end of the
 * connection makes up statuses with some of these codes too.
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
  // We report our own cancelling ourselves; what remains is a stream that the other end reset.
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
  // A connection that breaks in the middle of a call ends it with one of these.
  if (details.startsWith('Received RST_STREAM') || details === 'No status information received') {
    return 'unavailable'
  }
  return kindsOfCodes.get(code) ?? 'internal'
}
