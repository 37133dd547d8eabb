/**
 * Rate limits of event writes, in events (in the spirit of Kubernetes' EventRateLimit) and in
 * bytes: for the whole server, for a namespace of a cluster, for a user, or for one source about one
 * object of a cluster.
 *
 * Every limit is a leaky bucket. Limits in bytes shrink while etcd fills up (`room`): burst and
 * rate are multiplied by it. So the users that wrote most are limited first, and users that write
 * little are served until etcd has no space left.
 */
import { hash } from 'node:crypto'
import type { Event } from '../../api/event.ts'
import { tooManyRequests } from '../../api/status.ts'
import { accountOf, type User } from '../user.ts'

export const EVENT_LIMIT_TYPES = ['Server', 'Namespace', 'User', 'SourceAndObject'] as const
/** What has a bucket: the server, a namespace, a user, or a source about one object. */
export type EventLimitType = (typeof EVENT_LIMIT_TYPES)[number]
export type EventLimitUnit = 'events' | 'bytes'

export interface EventLimit {
  readonly type: EventLimitType
  readonly unit: EventLimitUnit
  /** Per second, in the long run. */
  readonly rate: number
  /** At once, after an idle time. */
  readonly burst: number
  /** Number of buckets kept; beyond it, the least recently used one is evicted and starts empty. */
  readonly cacheSize: number
}

/** How long a full bucket takes to empty. */
const BYTES_BURST_SECONDS = 256
const BYTES_CACHE_SIZE = 4096

/**
 * The limit of a namespace is this multiple of the limit of a user, so that one user within its own
 * limit cannot use up the namespace's limit for the others. That holds until etcd is so full that
 * the limits have shrunk to an eighth.
 */
const NAMESPACE_USERS = 8

/** The limits, in bytes per second, of every user and every namespace; none when it is 0. */
export function byteLimits(bytesPerSecond: number): readonly EventLimit[] {
  if (bytesPerSecond === 0) return []
  const types = [
    ['User', bytesPerSecond],
    ['Namespace', bytesPerSecond * NAMESPACE_USERS],
  ] as const
  return types.map(([type, rate]) => ({
    type,
    unit: 'bytes',
    rate,
    burst: rate * BYTES_BURST_SECONDS,
    cacheSize: BYTES_CACHE_SIZE,
  }))
}

export interface EventLimitsOptions {
  /** Permanent; the limits of `replace` come on top. */
  readonly limits: readonly EventLimit[]
  /** From 1, etcd has enough space, down to 0, it is nearly full. Scales limits in bytes only. */
  readonly room?: (() => number) | undefined
  /** Monotonic milliseconds. */
  readonly now?: () => number
  readonly onRefused?: (type: EventLimitType, unit: EventLimitUnit, write: EventWrite) => void
}

/** A write that is about to be made. */
export interface EventWrite {
  readonly user: User
  /** The user that impersonates `user`, if any: bytes are charged to it. */
  readonly sender?: User | undefined
  readonly cluster: string
  readonly event: Event
  /** What etcd has to store: the whole event, however small the change to it. */
  readonly bytes: number
}

/** Longer keys are replaced by a digest: the client decides how long a key is. */
const KEY_LENGTH_MAX = 200
/** The longest Retry-After: etcd may have space again by then. */
const RETRY_SECONDS_MAX = 60

/** Allows writes until a bucket is full. */
export class EventLimits {
  readonly #permanent: readonly BucketCache[]
  #all: readonly BucketCache[]
  readonly #room: () => number
  readonly #now: () => number
  readonly #onRefused: NonNullable<EventLimitsOptions['onRefused']>

  constructor(options: EventLimitsOptions) {
    this.#permanent = options.limits.map((limit) => new BucketCache(limit))
    this.#all = this.#permanent
    this.#room = options.room ?? (() => 1)
    this.#now = options.now ?? (() => performance.now())
    this.#onRefused = options.onRefused ?? (() => {})
  }

  /** Replaces the limits of the last call. Their buckets start empty. */
  replace(limits: readonly EventLimit[]): void {
    this.#all = [...this.#permanent, ...limits.map((limit) => new BucketCache(limit))]
  }

  /**
   * Adds the write to every bucket that it counts against. If one of them has no room for it,
   * nothing is added, and it throws 429 with the time until there is room.
   */
  take(write: EventWrite): void {
    const now = this.#now()
    const room = this.#room()
    let waitMs = 0
    let refusing: EventLimit | undefined
    const caches = this.#all
    const buckets: Bucket[] = []
    for (let at = 0; at < caches.length; at++) {
      const cache = caches[at]
      if (cache === undefined) continue
      const bucket = cache.bucketOf(write, now, room)
      buckets.push(bucket)
      const bucketWaitMs = bucket.waitMs(write.bytes)
      if (bucketWaitMs > waitMs) {
        waitMs = bucketWaitMs
        refusing = cache.limit
      }
    }
    if (refusing !== undefined) throw this.#refusal(refusing, { write, waitMs, room })
    for (let at = 0; at < buckets.length; at++) buckets[at]?.take(write.bytes)
  }

