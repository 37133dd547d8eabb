import { randomFillSync } from 'node:crypto'

/** No vowels, and nothing that looks like one: suffixes do not spell words. */
const ALPHABET = 'bcdfghjklmnpqrstvwxz2456789'
const SUFFIX_LENGTH = 5
/** With the suffix, a generated name still fits where 63 characters do. */
const BASE_LENGTH_MAX = 58
/** Bytes from here on would make some characters likelier than others. */
const FAIR_END = 256 - (256 % ALPHABET.length)
const POOL_BYTES = 4096

/** What `generateName` becomes: its beginning, as far as it fits, and the suffix. */
export function generatedName(base: string, suffix: string): string {
  return base.slice(0, BASE_LENGTH_MAX) + suffix
}

/**
 * Makes the suffixes of generated names: each equally likely, and nobody can foretell the next.
 * Randomness is fetched for hundreds of them at a time, as asking costs more than the bytes.
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
