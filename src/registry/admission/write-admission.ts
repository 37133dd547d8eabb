/**
 * Decides whether an event may be stored, by the rate limits and by how much of the space for events
 * its writer already uses. Clients are rejected with 429; mirrors learn how long to wait.
 */
import type { Event } from '../../api/event.ts'
import { StatusError, tooManyRequests } from '../../api/status.ts'
import { StorageError } from '../../storage/errors.ts'
import type { EventKey, StoredEvent } from '../../storage/storage.ts'
import type { EventLimits, RateExceeded } from './event-limits.ts'
import type { Refund, ShareExceeded, StoredBytes, TenantType } from './stored-bytes.ts'

/** The longest Retry-After; there may be space again by then. */
const RETRY_SECONDS_MAX = 60
/** The longest wait of a mirror, whose share grows as soon as others use less. */
const MIRROR_WAIT_MS_MAX = 5_000

/** Who sends a write; one object for each request. */
export interface Writer {
  readonly account: string
  /** The account that bytes are charged to: the impersonating user's, if there is one. */
  readonly payer: string
  /** Set by the first admitted write, so that a retry of the same request is not charged again. */
  refund?: Refund | undefined
}

export interface AdmittedWrite {
  readonly cluster: string
  readonly event: Event
  /** What etcd has to store: the whole event, however small the change. */
  readonly bytes: number
  /** How much the stored event grows; all of `bytes` for a new one. */
  readonly growth: number
}

/** Bytes in etcd per event besides its body and key: header, revisions, page entries. */
const STORED_OVERHEAD_BYTES = 128

/** The charge for a body that replaces `stored`, or is new. */
export function writeOf(
  { cluster, namespace, name }: EventKey,
  { event, body, stored }: ChangedEvent,
): AdmittedWrite {
  const keyBytes = cluster.length + namespace.length + name.length
  const bytes = body.length + keyBytes + STORED_OVERHEAD_BYTES
  const growth = stored === undefined ? bytes : body.length - stored.body.length
  return { cluster, event, bytes, growth }
}

export interface ChangedEvent {
  readonly event: Event
  readonly body: Buffer
  readonly stored: Pick<StoredEvent, 'body'> | undefined
}

/** Called with the type of the exceeded limit, and its unit or the resource that is short. */
export type OnRefused = (type: string, unit: string, payer: string, event: Event) => void

export interface WriteAdmissionOptions {
  /** The rate limits of clients. */
  readonly limits: Pick<EventLimits, 'take'>
  /** The rate limits of mirrors. */
  readonly mirrorLimits: Pick<EventLimits, 'take'>
  readonly stored: StoredBytes
  /** How long an event lives after a write. Default: as long as writes are charged at all. */
  readonly lifetimeOf?: ((cluster: string, event: Event) => number | 'never') | undefined
  /** Counts the admitted writes of clients. */
  readonly sources?: { wrote(account: string, cluster: string): void } | undefined
  readonly onRefused?: OnRefused | undefined
}

export class WriteAdmission {
  readonly #options: WriteAdmissionOptions

  constructor(options: WriteAdmissionOptions) {
    this.#options = options
  }

