import { unavailable } from '../../api/status.ts'
import type { Clock } from '../../lib/clock.ts'
import { isObject, type Json, type JsonObject, memberOf } from '../../lib/json.ts'
import type { Log } from '../../lib/log/log.ts'
import { networkOf } from '../../lib/network.ts'
import { NotIdentified, type Refusal } from '../refusal.ts'
import { type User, userMemory } from '../user.ts'
import type { Reviewer } from '../webhook/review-client.ts'
import type { TokenAuthenticator } from './bearer-token.ts'
import { TokenCache, tokenDigest } from './token-cache.ts'

const API_VERSION = 'authentication.k8s.io/v1'
/** Clients do not wait longer. */
const TIMEOUT_MS = 10_000
/** Retry-After when the webhook fails. */
const RETRY_SECONDS = 1
/** Two caches, so that invented tokens cannot evict valid ones. */
const USERS_MAX = 10_000
const REFUSALS_MAX = 10_000
/** A user with thousands of groups is reviewed for each request instead of cached. */
const USER_BYTES_MAX = 16 * 1024

export interface TokenWebhookOptions {
  readonly reviewer: Reviewer & { stop(): void }
  /** A token must have one of these; if empty, the webhook decides. */
  readonly audiences: readonly string[]
  /** How long a result is cached, also that a token is unknown. 0 caches nothing. */
  readonly cacheMs: number
  /** The size of the cache of users, and of that of unknown tokens. */
  readonly entriesMax?: number
  /** Throws to refuse a token that must not be sent to the webhook. */
  readonly check?: (token: string) => void
  /** The cluster whose users these are; undefined for users of this server. */
  readonly origin?: string
  /** Counts requests whose token could not be checked. */
  readonly refusal?: Refusal
  /** How log lines begin. */
  readonly title?: string
  readonly clock: Clock
  readonly log: Log
}

const REFUSED = {}

/**
 * Authenticates tokens by a webhook (TokenReview). Requests with the same token share one review
 * and, for a time, its result. A failure or an invalid response is not cached and means 503: the
 * token may be valid. Unauthenticated clients cause reviews too, so clients of one network share
 * their part of the requests to the webhook.
 */
export class TokenWebhook implements TokenAuthenticator {
  readonly #options: TokenWebhookOptions
  readonly #users: TokenCache<User>
  readonly #refusals: TokenCache<typeof REFUSED>
  readonly #pending = new Map<string, Promise<User | undefined>>()
  #isFailing = false

  constructor(options: TokenWebhookOptions) {
    const { clock, entriesMax } = options
    this.#options = options
    this.#users = new TokenCache({ entriesMax: entriesMax ?? USERS_MAX, clock })
    this.#refusals = new TokenCache({ entriesMax: entriesMax ?? REFUSALS_MAX, clock })
  }

  async userOf(token: string, from = ''): Promise<User | undefined> {
    const digest = tokenDigest(token)
    const known = this.#users.get(digest)
    if (known !== undefined) return known
    if (this.#refusals.get(digest) !== undefined) return undefined
    this.#options.check?.(token)
    let pending = this.#pending.get(digest)
    if (pending === undefined) {
      pending = this.#review(token, digest, networkOf(from)).finally(() => {
        this.#pending.delete(digest)
      })
      this.#pending.set(digest, pending)
    }
    return pending
  }

  stop(): void {
    this.#options.reviewer.stop()
  }

  async #review(token: string, digest: string, sharer: string): Promise<User | undefined> {
    const { reviewer, audiences, cacheMs, origin, refusal = 'webhook-failed' } = this.#options
    let user: User | undefined
    try {
      const review = tokenReview(token, audiences)
      const response = await reviewer.post(review, { timeoutMs: TIMEOUT_MS, sharer })
      const found = userIn(response, audiences)
      user = found === undefined || origin === undefined ? found : { ...found, origin }
    } catch (err) {
      this.#report(err)
      const where = origin === undefined ? '' : ` by cluster ${origin}`
      const status = unavailable(
        `the token cannot be verified${where} now; the server log has the reason`,
        RETRY_SECONDS,
      )
      throw new NotIdentified(refusal, status)
    }
    this.#report(undefined)
    if (user === undefined) this.#refusals.set(digest, REFUSED, cacheMs)
    else if (userMemory(user) <= USER_BYTES_MAX) this.#users.set(digest, user, cacheMs)
    return user
  }

  /** Logs the first failure and the recovery: a line for each request would flood the log. */
  #report(err: unknown): void {
    const { log, title = 'Token webhook' } = this.#options
    const isFailing = err !== undefined
    if (isFailing && !this.#isFailing)
      log.warn(`${title} failing: requests with its tokens get 503`, { err })
    if (!isFailing && this.#isFailing) log.info(`${title} works again`)
    this.#isFailing = isFailing
  }
}

function tokenReview(token: string, audiences: readonly string[]): object {
  return {
    kind: 'TokenReview',
    apiVersion: API_VERSION,
    metadata: {},
    spec: { token, ...(audiences.length === 0 ? {} : { audiences }) },
    status: { user: {} },
  }
}

/** Undefined when the token is not authenticated. Throws when the response is invalid. */
function userIn(response: JsonObject, audiences: readonly string[]): User | undefined {
  if (
    memberOf(response, 'kind') !== 'TokenReview' ||
    memberOf(response, 'apiVersion') !== API_VERSION
  ) {
    throw new Error(`the response is not a TokenReview of ${API_VERSION}`)
  }
  const status = memberOf(response, 'status')
  if (!isObject(status)) throw new Error('the response has no status')
  const isAuthenticated = memberOf(status, 'authenticated') ?? false
  if (typeof isAuthenticated !== 'boolean')
    throw new Error('status.authenticated of the response is not a boolean')
  if (!isAuthenticated) return undefined
  if (!hasOurAudience(status, audiences)) return undefined
  const user = memberOf(status, 'user')
  if (!isObject(user)) throw new Error('the response has no user')
  return reviewedUser(user)
}

/** A webhook that does not know audiences returns none; its result then counts for ours. */
function hasOurAudience(status: JsonObject, audiences: readonly string[]): boolean {
  const confirmed = texts(memberOf(status, 'audiences'))
  if (audiences.length === 0 || confirmed.length === 0) return true
  return confirmed.some((audience) => audiences.includes(audience))
}

function reviewedUser(user: JsonObject): User {
  const name = memberOf(user, 'username')
  const uid = memberOf(user, 'uid') ?? ''
  const extra = memberOf(user, 'extra') ?? {}
  if (typeof name !== 'string' || name === '' || typeof uid !== 'string' || !isObject(extra)) {
    throw new Error('the user of the response is invalid')
  }
  const extras = Object.entries(extra).map(([key, values]) => [key, texts(values)] as const)
  return {
    name,
    ...(uid === '' ? {} : { uid }),
    groups: texts(memberOf(user, 'groups')),
    ...(extras.length === 0 ? {} : { extra: Object.fromEntries(extras) }),
  }
}

function texts(value: Json | undefined): readonly string[] {
  if (value === undefined || value === null) return []
  if (!Array.isArray(value) || !value.every((item) => typeof item === 'string')) {
    throw new Error('a field of the response is not a list of strings')
  }
  return value
}
