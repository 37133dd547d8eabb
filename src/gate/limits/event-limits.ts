/**
 * How fast events may be written, in events (in the spirit of Kubernetes' EventRateLimit) and in
 * bytes: for the whole server, for a namespace, for a user, or for one source about one object.
 *
 * Every limit is a leaky bucket. Those that count bytes shrink while etcd fills up (`room`): their
 * burst and their rate are multiplied by it. Whoever wrote most is stopped first, and those who
 * write little go on until there is no room at all.
 */
import { hash } from 'node:crypto'
import type { Event } from '../../api/event.ts'
import { tooManyRequests } from '../../api/status.ts'
import type { User } from '../user.ts'

export const EVENT_LIMIT_TYPES = ['Server', 'Namespace', 'User', 'SourceAndObject'] as const
/** Who shares one allowance. */
export type EventLimitType = (typeof EVENT_LIMIT_TYPES)[number]
export type EventLimitUnit = 'events' | 'bytes'

export interface EventLimit {
  readonly type: EventLimitType
  readonly unit: EventLimitUnit
  /** A second, in the long run. */
  readonly rate: number
  /** At once, after a quiet time. */
  readonly burst: number
  /** Allowances that are remembered; of more, the one unused for longest starts anew. */
  readonly cacheSize: number
}

/** How long it takes until a whole allowance has been given again. */
const BYTES_BURST_SECONDS = 256
const BYTES_CACHE_SIZE = 4096

/**
 * A namespace has so many times what a user has, so that one user within its own limit cannot use it up
 * for the others: not before etcd is so full that the limits are an eighth of what they were.
 */
const NAMESPACE_USERS = 8

/** The limits of bytes a second that every user and every namespace has; none when it is 0. */
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
  /** These stay; those of `replace` come on top. */
  readonly limits: readonly EventLimit[]
  /** From 1, etcd has room, down to 0, it is nearly full. Only limits of bytes heed it. */
  readonly room?: (() => number) | undefined
  /** Milliseconds that never go back. */
  readonly now?: () => number
  readonly onRefused?: (type: EventLimitType, unit: EventLimitUnit, write: EventWrite) => void
}

/** A write that is about to be made. */
export interface EventWrite {
  readonly user: User
  /** Who speaks for that user, if it is somebody else: bytes are charged to them. */
  readonly sender?: User | undefined
  readonly event: Event
  /** What etcd is to store: all of the event, however small the change to it. */
  readonly bytes: number
}

/** Longer keys than this are remembered by digest: how long one is, its sender decides. */
const KEY_LENGTH_MAX = 200
/** Nobody is sent away for longer: etcd may have room again by then. */
const RETRY_SECONDS_MAX = 60

/** Lets events pass until somebody's allowance is used up. */
export class EventLimits {
  readonly #fixed: readonly Allowances[]
  #allowances: readonly Allowances[]
  readonly #room: () => number
  readonly #now: () => number
  readonly #onRefused: NonNullable<EventLimitsOptions['onRefused']>

  constructor(options: EventLimitsOptions) {
    this.#fixed = options.limits.map((limit) => new Allowances(limit))
    this.#allowances = this.#fixed
    this.#room = options.room ?? (() => 1)
    this.#now = options.now ?? (() => performance.now())
    this.#onRefused = options.onRefused ?? (() => {})
  }

  /** From now on these hold as well, each with a full allowance for everybody. */
  replace(limits: readonly EventLimit[]): void {
    this.#allowances = [...this.#fixed, ...limits.map((limit) => new Allowances(limit))]
  }

