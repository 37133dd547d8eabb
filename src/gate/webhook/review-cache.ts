import type { Clock } from '../../lib/clock.ts'
import { digestOf, ExpiringCache } from '../expiring-cache.ts'

export interface ReviewCacheOptions<T> {
  /** How long a result is cached; 0 if it is not. */
  readonly ttlMs: (result: T) => number
  /** Refusals are cached separately: any client can cause many, and they must not evict others. */
  readonly isRefusal: (result: T) => boolean
  /** Size of each of the two caches. */
  readonly entriesMax: number
  readonly clock: Clock
}

/**
 * Caches the results of a webhook. Concurrent calls with the same review share one request.
 * A failure is passed to all of them, and not cached.
 */
export class ReviewCache<T extends object> {
  readonly #options: ReviewCacheOptions<T>
  readonly #permissions: ExpiringCache<T>
  readonly #refusals: ExpiringCache<T>
  readonly #inFlight = new Map<string, Promise<T>>()

  constructor(options: ReviewCacheOptions<T>) {
    this.#options = options
    this.#permissions = new ExpiringCache(options)
    this.#refusals = new ExpiringCache(options)
  }

  /** `review` identifies the request and may contain a secret, so only its digest is stored. */
  resultOf(review: string, send: () => Promise<T>): T | Promise<T> {
    const key = digestOf(review)
    const known = this.#permissions.get(key) ?? this.#refusals.get(key) ?? this.#inFlight.get(key)
    if (known !== undefined) return known
    const sent = this.#send(key, send).finally(() => this.#inFlight.delete(key))
    this.#inFlight.set(key, sent)
    return sent
  }

  async #send(key: string, send: () => Promise<T>): Promise<T> {
    const result = await send()
    const { ttlMs, isRefusal } = this.#options
    const cache = isRefusal(result) ? this.#refusals : this.#permissions
    cache.set(key, result, ttlMs(result))
    return result
  }
}
