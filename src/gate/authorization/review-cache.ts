import { hash } from 'node:crypto'
import type { Clock } from '../../lib/clock.ts'

export interface ReviewCacheOptions<T> {
  /** How long a result is cached; 0 for not at all. */
  readonly ttlMs: (result: T) => number
  /** Refusals are cached separately, since any client can cause as many as it likes. */
  readonly isRefusal: (result: T) => boolean
  /** Size of each of the two caches; the oldest entry is evicted first, and once it ends. */
  readonly entriesMax: number
  readonly clock: Clock
}

/**
 * Caches results of a webhook for a time. Concurrent calls with the same key share one request.
 * Failures are not cached.
 */
export class ReviewCache<T> {
  readonly #options: ReviewCacheOptions<T>
  readonly #others: Entries<T> = new Map()
  readonly #refusals: Entries<T> = new Map()
  readonly #inFlight = new Map<string, Promise<T>>()

  constructor(options: ReviewCacheOptions<T>) {
    this.#options = options
  }

  /** `review` may be long and secret: only its digest is kept. */
  resultOf(review: string, send: () => Promise<T>): Promise<T> {
    const key = hash('sha256', review, 'base64')
    const entries = this.#others.has(key) ? this.#others : this.#refusals
    const known = entries.get(key)
    if (known !== undefined) {
      if (known.until > this.#options.clock.now()) return Promise.resolve(known.result)
      entries.delete(key)
    }
    const pending = this.#inFlight.get(key)
    if (pending !== undefined) return pending
    const sent = this.#send(key, send).finally(() => this.#inFlight.delete(key))
    this.#inFlight.set(key, sent)
    return sent
  }

  async #send(key: string, send: () => Promise<T>): Promise<T> {
    const result = await send()
    const { ttlMs, isRefusal, entriesMax, clock } = this.#options
    const ttl = ttlMs(result)
    if (ttl <= 0) return result
    const entries = isRefusal(result) ? this.#refusals : this.#others
    const now = clock.now()
    for (const [oldest, { until }] of entries) {
      if (entries.size < entriesMax && now < until) break
      entries.delete(oldest)
    }
    entries.set(key, { result, until: now + ttl })
    return result
  }
}

type Entries<T> = Map<string, { readonly result: T; readonly until: number }>
