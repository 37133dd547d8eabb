import { hash } from 'node:crypto'
import type { Clock } from '../lib/clock.ts'

export interface ExpiringCacheOptions {
  /** When the cache is full, the oldest entry is evicted. */
  readonly entriesMax: number
  readonly clock: Clock
}

/** Caches values for a limited time. Keys are digests of secrets, never the secrets themselves. */
export class ExpiringCache<T extends object> {
  readonly #options: ExpiringCacheOptions
  readonly #entries = new Map<string, { readonly value: T; readonly endsAtMs: number }>()

  constructor(options: ExpiringCacheOptions) {
    this.#options = options
  }

  get(digest: string): T | undefined {
    const entry = this.#entries.get(digest)
    if (entry === undefined) return undefined
    if (this.#options.clock.now() < entry.endsAtMs) return entry.value
    this.#entries.delete(digest)
    return undefined
  }

  /** A time of zero or less caches nothing. */
  set(digest: string, value: T, forMs: number): void {
    if (forMs <= 0) return
    const now = this.#options.clock.now()
    this.#entries.delete(digest)
    this.#entries.set(digest, { value, endsAtMs: now + forMs })
    for (const [oldest, { endsAtMs }] of this.#entries) {
      if (this.#entries.size <= this.#options.entriesMax && now < endsAtMs) return
      this.#entries.delete(oldest)
    }
  }

  get size(): number {
    return this.#entries.size
  }

  clear(): void {
    this.#entries.clear()
  }
}

/**
 * Looking secrets up by digest prevents timing attacks. A client that measures the comparison may
 * learn how many bytes the digest of a guess shares with one of ours, but similar secrets have
 * unrelated digests. The time to compute the digest depends only on the length of the guess.
 */
export function digestOf(secret: string): string {
  return hash('sha256', secret, 'base64')
}
