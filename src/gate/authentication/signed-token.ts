/** Parts of the authenticators of signed tokens (JWT). */
import { decodeJwt, errors, type JWTPayload } from 'jose'
import type { Clock } from '../../lib/clock.ts'
import type { Json } from '../../lib/json.ts'
import type { Log } from '../../lib/log/log.ts'
import { digestOf, ExpiringCache } from '../expiring-cache.ts'
import { notIdentified } from '../refusal.ts'
import type { User } from '../user.ts'

/** Clocks of issuers may differ from ours. */
export const CLOCK_TOLERANCE_SECONDS = 10

/** A verified token is not verified again for this long, or until it expires. */
const CACHE_MS = 10_000
const CACHE_ENTRIES_MAX = 10_000
/** The lowest `-v` at which the reason of a refused token is logged. */
const REFUSAL_LOG_LEVEL = 4

/** The issuer in an unverified token, used only to choose the authenticator that verifies it. */
export function claimedIssuer(token: string): string | undefined {
  // Rejects most tokens that are not JWTs without the cost of an error.
  if (!/^[\w-]+\.[\w-]+\.[\w-]*$/.test(token)) return undefined
  try {
    const issuer: unknown = decodeJwt(token).iss
    return typeof issuer === 'string' ? issuer : undefined
  } catch {
    // Not a JWT; another authenticator may know it.
    return undefined
  }
}

/** A claim of the token, never an inherited property: the name may be any string. */
export function claimOf(claims: object, name: string): Json | undefined {
  return Object.hasOwn(claims, name) ? (claims as Record<string, Json>)[name] : undefined
}

/** Its message is the reason for the log, and contains nothing of the token. */
export class TokenRefused extends Error {
  override readonly name = 'TokenRefused'
}

/** Verifies tokens, and caches the users of verified ones. */
export class VerifiedTokens {
  readonly #cache: ExpiringCache<User>
  readonly #log: Log

  constructor(clock: Clock, log: Log) {
    this.#cache = new ExpiringCache({ entriesMax: CACHE_ENTRIES_MAX, clock })
    this.#log = log
  }

  /** Looks the token up in the cache only. */
  known(token: string): User | undefined {
    return this.#cache.get(digestOf(token))
  }

  /** Rejects with 401 when `verify` or `userOf` throws. */
  async userOf(
    token: string,
    verify: () => Promise<JWTPayload>,
    userOf: (claims: JWTPayload) => User,
  ): Promise<User> {
    try {
      const claims = await verify()
      const user = userOf(claims)
      const leftMs = (claims.exp ?? 0) * 1000 - Date.now()
      this.#cache.set(digestOf(token), user, Math.min(leftMs, CACHE_MS))
      return user
    } catch (error) {
      // Every error counts as a defect of the token, since the library throws TypeErrors too.
      this.#log.v(REFUSAL_LOG_LEVEL, 'Token refused', { reason: reasonOf(error) })
      const isExpired = error instanceof errors.JWTExpired
      throw notIdentified(isExpired ? 'expired-token' : 'bad-token')
    }
  }

  /** Called when keys change: every token must be verified again. */
  forget(): void {
    this.#cache.clear()
  }
}

/** Messages of the library may quote a token; its error codes do not. */
function reasonOf(error: unknown): string {
  if (error instanceof TokenRefused) return error.message
  if (error instanceof errors.JWTClaimValidationFailed || error instanceof errors.JWTExpired) {
    return `${error.code}: ${error.claim}`
  }
  if (error instanceof errors.JOSEError) return error.code
  return error instanceof Error ? error.name : 'unknown'
}
