/**
 * Rate limits of event writes, in events (in the spirit of Kubernetes' EventRateLimit) and in bytes.
 * A limit applies to the whole server, a namespace of a cluster, a user, one source about one object
 * of a cluster, or a mirrored cluster.
 *
 * Every limit is a leaky bucket. Limits in bytes shrink while etcd fills up: burst and rate are
 * multiplied by its headroom. So users that have written most are limited first, and users that write
 * little are served until etcd has no space left.
 */
import { hash } from 'node:crypto'
import type { Event } from '../../api/event.ts'

export const EVENT_LIMIT_TYPES = ['Server', 'Namespace', 'User', 'SourceAndObject'] as const
/** `Cluster` limits the mirror of a cluster; a file cannot set it. */
export type EventLimitType = (typeof EVENT_LIMIT_TYPES)[number] | 'Cluster'
export type EventLimitUnit = 'events' | 'bytes'

export interface EventLimit {
  readonly type: EventLimitType
  readonly unit: EventLimitUnit
  /** Sustained rate per second. */
  readonly rate: number
  /** Maximum at once after an idle time. */
  readonly burst: number
  /** Maximum number of buckets. The least recently used one is evicted and starts empty again. */
  readonly cacheSize: number
}

/** How long a full bucket takes to empty. */
const BYTES_BURST_SECONDS = 256
const BYTES_CACHE_SIZE = 4096

/**
 * A namespace or a mirrored cluster may write as much as this many users, so that one user within
 * its own limit cannot use up the namespace's limit for the others. That holds until etcd is so full
 * that the limits have shrunk to an eighth.
 */
export const USERS_PER_GROUP = 8

/**
 * Limits in bytes per second for these types; none when the rate is 0. `burstBytesMax` caps the burst
 * of a user.
 */
export function byteLimits(
  types: readonly ('User' | 'Namespace' | 'Cluster')[],
  bytesPerSecond: number,
  burstBytesMax: number = Number.POSITIVE_INFINITY,
): readonly EventLimit[] {
  if (bytesPerSecond === 0) return []
  const burst = Math.min(bytesPerSecond * BYTES_BURST_SECONDS, burstBytesMax)
  return types.map((type) => {
    const users = type === 'User' ? 1 : USERS_PER_GROUP
    return {
      type,
      unit: 'bytes',
      rate: bytesPerSecond * users,
      burst: burst * users,
      cacheSize: BYTES_CACHE_SIZE,
    }
  })
}

export interface EventLimitsOptions {
  /** Permanent limits, in addition to those of `replace`. */
  readonly limits: readonly EventLimit[]
  /** From 1 (etcd has enough space) to 0 (nearly full). Scales only limits in bytes. */
  readonly headroom?: (() => number) | undefined
  /** Monotonic milliseconds. */
  readonly now?: () => number
}

export interface EventWrite {
  /** The account of the user; undefined for a mirror. */
  readonly account?: string | undefined
  /** The account that bytes are charged to. */
  readonly payer?: string | undefined
  readonly cluster: string
  readonly event: Event
  /** What etcd has to store: the whole event, however small the change. */
  readonly bytes: number
}

/** The limit that rejected a write. */
export interface RateExceeded {
  readonly type: EventLimitType
  readonly unit: EventLimitUnit
  readonly waitMs: number
  /** Below 1 while the limit is reduced; 0 when nothing is accepted. */
  readonly headroom: number
}

const KEY_LENGTH_MAX = 200
/** The wait while etcd accepts nothing; it may have space again by then. */
const NO_HEADROOM_WAIT_MS = 60_000

/** Allows writes until a bucket is full. */
export class EventLimits {
  readonly #permanent: readonly BucketCache[]
  #all: readonly BucketCache[]
  readonly #headroom: () => number
  readonly #now: () => number

  constructor(options: EventLimitsOptions) {
    this.#permanent = options.limits.map((limit) => new BucketCache(limit))
    this.#all = this.#permanent
    this.#headroom = options.headroom ?? (() => 1)
    this.#now = options.now ?? (() => performance.now())
  }

  /** Replaces the limits of the previous call. The new buckets start empty. */
  replace(limits: readonly EventLimit[]): void {
    this.#all = [...this.#permanent, ...limits.map((limit) => new BucketCache(limit))]
  }

  /**
   * Adds the write to every bucket that it counts against. If one of them has no space, adds nothing
   * and returns the limit with the longest wait.
   */
  take(write: EventWrite): RateExceeded | undefined {
    const now = this.#now()
    const headroom = this.#headroom()
    let waitMs = 0
    let refusing: EventLimit | undefined
    const caches = this.#all
    const buckets: Bucket[] = []
    for (let at = 0; at < caches.length; at++) {
      const cache = caches[at]
      if (cache === undefined) continue
      const bucket = cache.bucketOf(write, now, headroom)
      buckets.push(bucket)
      const bucketWaitMs = bucket.waitMs(write.bytes)
      if (bucketWaitMs > waitMs) {
        waitMs = bucketWaitMs
        refusing = cache.limit
      }
    }
    if (refusing !== undefined) {
      const { type, unit } = refusing
      return { type, unit, waitMs, headroom: unit === 'bytes' ? headroom : 1 }
    }
    for (let at = 0; at < buckets.length; at++) buckets[at]?.take(write.bytes)
    return undefined
  }
}

/** The buckets of one limit. */
class BucketCache {
  readonly limit: EventLimit
  /** Least recently used first. */
  readonly #buckets = new Map<string, Bucket>()
  #newest: { readonly key: string; readonly bucket: Bucket } | undefined

  constructor(limit: EventLimit) {
    this.limit = limit
  }

  bucketOf(write: EventWrite, now: number, headroom: number): Bucket {
    const key = keyOf(this.limit, write)
    const bucket = this.#newest?.key === key ? this.#newest.bucket : this.#touch(key, now)
    bucket.leak(now, this.limit.unit === 'bytes' ? headroom : 1)
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
  #headroom = 1

  constructor(limit: EventLimit, now: number) {
    this.#limit = limit
    this.#at = now
  }

  leak(now: number, headroom: number): void {
    this.#level = Math.max(0, this.#level - ((now - this.#at) / 1000) * this.#limit.rate * headroom)
    this.#at = now
    this.#headroom = headroom
  }

  /**
   * How long a write has to wait; 0 when it fits. A write larger than the burst needs an empty
   * bucket.
   */
  waitMs(bytes: number): number {
    const cost = this.#costOf(bytes)
    if (this.#headroom === 0) return NO_HEADROOM_WAIT_MS
    const burst = this.#limit.burst * this.#headroom
    const missing = this.#level + Math.min(cost, burst) - burst
    return missing <= 0 ? 0 : (missing / (this.#limit.rate * this.#headroom)) * 1000
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

function keyOf({ type, unit }: EventLimit, write: EventWrite): string {
  const { account = '', payer = account, cluster, event } = write
  switch (type) {
    case 'Server':
      return ''
    case 'Cluster':
      return cluster
    case 'Namespace':
      return bounded(`${cluster}/${event.metadata.namespace ?? ''}`)
    case 'User':
      return bounded(unit === 'bytes' ? payer : account)
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

/** Replaces long keys by a digest, since clients determine their length. */
export function bounded(key: string): string {
  return key.length <= KEY_LENGTH_MAX ? key : hash('sha256', key, 'base64')
}
