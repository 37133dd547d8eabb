import { randomFillSync } from 'node:crypto'

/** Kubernetes' alphabet: no vowels and no 0, 1 or 3, so that suffixes do not spell words. */
const ALPHABET = 'bcdfghjklmnpqrstvwxz2456789'
const SUFFIX_LENGTH = 5
/** Kubernetes limits generated names to 63 characters. */
const BASE_LENGTH_MAX = 63 - SUFFIX_LENGTH
/** Bytes from here on are rejected, to avoid modulo bias. */
const REJECTED_FROM = 256 - (256 % ALPHABET.length)
const POOL_BYTES = 4096

/** Appends the suffix to a `generateName`, which is truncated if necessary. */
export function generatedName(base: string, suffix: string): string {
  return base.slice(0, BASE_LENGTH_MAX) + suffix
}

/**
 * Generates uniformly distributed and unpredictable suffixes of names. Random bytes are drawn in
 * bulk, since the call costs more than the bytes.
 */
export class RandomSuffixes {
  readonly #pool = new Uint8Array(POOL_BYTES)
  readonly #fill: (pool: Uint8Array) => void
  #at = POOL_BYTES

  constructor(fill: (pool: Uint8Array) => void = randomFillSync) {
    this.#fill = fill
  }

  next(): string {
    let suffix = ''
    while (suffix.length < SUFFIX_LENGTH) {
      const byte = this.#nextByte()
      if (byte < REJECTED_FROM) suffix += ALPHABET.charAt(byte % ALPHABET.length)
    }
    return suffix
  }

  #nextByte(): number {
    if (this.#at >= POOL_BYTES) {
      this.#fill(this.#pool)
      this.#at = 0
    }
    return this.#pool[this.#at++] ?? 0
  }
}
