import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose'
import type { Clock } from '../../lib/clock.ts'
import { isObject, type Json, memberOf } from '../../lib/json.ts'
import type { Log } from '../../lib/log/log.ts'
import { TokenRefused } from './signed-token.ts'

/** Minimum time between two requests to the issuer, since any client can send made-up tokens. */
const COOLDOWN_MS = 5_000
/** Keys are fetched again after this time, so that a revoked key does not stay valid. */
const FRESH_MS = 10 * 60_000
/** If fetching fails, the last keys are trusted for this long. */
const TRUSTED_MS = 60 * 60_000
const KEYS_MAX = 100

export interface IssuerKeysOptions {
  readonly issuerUrl: string
  /** Reads the document at an https URL, with limits on time and size. */
  readonly read: (url: URL) => Promise<Buffer>
  readonly onChange: () => void
  readonly clock: Clock
  readonly log: Log
}

export interface KeysOfIssuer {
  readonly find: JWTVerifyGetKey
  readonly atMs: number
}

/**
 * Fetches and caches the public keys of an OIDC issuer. Concurrent callers share one request, and
 * each request is followed by a cooldown, whether it succeeded or not.
 */
export class IssuerKeys {
  readonly #options: IssuerKeysOptions
  #keys: KeysOfIssuer | undefined
  #text = ''
  #pending: Promise<void> | undefined
  #fetchedAtMs = Number.NEGATIVE_INFINITY
  #isFailing = false

  constructor(options: IssuerKeysOptions) {
    this.#options = options
  }

  /** Rejects with TokenRefused when there are no keys that can be trusted. */
  async current(): Promise<KeysOfIssuer> {
    const ageMs = this.#ageMs()
    if (ageMs >= TRUSTED_MS) await this.#refresh()
    else if (ageMs >= FRESH_MS) void this.#refresh()
    if (this.#keys === undefined || this.#ageMs() >= TRUSTED_MS) {
      throw new TokenRefused('the keys of its issuer are not available')
    }
    return this.#keys
  }

  /** Returns newer keys for a token that `keys` did not verify, or undefined if there are none. */
  async laterThan(keys: KeysOfIssuer): Promise<KeysOfIssuer | undefined> {
    if (this.#keys === keys) await this.#refresh()
    return this.#keys?.find === keys.find ? undefined : this.#keys
  }

  /** Never rejects: the old keys stay until new ones are fetched. */
  async #refresh(): Promise<void> {
    const { clock } = this.#options
    if (this.#pending === undefined) {
      if (clock.now() - this.#fetchedAtMs < COOLDOWN_MS) return
      this.#fetchedAtMs = clock.now()
      this.#pending = this.#load().finally(() => {
        this.#pending = undefined
      })
    }
    await this.#pending
  }

  async #load(): Promise<void> {
    const { log, issuerUrl, onChange, clock } = this.#options
    try {
      const { text, find } = await this.#fetched()
      if (text === this.#text && this.#keys !== undefined) {
        this.#keys = { find: this.#keys.find, atMs: clock.now() }
      } else {
        this.#text = text
        this.#keys = { find, atMs: clock.now() }
        onChange()
        log.info('Keys of the OIDC issuer loaded', { issuer: issuerUrl })
      }
      this.#isFailing = false
    } catch (err) {
      if (!this.#isFailing) {
        log.warn('Keys of the OIDC issuer not loaded', { issuer: issuerUrl, err })
      }
      this.#isFailing = true
    }
  }

  async #fetched(): Promise<{ readonly text: string; readonly find: JWTVerifyGetKey }> {
    const { read, issuerUrl } = this.#options
    const base = issuerUrl.replace(/\/$/, '')
    const document = objectIn(await read(new URL(`${base}/.well-known/openid-configuration`)))
    if (memberOf(document, 'issuer') !== issuerUrl) {
      throw new Error('the discovery document names another issuer')
    }
    const keysUrl = URL.parse(String(memberOf(document, 'jwks_uri')))
    if (keysUrl?.protocol !== 'https:') throw new Error('jwks_uri is not an https URL')
    const bytes = await read(keysUrl)
    const found = objectIn(bytes)
    const keys = memberOf(found, 'keys')
    if (!Array.isArray(keys) || keys.length > KEYS_MAX) {
      throw new Error(`keys is not a list of at most ${KEYS_MAX}`)
    }
    try {
      const find = createLocalJWKSet({ keys } as unknown as JSONWebKeySet)
      return { text: bytes.toString('utf8'), find }
    } catch (cause) {
      if (!(cause instanceof errors.JOSEError)) throw cause
      throw new Error('the keys cannot be parsed', { cause })
    }
  }

  #ageMs(): number {
    return this.#options.clock.now() - (this.#keys?.atMs ?? Number.NEGATIVE_INFINITY)
  }
}

function objectIn(bytes: Buffer): { [name: string]: Json } {
  let value: Json
  try {
    value = JSON.parse(bytes.toString('utf8')) as Json
  } catch {
    throw new Error('the response is not JSON')
  }
  if (!isObject(value)) throw new Error('the response is not a JSON object')
  return value
}
