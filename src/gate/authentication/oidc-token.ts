import { errors, type JWTPayload, jwtVerify } from 'jose'
import type { Clock } from '../../lib/clock.ts'
import { readBounded } from '../../lib/files/bounded-file.ts'
import { follow, type OnPoll } from '../../lib/files/follow.ts'
import type { Json } from '../../lib/json.ts'
import type { Log } from '../../lib/log/log.ts'
import type { User } from '../user.ts'
import type { TokenAuthenticator } from './bearer-token.ts'
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
/** Timeout for each of the two documents of an issuer. */
const READ_TIMEOUT_MS = 5_000
const READ_BYTES_MAX = 1024 * 1024
/** Prefix of the names that Kubernetes reserves. Users of an issuer must not have one. */
const RESERVED = 'system:'

/** Describes how claims become a user. */
export interface ClaimRules {
  readonly usernameClaim: string
  readonly usernamePrefix: string
  readonly groupsClaim: string | undefined
  readonly groupsPrefix: string
  /** Claims that must have exactly these values. */
  readonly required: ReadonlyMap<string, string>
}

export interface OidcTokenOptions extends ClaimRules {
  readonly issuerUrl: string
  readonly clientId: string
  readonly signingAlgorithms: readonly string[]
  readonly caFile: string | undefined
  readonly clock: Clock
  readonly log: Log
  readonly onPoll?: OnPoll | undefined
}

/** Authenticates ID tokens of an OIDC issuer. */
export class OidcTokens implements TokenAuthenticator {
  readonly #options: OidcTokenOptions
  readonly #verified: VerifiedTokens
  readonly #keys: IssuerKeys
  readonly #follower: { stop(): void }
  #ca: string | undefined

  /** Rejects when a file is unusable. The issuer need not be available yet. */
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
    // Fetch early, so that the first token need not wait. Failures are logged.
    this.#keys.current().catch(() => {})
    this.#follower = follow({
      inUse: ca,
      load: async () => (caFile === undefined ? undefined : readCa(caFile)),
      onChange: (found) => {
        this.#ca = found
        log.info('Authorities of the OIDC issuer reloaded', { file: caFile })
      },
      onProblem: (err) => log.warn('Authorities of the OIDC issuer not reloaded', { err }),
      onRecovered: () => log.info('Authorities of the OIDC issuer valid again, unchanged'),
      onPoll: options.onPoll,
    })
  }

  /** The authorities of the issuer's server certificate, in PEM. */
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

  /** Fetches the keys again for an unknown key, which may be newer than our last request. */
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

/** The user of a token whose signature, times, issuer and audience are valid. */
export function userIn(claims: JWTPayload, rules: ClaimRules): User {
  for (const [name, value] of rules.required) {
    if (claimOf(claims, name) !== value)
      throw new TokenRefused('a required claim is missing or has another value')
  }
  const name = claimOf(claims, rules.usernameClaim)
  if (typeof name !== 'string' || name === '') throw new TokenRefused('it has no user name')
  const isUnverified =
    Object.hasOwn(claims, 'email_verified') && claimOf(claims, 'email_verified') !== true
  if (rules.usernameClaim === 'email' && isUnverified) {
    throw new TokenRefused('its email address is not verified')
  }
  return {
    name: prefixed(name, rules.usernamePrefix),
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
    if (typeof group !== 'string') throw new TokenRefused('its groups are not strings')
    return prefixed(group, groupsPrefix)
  })
}

/**
 * Refuses reserved names: someone who may create a group at the issuer could otherwise name it
 * `system:masters`. The name is checked with its prefix, which may be the start of such a name.
 */
function prefixed(name: string, prefix: string): string {
  const full = prefix + name
  if (full.startsWith(RESERVED)) throw new TokenRefused('it has a reserved name')
  return full
}

async function readCa(path: string): Promise<string> {
  const pem = String(await readBounded(path, CA_BYTES_MAX))
  if (!pem.includes('-----BEGIN CERTIFICATE-----')) {
    throw new Error(`${path} contains no PEM certificate`)
  }
  return pem
}
