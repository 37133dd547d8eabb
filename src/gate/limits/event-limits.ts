/**
 * How fast events may come, in the spirit of Kubernetes' EventRateLimit: for the whole server, for a
 * namespace, for a user, or for one source about one object.
 */
import { hash } from 'node:crypto'
import type { Event } from '../../api/event.ts'
import { tooManyRequests } from '../../api/status.ts'
import type { User } from '../user.ts'

export const EVENT_LIMIT_TYPES = ['Server', 'Namespace', 'User', 'SourceAndObject'] as const
/** Who shares one allowance. */
export type EventLimitType = (typeof EVENT_LIMIT_TYPES)[number]

export interface EventLimit {
  readonly type: EventLimitType
  /** Events a second, in the long run. */
  readonly qps: number
  /** Events at once, after a quiet time. */
  readonly burst: number
  /** Allowances that are remembered; of more, the one unused for longest starts anew. */
  readonly cacheSize: number
}

export interface EventLimitsOptions {
  readonly limits: readonly EventLimit[]
  /** Milliseconds that never go back. */
  readonly now?: () => number
  readonly onRefused?: (type: EventLimitType) => void
}

/** Longer keys than this are remembered by digest: how long one is, its sender decides. */
const KEY_LENGTH_MAX = 200

/** Lets events pass until somebody's allowance is used up. */
export class EventLimits {
  #allowances: readonly Allowances[]
  readonly #now: () => number
  readonly #onRefused: (type: EventLimitType) => void

  constructor(options: EventLimitsOptions) {
    this.#allowances = options.limits.map((limit) => new Allowances(limit))
    this.#now = options.now ?? (() => performance.now())
    this.#onRefused = options.onRefused ?? (() => {})
  }

  /** From now on these hold; everybody starts with a full allowance. */
  replace(limits: readonly EventLimit[]): void {
    this.#allowances = limits.map((limit) => new Allowances(limit))
  }

  /**
   * Takes one from every allowance that this event counts against. If one of them is used up,
   * nothing is taken, and it throws 429 with the time until there is one again.
   */
  take(user: User, event: Event): void {
    const now = this.#now()
    const buckets = this.#allowances.map((allowances) => allowances.of(user, event, now))
    let waitMs = 0
    let refusing: EventLimitType | undefined
    for (const [at, bucket] of buckets.entries()) {
      if (bucket.waitMs <= waitMs) continue
      waitMs = bucket.waitMs
      refusing = this.#allowances[at]?.limit.type
    }
    if (refusing !== undefined) {
      this.#onRefused(refusing)
      throw tooManyRequests(MESSAGES[refusing], Math.ceil(waitMs / 1000))
    }
    for (const bucket of buckets) bucket.take()
  }
}

const MESSAGES: Readonly<Record<EventLimitType, string>> = {
  Server: 'too many events are written to this server, please try again later.',
  Namespace: 'too many events are written in this namespace, please try again later.',
  User: 'this user writes too many events, please try again later.',
  SourceAndObject:
    'this controller writes too many events about this object, please try again later.',
}

/** One limit, and the allowances that it gives to each who has been seen lately. */
class Allowances {
  readonly limit: EventLimit
  /** The one unused for longest comes first. */
  readonly #buckets = new Map<string, Bucket>()

  constructor(limit: EventLimit) {
    this.limit = limit
  }

  of(user: User, event: Event, now: number): Bucket {
    const key = keyOf(this.limit.type, user, event)
    const bucket = this.#buckets.get(key) ?? new Bucket(this.limit, now)
    this.#buckets.delete(key)
    this.#buckets.set(key, bucket)
    if (this.#buckets.size > this.limit.cacheSize) {
      const [oldest = ''] = this.#buckets.keys()
      this.#buckets.delete(oldest)
    }
    bucket.refill(now)
    return bucket
  }
}

/** An allowance that grows with time. */
class Bucket {
  readonly #limit: EventLimit
  #tokens: number
  #at: number

  constructor(limit: EventLimit, now: number) {
    this.#limit = limit
    this.#tokens = limit.burst
    this.#at = now
  }

  refill(now: number): void {
    const { qps, burst } = this.#limit
    this.#tokens = Math.min(burst, this.#tokens + ((now - this.#at) / 1000) * qps)
    this.#at = now
  }

  /** Until there is one to take; 0 when there is. */
  get waitMs(): number {
    return this.#tokens >= 1 ? 0 : ((1 - this.#tokens) / this.#limit.qps) * 1000
  }

  take(): void {
    this.#tokens -= 1
  }
}

function keyOf(type: EventLimitType, user: User, event: Event): string {
  switch (type) {
    case 'Server':
      return ''
    case 'Namespace':
      return bounded(event.metadata.namespace ?? '')
    case 'User':
      return bounded(user.name)
    case 'SourceAndObject':
      return bounded(sourceAndObject(event))
  }
}

/** New events name their source in one field and old ones in another, never in both. */
function sourceAndObject({ reportingController, deprecatedSource, regarding = {} }: Event): string {
  const { kind = '', namespace = '', name = '', uid = '', apiVersion = '' } = regarding
  const source = reportingController ?? deprecatedSource?.component ?? ''
  const host = deprecatedSource?.host ?? ''
  return JSON.stringify([source, host, kind, namespace, name, uid, apiVersion])
}

function bounded(key: string): string {
  return key.length <= KEY_LENGTH_MAX ? key : hash('sha256', key, 'base64')
}
