import { hash } from 'node:crypto'
import type { Clock } from '../../lib/clock.ts'

export interface TokenCacheOptions {
  /** When full, the oldest entry is evicted. The oldest ones are also deleted once they end. */
  readonly entriesMax: number
  readonly clock: Clock
}

/** Caches a value per token for a time. Keys are digests of tokens, never the tokens themselves. */
export class TokenCache<T extends object> {
  readonly #options: TokenCacheOptions
  readonly #entries = new Map<string, { readonly value: T; readonly endsAtMs: number }>()

  constructor(options: TokenCacheOptions) {
    this.#options = options
  }

  get(digest: string): T | undefined {
    const entry = this.#entries.get(digest)
    if (entry === undefined) return undefined
    if (this.#options.clock.now() < entry.endsAtMs) return entry.value
    this.#entries.delete(digest)
    return undefined
  }

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

/** Equal digests mean equal tokens, and the time to compare them reveals nothing of the tokens. */
export function tokenDigest(token: string): string {
  return hash('sha256', token, 'base64')
}
