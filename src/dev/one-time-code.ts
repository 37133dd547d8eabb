import { hash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../lib/clock.ts'

const CODE_BYTES = 16
const VALID_MS = 10 * 60 * 1000

/**
 * A code in the link of `tidings dev`, exchanged for a token once. The link may stay in the history
 * of a terminal or a browser, so the token itself must not be in it.
 */
export class OneTimeCode {
  /** Only letters and digits, so that terminals recognise the end of the link. */
  readonly code: string = randomBytes(CODE_BYTES).toString('hex')
  readonly #clock: Clock
  readonly #expiresAt: number
  /** Undefined once it has been exchanged. */
  #token: string | undefined

  constructor(token: string, clock: Clock) {
    this.#token = token
    this.#clock = clock
    this.#expiresAt = clock.now() + VALID_MS
  }

  /** The token; undefined if the code is wrong, has been exchanged before, or has expired. */
  redeem(code: string): string | undefined {
    // Digests have equal lengths and are compared in constant time.
    const isSame = timingSafeEqual(digestOf(code), digestOf(this.code))
    if (!isSame || this.#clock.now() >= this.#expiresAt) return undefined
    const token = this.#token
    this.#token = undefined
    return token
  }
}

function digestOf(text: string): Buffer {
  return hash('sha256', text, 'buffer')
}
