import { errors, type JWTPayload, jwtVerify } from 'jose'
import { readBounded } from '../../lib/bounded-file.ts'
import type { Clock } from '../../lib/clock.ts'
import { follow, type OnLook } from '../../lib/follow.ts'
import type { Json } from '../../lib/json.ts'
import type { Log } from '../../lib/log.ts'
import type { User } from '../user.ts'
import type { TokenUsers } from './bearer-token.ts'
import { CREDENTIAL_ID } from './client-certificate.ts'
import { httpsRead } from './https-read.ts'
import { IssuerKeys, type KeysOfIssuer } from './issuer-keys.ts'
import {
  CLOCK_TOLERANCE_SECONDS,
  claimedIssuer,
  claimOf,
  TokenRefused,
  VerifiedTokens,
} from './signed-token.ts'

const CA_BYTES_MAX = 1024 * 1024
/** For each of the two documents that are read from an issuer. */
const READ_TIMEOUT_MS = 5_000
const READ_BYTES_MAX = 1024 * 1024
/** Names that Kubernetes keeps for itself; nobody else's accounts may take one. */
const RESERVED = 'system:'

/** How claims become a user. */
export interface ClaimRules {
  readonly usernameClaim: string
  readonly usernamePrefix: string
  readonly groupsClaim: string | undefined
  readonly groupsPrefix: string
  /** Claims that must be there with just this value. */
  readonly required: ReadonlyMap<string, string>
}

export interface OidcTokenOptions extends ClaimRules {
  readonly issuerUrl: string
  readonly clientId: string
  readonly signingAlgorithms: readonly string[]
  readonly caFile: string | undefined
  readonly clock: Clock
  readonly log: Log
  readonly onLook?: OnLook | undefined
}

/** ID tokens of an OIDC issuer. */
export class OidcTokens implements TokenUsers {
  readonly #options: OidcTokenOptions
  readonly #verified: VerifiedTokens
  readonly #keys: IssuerKeys
  readonly #follower: { stop(): void }
  #ca: string | undefined

  /** Rejects when its own files cannot be used; the issuer need not be there yet. */
  static async open(options: OidcTokenOptions): Promise<OidcTokens> {
    const { caFile } = options
    return new OidcTokens(options, caFile === undefined ? undefined : await readCa(caFile))
  }

  private constructor(options: OidcTokenOptions, ca: string | undefined) {
    const { issuerUrl, caFile, clock, log } = options
    this.#options = options
    this.#ca = ca
    this.#verified = new VerifiedTokens(clock, log)
    this.#keys = new IssuerKeys({
      issuerUrl,
      read: (url) =>
        httpsRead(url, { ca: this.#ca, timeoutMs: READ_TIMEOUT_MS, bytesMax: READ_BYTES_MAX }),
      onChange: () => this.#verified.forget(),
      clock,
      log,
    })
    // So that the first token need not wait. Whatever is wrong, the log tells.
    this.#keys.current().catch(() => {})
    this.#follower = follow({
      inUse: ca,
      load: async () => (caFile === undefined ? undefined : readCa(caFile)),
      onChange: (found) => {
        this.#ca = found
        log.info('Authorities of the OIDC issuer reloaded', { file: caFile })
      },
      onProblem: (err) => log.warn('Authorities of the OIDC issuer not reloaded', { err }),
      onMended: () => log.info('Authorities of the OIDC issuer in use again, as they were'),
      onLook: options.onLook,
    })
  }

  /** The authorities that may vouch for the issuer, PEM. */
  get ca(): string | undefined {
    return this.#ca
  }

  async userOf(token: string): Promise<User | undefined> {
    const known = this.#verified.known(token)
    if (known !== undefined) return known
    if (claimedIssuer(token) !== this.#options.issuerUrl) return undefined
    return this.#verified.userOf(
      token,
      () => this.#verify(token),
      (claims) => userIn(claims, this.#options),
    )
  }

  stop(): void {
    this.#follower.stop()
  }

  /** A key that is not there may have been made since we asked. */
  async #verify(token: string): Promise<JWTPayload> {
    const keys = await this.#keys.current()
    try {
      return await this.#verifyWith(keys, token)
    } catch (error) {
      const isUnknownKey =
        error instanceof errors.JWKSNoMatchingKey ||
        error instanceof errors.JWSSignatureVerificationFailed
      const later = isUnknownKey ? await this.#keys.laterThan(keys) : undefined
      if (later === undefined) throw error
      return this.#verifyWith(later, token)
    }
  }

  async #verifyWith({ find }: KeysOfIssuer, token: string): Promise<JWTPayload> {
    const { issuerUrl, clientId, signingAlgorithms } = this.#options
    const { payload } = await jwtVerify(token, find, {
      algorithms: [...signingAlgorithms],
      issuer: issuerUrl,
      audience: clientId,
      requiredClaims: ['exp'],
      clockTolerance: CLOCK_TOLERANCE_SECONDS,
    })
    return payload
  }
}

/** The user of a token whose signature, times, issuer and audience are right. */
export function userIn(claims: JWTPayload, rules: ClaimRules): User {
  for (const [name, value] of rules.required) {
    if (claimOf(claims, name) !== value) throw new TokenRefused('a required claim is not there')
  }
  const name = claimOf(claims, rules.usernameClaim)
  if (typeof name !== 'string' || name === '') throw new TokenRefused('it names no user')
  const isUnverified =
    Object.hasOwn(claims, 'email_verified') && claimOf(claims, 'email_verified') !== true
  if (rules.usernameClaim === 'email' && isUnverified) {
    throw new TokenRefused('its address is not verified')
  }
  return {
    name: outsider(name, rules.usernamePrefix),
    groups: groupsIn(claims, rules),
    ...(typeof claims.jti === 'string' && claims.jti !== ''
      ? { extra: { [CREDENTIAL_ID]: [`JTI=${claims.jti}`] } }
      : {}),
  }
}

function groupsIn(claims: JWTPayload, { groupsClaim, groupsPrefix }: ClaimRules): string[] {
  const claimed = groupsClaim === undefined ? undefined : claimOf(claims, groupsClaim)
  if (claimed === undefined || claimed === null || claimed === '') return []
  const groups: readonly Json[] = Array.isArray(claimed) ? claimed : [claimed]
  return groups.map((group) => {
    if (typeof group !== 'string') throw new TokenRefused('its groups are not text')
    return outsider(group, groupsPrefix)
  })
}

/**
 * Whoever may name a group at an issuer could otherwise name it `system:masters`. What counts is the
 * whole: a prefix may be the beginning of such a name.
 */
function outsider(name: string, prefix: string): string {
  const whole = prefix + name
  if (whole.startsWith(RESERVED)) throw new TokenRefused('it takes a name that is reserved')
  return whole
}

async function readCa(path: string): Promise<string> {
  const pem = String(await readBounded(path, CA_BYTES_MAX))
  if (!pem.includes('-----BEGIN CERTIFICATE-----')) {
    throw new Error(`${path} holds no PEM certificate`)
  }
  return pem
}