  /**
   * Charges a client's write, or throws 429 and charges nothing. `refundFailed` refunds the stored
   * bytes but not the rate.
   */
  admit(writer: Writer, write: AdmittedWrite): void {
    if (writer.refund !== undefined) return
    const { limits, stored, sources, onRefused } = this.#options
    const { account, payer } = writer
    const { cluster, event, bytes, growth } = write
    const storing = { cluster, account: payer, namespace: event.metadata.namespace ?? '' }
    const shareExceeded = stored.exceeded(storing, growth)
    if (shareExceeded !== undefined) {
      onRefused?.(shareExceeded.type, shareExceeded.resource, payer, event)
      throw shareRefusal(shareExceeded)
    }
    const rateExceeded = limits.take({ account, payer, cluster, event, bytes })
    if (rateExceeded !== undefined) {
      onRefused?.(rateExceeded.type, rateExceeded.unit, payer, event)
      throw rateRefusal(rateExceeded)
    }
    writer.refund = stored.store(storing, growth, this.#lifetimeMs(write))
    sources?.wrote(payer, cluster)
  }

  /** Charges a mirror's write, or throws MirrorThrottled. */
  admitMirrored(write: AdmittedWrite): void {
    const { mirrorLimits, stored } = this.#options
    const { cluster, event, bytes, growth } = write
    const storing = { cluster }
    const shareExceeded = stored.exceeded(storing, growth)
    if (shareExceeded !== undefined) {
      throw new MirrorThrottled(whyShort(shareExceeded), shareExceeded.waitMs)
    }
    const rateExceeded = mirrorLimits.take({ cluster, event, bytes })
    if (rateExceeded?.headroom === 0) {
      throw new MirrorThrottled('etcd is nearly full', rateExceeded.waitMs)
    }
    if (rateExceeded !== undefined) {
      throw new MirrorThrottled('it sends more bytes per second than it may', rateExceeded.waitMs)
    }
    stored.store(storing, growth, this.#lifetimeMs(write))
  }

  #lifetimeMs({ cluster, event }: AdmittedWrite): number {
    const lifetime = this.#options.lifetimeOf?.(cluster, event) ?? 'never'
    return lifetime === 'never' ? Number.POSITIVE_INFINITY : lifetime
  }
}

/** Refunds a write that failed with `error`, unless it may still have been applied. */
export function refundFailed(writer: Writer | undefined, error: unknown): void {
  const cause = error instanceof StatusError ? error.cause : error
  if (cause instanceof StorageError && cause.kind === 'timeout') return
  writer?.refund?.()
  if (writer !== undefined) writer.refund = undefined
}

/** A mirror has to wait until it may store more. Nothing was written. */
export class MirrorThrottled extends StorageError {
  constructor(reason: string, waitMs: number) {
    const retryAfterMs = Math.min(waitMs, MIRROR_WAIT_MS_MAX)
    super({ kind: 'overloaded', message: reason, reason, retryAfterMs })
  }
}

function whyShort({ resource, isExhausted }: ShareExceeded): string {
  const where = resource === 'etcd' ? 'etcd' : 'memory'
  return isExhausted
    ? `${where} has no space left for events`
    : `this cluster has its share of the space that ${where} has for events`
}

const EXHAUSTED: Readonly<Record<ShareExceeded['resource'], string>> = {
  etcd: 'etcd is nearly full, so writes of events are rejected until the operator frees space, please try again later.',
  memory:
    'the memory for events is full, so writes of events are rejected until events expire or the operator raises the memory limit, please try again later.',
}

const FILLING: Readonly<Record<ShareExceeded['resource'], string>> = {
  etcd: 'the limit is reduced while etcd is filling up',
  memory: 'the limit is reduced while memory for events is short',
}

const HOLDERS: Readonly<Record<TenantType, string>> = {
  User: 'this user has stored too many bytes',
  Namespace: 'too many bytes are stored in this namespace',
  Cluster: 'too many bytes are stored in this cluster',
}

function shareRefusal({ type, resource, isExhausted, waitMs }: ShareExceeded): StatusError {
  const seconds = secondsOf(waitMs)
  if (isExhausted) return tooManyRequests(EXHAUSTED[resource], seconds)
  return tooManyRequests(
    `${HOLDERS[type]} (${FILLING[resource]}), please try again later.`,
    seconds,
  )
}

const WRITERS: Readonly<Record<RateExceeded['type'], string>> = {
  Server: 'WHAT are written to this server',
  Namespace: 'WHAT are written in this namespace',
  User: 'this user writes WHAT',
  SourceAndObject: 'this controller writes WHAT about this object',
  Cluster: 'WHAT are written in this cluster',
}

function rateRefusal({ type, unit, waitMs, headroom }: RateExceeded): StatusError {
  const seconds = secondsOf(waitMs)
  // The name of the limit would mislead: the client is not the cause.
  if (headroom === 0) return tooManyRequests(EXHAUSTED.etcd, seconds)
  const hint = headroom < 1 ? ` (${FILLING.etcd})` : ''
  return tooManyRequests(
    `${WRITERS[type].replace('WHAT', `too many ${unit}`)}${hint}, please try again later.`,
    seconds,
  )
}

function secondsOf(waitMs: number): number {
  return Math.max(1, Math.min(RETRY_SECONDS_MAX, Math.ceil(waitMs / 1000)))
}
