/** What signed tokens of all kinds have in common: who says so, since when, until when. */
import { decodeJwt, errors, type JWTPayload } from 'jose'
import type { Clock } from '../../lib/clock.ts'
import type { Json } from '../../lib/json.ts'
import type { Log } from '../../lib/log.ts'
import { notIdentified } from '../refusal.ts'
import type { User } from '../user.ts'
import { TokenCache, tokenDigest } from './token-cache.ts'

/** Clocks differ. */
export const CLOCK_TOLERANCE_SECONDS = 10

/** A token that was found good is not looked at again for so long, nor beyond its own end. */
const REMEMBERED_MS = 10_000
const REMEMBERED_MAX = 10_000
/** `-v` from which it is told why a token is refused. */
const REFUSAL_LOG_LEVEL = 4

/** Who a token says it is of, by itself: only good for finding out who can verify it. */
export function claimedIssuer(token: string): string | undefined {
  // Most tokens that are none are told apart without the cost of an error.
  if (!/^[\w-]+\.[\w-]+\.[\w-]*$/.test(token)) return undefined
  try {
    const issuer: unknown = decodeJwt(token).iss
    return typeof issuer === 'string' ? issuer : undefined
  } catch {
    // Not a signed token at all; there are others.
    return undefined
  }
}

/** A claim of that name, of the token itself: names come from strangers and from operators. */
export function claimOf(claims: object, name: string): Json | undefined {
  return Object.hasOwn(claims, name) ? (claims as Record<string, Json>)[name] : undefined
}

/** Why a token is not taken, for the log. Says nothing that is in it. */
export class TokenRefused extends Error {
  override readonly name = 'TokenRefused'
}

/** The users of tokens that have been verified, and how to verify others. */
export class VerifiedTokens {
  readonly #cache: TokenCache<User>
  readonly #log: Log

  constructor(clock: Clock, log: Log) {
    this.#cache = new TokenCache({ entriesMax: REMEMBERED_MAX, clock })
    this.#log = log
  }

  /** The user of a token that was found good not long ago. */
  known(token: string): User | undefined {
    return this.#cache.get(tokenDigest(token))
  }

  /** Rejects with 401 whatever `verify` and `userOf` do not take. */
  async userOf(
    token: string,
    verify: () => Promise<JWTPayload>,
    userOf: (claims: JWTPayload) => User,
  ): Promise<User> {
    try {
      const claims = await verify()
      const user = userOf(claims)
      const leftMs = (claims.exp ?? 0) * 1000 - Date.now()
      this.#cache.set(tokenDigest(token), user, Math.min(leftMs, REMEMBERED_MS))
      return user
    } catch (error) {
      // Whatever goes wrong with a token is wrong with the token: the library throws TypeErrors too.
      this.#log.v(REFUSAL_LOG_LEVEL, 'Token refused', { reason: reasonOf(error) })
      const isOver = error instanceof errors.JWTExpired
      throw notIdentified(isOver ? 'expired-token' : 'bad-token')
    }
  }

  /** When keys change: what they verified is to be verified again. */
  forget(): void {
    this.#cache.clear()
  }
}

/** Messages of the library may quote a token; its codes do not. */
function reasonOf(error: unknown): string {
  if (error instanceof TokenRefused) return error.message
  if (error instanceof errors.JWTClaimValidationFailed || error instanceof errors.JWTExpired) {
    return `${error.code}: ${error.claim}`
  }
  if (error instanceof errors.JOSEError) return error.code
  return error instanceof Error ? error.name : 'unknown'
}
