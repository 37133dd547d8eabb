import { createPublicKey, hash, type KeyObject } from 'node:crypto'
import { decodeProtectedHeader, errors, type JWTPayload, jwtVerify } from 'jose'
import type { Clock } from '../../lib/clock.ts'
import { readBounded } from '../../lib/files/bounded-file.ts'
import { follow, type OnPoll } from '../../lib/files/follow.ts'
import { isObject, type Json, type JsonObject, textOf } from '../../lib/json.ts'
import type { Log } from '../../lib/log/log.ts'
import { serviceAccountGroups, serviceAccountUser, type User } from '../user.ts'
import type { TokenAuthenticator } from './bearer-token.ts'
import { CREDENTIAL_ID } from './client-certificate.ts'
import {
  CLOCK_TOLERANCE_SECONDS,
  claimedIssuer,
  claimOf,
  TokenRefused,
  VerifiedTokens,
} from './signed-token.ts'

const FILE_BYTES_MAX = 1024 * 1024
const KEYS_MAX = 100
/** The signature algorithm of each kind of EC key. */
const EC_ALGORITHMS: ReadonlyMap<string, string> = new Map([
  ['prime256v1', 'ES256'],
  ['secp384r1', 'ES384'],
  ['secp521r1', 'ES512'],
])
const EXTRA = 'authentication.kubernetes.io/'

export interface ServiceAccountTokenOptions {
  /** PEM files with public keys, or with certificates or private keys that contain them. */
  readonly keyFiles: readonly string[]
  readonly issuers: readonly string[]
  /** A token must have one of these. */
  readonly audiences: readonly string[]
  readonly clock: Clock
  readonly log: Log
  readonly onPoll?: OnPoll | undefined
}

/**
 * Authenticates tokens that a Kubernetes cluster signs for its service accounts. Whether the
 * account and the pod still exist cannot be checked here: a token is valid until it expires, and
 * one that never expires is refused.
 */
export class ServiceAccountTokens implements TokenAuthenticator {
  readonly #options: ServiceAccountTokenOptions
  readonly #verified: VerifiedTokens
  readonly #follower: { stop(): void }
  #keys: KeySet

  /** Rejects if a file is unusable, with an error that names it. */
  static async open(options: ServiceAccountTokenOptions): Promise<ServiceAccountTokens> {
    return new ServiceAccountTokens(options, await loadKeys(options.keyFiles))
  }

  private constructor(options: ServiceAccountTokenOptions, keys: KeySet) {
    const { log, keyFiles } = options
    this.#options = options
    this.#keys = keys
    this.#verified = new VerifiedTokens(options.clock, log)
    this.#follower = follow({
      inUse: keys,
      load: (current) => loadKeys(keyFiles, current),
      onChange: (found) => {
        this.#keys = found
        this.#verified.forget()
        log.info('Service account keys reloaded', { files: keyFiles, count: found.keys.length })
      },
      onProblem: (err) => log.warn('Service account keys not reloaded', { err }),
      onRecovered: () => log.info('Service account keys valid again, unchanged'),
      onPoll: options.onPoll,
    })
  }

  async userOf(token: string): Promise<User | undefined> {
    const known = this.#verified.known(token)
    if (known !== undefined) return known
    const issuer = claimedIssuer(token)
    if (issuer === undefined || !this.#options.issuers.includes(issuer)) return undefined
    return this.#verified.userOf(token, () => this.#verify(token), serviceAccountIn)
  }

  stop(): void {
    this.#follower.stop()
  }

  async #verify(token: string): Promise<JWTPayload> {
    const { issuers, audiences } = this.#options
    for (const { key, algorithms } of this.#keys.for(token)) {
      try {
        const { payload } = await jwtVerify(token, key, {
          algorithms: [...algorithms],
          issuer: [...issuers],
          audience: [...audiences],
          requiredClaims: ['exp', 'iat'],
          clockTolerance: CLOCK_TOLERANCE_SECONDS,
        })
        return payload
      } catch (error) {
        // Another key may have signed it. Every other error is final.
        if (!(error instanceof errors.JWSSignatureVerificationFailed)) throw error
      }
    }
    throw new TokenRefused('none of the keys has signed it')
  }
}

