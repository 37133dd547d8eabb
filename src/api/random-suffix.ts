import { randomFillSync } from 'node:crypto'

/** Without vowels and digits that look like vowels, so that suffixes do not spell words. */
const ALPHABET = 'bcdfghjklmnpqrstvwxz2456789'
const SUFFIX_LENGTH = 5
/** With the suffix, a generated name has at most 63 characters. */
const BASE_LENGTH_MAX = 58
/** Bytes from here on are discarded: they would make some characters more likely than others. */
const FAIR_END = 256 - (256 % ALPHABET.length)
const POOL_BYTES = 4096

/** The name for a `generateName`: the base, truncated if necessary, and the suffix. */
export function generatedName(base: string, suffix: string): string {
  return base.slice(0, BASE_LENGTH_MAX) + suffix
}

/**
 * Generates the suffixes of generated names: uniformly distributed and unpredictable. Random bytes
 * are fetched for hundreds of suffixes at a time, since the call costs more than the bytes.
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
      if (byte < FAIR_END) suffix += ALPHABET.charAt(byte % ALPHABET.length)
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
