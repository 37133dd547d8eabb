import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose'
import type { Clock } from '../../lib/clock.ts'
import { isObject, type Json, memberOf } from '../../lib/json.ts'
import type { Log } from '../../lib/log.ts'
import { TokenRefused } from './signed-token.ts'

/** Between two questions to the issuer, whatever tokens come in: strangers can make them up. */
const COOLDOWN_MS = 5_000
/** Keys are asked for again after so long, so that one taken back does not stay. */
const FRESH_MS = 10 * 60_000
/** And without an answer they are worth nothing after so long. */
const TRUSTED_MS = 60 * 60_000
const KEYS_MAX = 100

export interface IssuerKeysOptions {
  readonly issuerUrl: string
  /** The bytes at an https URL, within bounds. */
  readonly read: (url: URL) => Promise<Buffer>
  readonly onChange: () => void
  readonly clock: Clock
  readonly log: Log
}

/** Keys as an issuer had them at one moment. */
export interface KeysOfIssuer {
  readonly find: JWTVerifyGetKey
  readonly atMs: number
}

/**
 * The public keys of an OIDC issuer. All that wait for them share one question, and there is a
 * pause after each, whether it was answered or not.
 */
export class IssuerKeys {
  readonly #options: IssuerKeysOptions
  #keys: KeysOfIssuer | undefined
  #text = ''
  #pending: Promise<void> | undefined
  #askedAtMs = Number.NEGATIVE_INFINITY
  #isFailing = false

  constructor(options: IssuerKeysOptions) {
    this.#options = options
  }

  /** Those to verify with. Rejects with TokenRefused when there are none that can be trusted. */
  async current(): Promise<KeysOfIssuer> {
    const ageMs = this.#ageMs()
    if (ageMs >= TRUSTED_MS) await this.#ask()
    else if (ageMs >= FRESH_MS) void this.#ask()
    if (this.#keys === undefined || this.#ageMs() >= TRUSTED_MS) {
      throw new TokenRefused('the keys of its issuer are not known')
    }
    return this.#keys
  }

  /** For a token that `keys` did not verify: later ones, if there are any; else undefined. */
  async laterThan(keys: KeysOfIssuer): Promise<KeysOfIssuer | undefined> {
    if (this.#keys === keys) await this.#ask()
    return this.#keys?.find === keys.find ? undefined : this.#keys
  }

  /** Never rejects: what there is stays until there is something else. */
  async #ask(): Promise<void> {
    const { clock } = this.#options
    if (this.#pending === undefined) {
      if (clock.now() - this.#askedAtMs < COOLDOWN_MS) return
      this.#askedAtMs = clock.now()
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
      throw new Error('its discovery document names another issuer')
    }
    const keysUrl = URL.parse(String(memberOf(document, 'jwks_uri')))
    if (keysUrl?.protocol !== 'https:') throw new Error('its jwks_uri is not an https URL')
    const bytes = await read(keysUrl)
    const found = objectIn(bytes)
    const keys = memberOf(found, 'keys')
    if (!Array.isArray(keys) || keys.length > KEYS_MAX) throw new Error('it shows no list of keys')
    try {
      const find = createLocalJWKSet({ keys } as unknown as JSONWebKeySet)
      return { text: bytes.toString('utf8'), find }
    } catch (cause) {
      if (!(cause instanceof errors.JOSEError)) throw cause
      throw new Error('its keys cannot be read', { cause })
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
    throw new Error('it answers with something else than JSON')
  }
  if (!isObject(value)) throw new Error('it answers with something else than an object')
  return value
}