interface PublicKey {
  readonly id: string
  readonly key: KeyObject
  readonly algorithms: readonly string[]
}

class KeySet {
  readonly content: string
  readonly keys: readonly PublicKey[]

  constructor(content: string, keys: readonly PublicKey[]) {
    this.content = content
    this.keys = keys
  }

  /** The key that the token names; otherwise all keys with its algorithm. */
  for(token: string): readonly PublicKey[] {
    const { alg = '', kid } = decodeProtectedHeader(token)
    const fitting = this.keys.filter(({ algorithms }) => algorithms.includes(alg))
    const named = fitting.filter(({ id }) => id === kid)
    return named.length > 0 ? named : fitting
  }
}

async function loadKeys(paths: readonly string[], current?: KeySet): Promise<KeySet> {
  const contents = await Promise.all(paths.map((path) => readBounded(path, FILE_BYTES_MAX)))
  const content = contents.join('\0')
  if (content === current?.content) return current
  const keys = contents.flatMap((pem, index) => keysIn(paths[index] ?? '', String(pem)))
  if (keys.length > KEYS_MAX) throw new Error(`more than ${KEYS_MAX} keys: remove old ones`)
  return new KeySet(content, keys)
}

function keysIn(path: string, pem: string): readonly PublicKey[] {
  const blocks = pem.match(/-----BEGIN ([A-Z ]+)-----[^-]+-----END \1-----/g) ?? []
  const keys = blocks
    .filter((block) => !block.startsWith('-----BEGIN EC PARAMETERS'))
    .map((block) => publicKey(path, block))
  if (keys.length === 0) throw new Error(`${path} contains no PEM key`)
  return keys
}

function publicKey(path: string, block: string): PublicKey {
  let key: KeyObject
  try {
    key = createPublicKey(block)
  } catch {
    // Omit the cause: it might quote the key, which might be a private one.
    throw new Error(`${path} contains a key that cannot be parsed`)
  }
  const algorithms = algorithmsOf(key)
  if (algorithms.length === 0) {
    throw new Error(
      `${path} contains a key that cannot sign tokens: use RSA, P-256, P-384 or P-521`,
    )
  }
  const der = key.export({ format: 'der', type: 'spki' })
  return { id: Buffer.from(hash('sha256', der, 'buffer')).toString('base64url'), key, algorithms }
}

function algorithmsOf(key: KeyObject): readonly string[] {
  if (key.asymmetricKeyType === 'rsa') return ['RS256', 'RS384', 'RS512']
  const algorithm = EC_ALGORITHMS.get(key.asymmetricKeyDetails?.namedCurve ?? '')
  return algorithm === undefined ? [] : [algorithm]
}

function serviceAccountIn(claims: JWTPayload): User {
  const all = objectOf(claimOf(claims, 'kubernetes.io'))
  const account = objectOf(claimOf(all, 'serviceaccount'))
  const namespace = textOf(all, 'namespace')
  const name = textOf(account, 'name')
  const user = serviceAccountUser(namespace, name)
  const isWhole = namespace !== '' && name !== '' && !`${namespace}${name}`.includes(':')
  if (!isWhole || (claims.sub !== undefined && claims.sub !== user)) {
    throw new TokenRefused('it has no valid service account')
  }
  return {
    name: user,
    uid: textOf(account, 'uid'),
    groups: serviceAccountGroups(namespace),
    extra: Object.fromEntries(extraIn(claims, all)),
  }
}

/** The objects that the token is bound to, under the keys that Kubernetes uses. */
function extraIn(claims: JWTPayload, all: JsonObject): readonly [string, readonly string[]][] {
  const found: [string, readonly string[]][] = []
  if (typeof claims.jti === 'string' && claims.jti !== '') {
    found.push([CREDENTIAL_ID, [`JTI=${claims.jti}`]])
  }
  for (const kind of ['node', 'pod']) {
    const bound = objectOf(claimOf(all, kind))
    for (const part of ['name', 'uid']) {
      const value = textOf(bound, part)
      if (value !== '') found.push([`${EXTRA}${kind}-${part}`, [value]])
    }
  }
  return found
}

function objectOf(value: Json | undefined): JsonObject {
  return isObject(value) ? value : {}
}