  /**
   * Takes from every allowance that this write counts against. If one of them is used up, nothing
   * is taken, and it throws 429 with the time until there is enough again.
   */
  take(write: EventWrite): void {
    const now = this.#now()
    const room = this.#room()
    let waitMs = 0
    let refusing: EventLimit | undefined
    const allowances = this.#allowances
    const buckets: Bucket[] = []
    for (let at = 0; at < allowances.length; at++) {
      const one = allowances[at]
      if (one === undefined) continue
      const bucket = one.of(write, now, room)
      buckets.push(bucket)
      const bucketWaitMs = bucket.waitMs(write.bytes)
      if (bucketWaitMs > waitMs) {
        waitMs = bucketWaitMs
        refusing = one.limit
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
    if (isShort && room === 0) return tooManyRequests(NO_ROOM, seconds)
    const hint = isShort ? ' (less is allowed, since etcd is filling up)' : ''
    return tooManyRequests(
      `${WRITERS[type].replace('WHAT', `too many ${unit}`)}${hint}, please try again later.`,
      seconds,
    )
  }
}

/** Told in place of the limit: the writer is not the cause. */
const NO_ROOM =
  'etcd is nearly full, so no event is written for now; the operator has to make room, please try again later.'

const WRITERS: Readonly<Record<EventLimitType, string>> = {
  Server: 'WHAT are written to this server',
  Namespace: 'WHAT are written in this namespace',
  User: 'this user writes WHAT',
  SourceAndObject: 'this controller writes WHAT about this object',
}

/** One limit, and the allowances that it gives to each who has been seen lately. */
class Allowances {
  readonly limit: EventLimit
  /** The one unused for longest comes first. */
  readonly #buckets = new Map<string, Bucket>()
  #newest: { readonly key: string; readonly bucket: Bucket } | undefined

  constructor(limit: EventLimit) {
    this.limit = limit
  }

  of(write: EventWrite, now: number, room: number): Bucket {
    const key = keyOf(this.limit, write)
    const bucket = this.#newest?.key === key ? this.#newest.bucket : this.#renewed(key, now)
    bucket.refill(now, this.limit.unit === 'bytes' ? room : 1)
    return bucket
  }

  /** Puts it last. */
  #renewed(key: string, now: number): Bucket {
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

/** What somebody has used of an allowance; it wears off with time. */
class Bucket {
  readonly #limit: EventLimit
  #used = 0
  #at: number
  #room = 1

  constructor(limit: EventLimit, now: number) {
    this.#limit = limit
    this.#at = now
  }

  refill(now: number, room: number): void {
    this.#used = Math.max(0, this.#used - ((now - this.#at) / 1000) * this.#limit.rate * room)
    this.#at = now
    this.#room = room
  }

  /** Until a write of so many bytes can be taken; 0 when it can. What is more than an allowance needs a whole one. */
  waitMs(bytes: number): number {
    const cost = this.#costOf(bytes)
    if (this.#room === 0) return RETRY_SECONDS_MAX * 1000
    const burst = this.#limit.burst * this.#room
    const missing = this.#used + Math.min(cost, burst) - burst
    return missing <= 0 ? 0 : (missing / (this.#limit.rate * this.#room)) * 1000
  }

  take(bytes: number): void {
    this.#used += this.#costOf(bytes)
  }

  #costOf(bytes: number): number {
    return this.#limit.unit === 'bytes' ? bytes : 1
  }
}

/** New events name their source in one field and old ones in another, never in both. */
export function sourceOf({ reportingController, deprecatedSource }: Event): string {
  return reportingController ?? deprecatedSource?.component ?? ''
}

function keyOf({ type, unit }: EventLimit, { user, sender, event }: EventWrite): string {
  switch (type) {
    case 'Server':
      return ''
    case 'Namespace':
      return bounded(event.metadata.namespace ?? '')
    case 'User':
      return bounded((unit === 'bytes' ? (sender ?? user) : user).name)
    case 'SourceAndObject':
      return bounded(sourceAndObject(event))
  }
}

function sourceAndObject(event: Event): string {
  const { deprecatedSource, regarding = {} } = event
  const { kind = '', namespace = '', name = '', uid = '', apiVersion = '' } = regarding
  const host = deprecatedSource?.host ?? ''
  return JSON.stringify([sourceOf(event), host, kind, namespace, name, uid, apiVersion])
}

function bounded(key: string): string {
  return key.length <= KEY_LENGTH_MAX ? key : hash('sha256', key, 'base64')
}
