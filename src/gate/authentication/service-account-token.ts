import { createPublicKey, hash, type KeyObject } from 'node:crypto'
import { decodeProtectedHeader, errors, type JWTPayload, jwtVerify } from 'jose'
import { readBounded } from '../../lib/bounded-file.ts'
import type { Clock } from '../../lib/clock.ts'
import { follow, type OnLook } from '../../lib/follow.ts'
import { isObject, type Json, type JsonObject } from '../../lib/json.ts'
import type { Log } from '../../lib/log.ts'
import { serviceAccountGroups, serviceAccountUser, type User } from '../user.ts'
import type { TokenUsers } from './bearer-token.ts'
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
/** What a key of each kind may sign with. */
const EC_ALGORITHMS: ReadonlyMap<string, string> = new Map([
  ['prime256v1', 'ES256'],
  ['secp384r1', 'ES384'],
  ['secp521r1', 'ES512'],
])
const EXTRA = 'authentication.kubernetes.io/'

export interface ServiceAccountTokenOptions {
  /** PEM: public keys, or certificates or private keys for the public keys in them. */
  readonly keyFiles: readonly string[]
  readonly issuers: readonly string[]
  /** A token must be meant for one of these. */
  readonly audiences: readonly string[]
  readonly clock: Clock
  readonly log: Log
  readonly onLook?: OnLook | undefined
}

/**
 * Tokens that a Kubernetes cluster signs for its service accounts. Whether account and pod are
 * still there cannot be asked from here: such a token is good until it ends, and one that never
 * ends is not taken.
 */
export class ServiceAccountTokens implements TokenUsers {
  readonly #options: ServiceAccountTokenOptions
  readonly #verified: VerifiedTokens
  readonly #follower: { stop(): void }
  #keys: KeySet

  /** Rejects, naming the file, if one cannot be used. */
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
      onMended: () => log.info('Service account keys in use again, as they were'),
      onLook: options.onLook,
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
        // Another key may have signed it. Everything else is wrong whoever did.
        if (!(error instanceof errors.JWSSignatureVerificationFailed)) throw error
      }
    }
    throw new TokenRefused('no key has signed it')
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

  /** The one that a token names, or else all that sign the way it is signed. */
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
  if (keys.length > KEYS_MAX) throw new Error(`more than ${KEYS_MAX} keys: leave out old ones`)
  return new KeySet(content, keys)
}

function keysIn(path: string, pem: string): readonly PublicKey[] {
  const blocks = pem.match(/-----BEGIN ([A-Z ]+)-----[^-]+-----END \1-----/g) ?? []
  const keys = blocks
    .filter((block) => !block.startsWith('-----BEGIN EC PARAMETERS'))
    .map((block) => publicKey(path, block))
  if (keys.length === 0) throw new Error(`${path} holds no PEM key`)
  return keys
}

function publicKey(path: string, block: string): PublicKey {
  let key: KeyObject
  try {
    key = createPublicKey(block)
  } catch {
    // What is wrong with it might quote it, and it might be a private key.
    throw new Error(`${path} holds a key that cannot be read`)
  }
  const algorithms = algorithmsOf(key)
  if (algorithms.length === 0) {
    throw new Error(`${path} holds a key of a kind that signs no tokens: use RSA or an EC P key`)
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
    throw new TokenRefused('it names no service account')
  }
  return {
    name: user,
    uid: textOf(account, 'uid'),
    groups: serviceAccountGroups(namespace),
    extra: Object.fromEntries(extraIn(claims, all)),
  }
}

/** What the token is bound to, in the words of Kubernetes. */
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

function textOf(object: JsonObject, name: string): string {
  const value = claimOf(object, name)
  return typeof value === 'string' ? value : ''
}