  #refusal(
    { type, unit }: EventLimit,
    {
      write,
      waitMs,
      room,
    }: { readonly write: EventWrite; readonly waitMs: number; readonly room: number },
  ): Error {
    this.#onRefused(type, unit, write)
    const seconds = Math.min(RETRY_SECONDS_MAX, Math.ceil(waitMs / 1000))
    const isShort = unit === 'bytes' && room < 1
    if (isShort && room === 0) return tooManyRequests(NO_SPACE, seconds)
    const hint = isShort ? ' (the limit is reduced while etcd is filling up)' : ''
    return tooManyRequests(
      `${WRITERS[type].replace('WHAT', `too many ${unit}`)}${hint}, please try again later.`,
      seconds,
    )
  }
}

/** Sent instead of the name of the limit: the client is not the cause. */
const NO_SPACE =
  'etcd is nearly full, so writes of events are rejected until the operator frees space, please try again later.'

const WRITERS: Readonly<Record<EventLimitType, string>> = {
  Server: 'WHAT are written to this server',
  Namespace: 'WHAT are written in this namespace',
  User: 'this user writes WHAT',
  SourceAndObject: 'this controller writes WHAT about this object',
}

/** The buckets of one limit. */
class BucketCache {
  readonly limit: EventLimit
  /** The least recently used one is the first. */
  readonly #buckets = new Map<string, Bucket>()
  #newest: { readonly key: string; readonly bucket: Bucket } | undefined

  constructor(limit: EventLimit) {
    this.limit = limit
  }

  bucketOf(write: EventWrite, now: number, room: number): Bucket {
    const key = keyOf(this.limit, write)
    const bucket = this.#newest?.key === key ? this.#newest.bucket : this.#touch(key, now)
    bucket.leak(now, this.limit.unit === 'bytes' ? room : 1)
    return bucket
  }

  /** Moves the bucket to the end, as the most recently used one. */
  #touch(key: string, now: number): Bucket {
    const bucket = this.#buckets.get(key) ?? new Bucket(this.limit, now)
    this.#buckets.delete(key)
    this.#buckets.set(key, bucket)
    this.#newest = { key, bucket }
    if (this.#buckets.size > this.limit.cacheSize) {
      const [oldest = ''] = this.#buckets.keys()
      this.#buckets.delete(oldest)
    }
    return bucket
  }
}

/** A leaky bucket: writes fill it, and it empties at the rate of its limit. */
class Bucket {
  readonly #limit: EventLimit
  #level = 0
  #at: number
  #room = 1

  constructor(limit: EventLimit, now: number) {
    this.#limit = limit
    this.#at = now
  }

  leak(now: number, room: number): void {
    this.#level = Math.max(0, this.#level - ((now - this.#at) / 1000) * this.#limit.rate * room)
    this.#at = now
    this.#room = room
  }

  /**
   * How long a write of so many bytes has to wait; 0 when it fits. A write larger than the burst
   * needs an empty bucket.
   */
  waitMs(bytes: number): number {
    const cost = this.#costOf(bytes)
    if (this.#room === 0) return RETRY_SECONDS_MAX * 1000
    const burst = this.#limit.burst * this.#room
    const missing = this.#level + Math.min(cost, burst) - burst
    return missing <= 0 ? 0 : (missing / (this.#limit.rate * this.#room)) * 1000
  }

  take(bytes: number): void {
    this.#level += this.#costOf(bytes)
  }

  #costOf(bytes: number): number {
    return this.#limit.unit === 'bytes' ? bytes : 1
  }
}

/** New events have their source in one field and old ones in another, never in both. */
export function sourceOf({ reportingController, deprecatedSource }: Event): string {
  return reportingController ?? deprecatedSource?.component ?? ''
}

function keyOf({ type, unit }: EventLimit, { user, sender, cluster, event }: EventWrite): string {
  switch (type) {
    case 'Server':
      return ''
    case 'Namespace':
      return bounded(`${cluster}/${event.metadata.namespace ?? ''}`)
    case 'User':
      return bounded(accountOf(unit === 'bytes' ? (sender ?? user) : user))
    case 'SourceAndObject':
      return bounded(sourceAndObject(cluster, event))
  }
}

function sourceAndObject(cluster: string, event: Event): string {
  const { deprecatedSource, regarding = {} } = event
  const { kind = '', namespace = '', name = '', uid = '', apiVersion = '' } = regarding
  const host = deprecatedSource?.host ?? ''
  return JSON.stringify([cluster, sourceOf(event), host, kind, namespace, name, uid, apiVersion])
}

function bounded(key: string): string {
  return key.length <= KEY_LENGTH_MAX ? key : hash('sha256', key, 'base64')
}
