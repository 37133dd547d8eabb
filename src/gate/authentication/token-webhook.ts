import { unavailable } from '../../api/status.ts'
import type { Clock } from '../../lib/clock.ts'
import { isObject, type Json, type JsonObject, memberOf } from '../../lib/json.ts'
import type { Log } from '../../lib/log/log.ts'
import { networkOf } from '../../lib/network.ts'
import { NotIdentified, type Refusal } from '../refusal.ts'
import { type User, userMemory } from '../user.ts'
import { ReviewCache } from '../webhook/review-cache.ts'
import type { Reviewer } from '../webhook/review-client.ts'
import type { TokenAuthenticator } from './bearer-token.ts'

const API_VERSION = 'authentication.k8s.io/v1'
/** Clients give up after this time as well. */
const TIMEOUT_MS = 10_000
/** Retry-After when the webhook fails. */
const RETRY_SECONDS = 1
const ENTRIES_MAX = 10_000
/** A user with thousands of groups is not cached, but reviewed for each request. */
const USER_BYTES_MAX = 16 * 1024

export interface TokenWebhookOptions {
  readonly reviewer: Reviewer & { stop(): void }
  /** A token must have one of these; if empty, the webhook decides. */
  readonly audiences: readonly string[]
  /** How long a result is cached, even that a token is unknown. 0 caches nothing. */
  readonly cacheMs: number
  /** Size of the cache of users, and of that of unknown tokens. */
  readonly entriesMax?: number
  /** Throws to refuse a token that must not be sent to the webhook. */
  readonly check?: (token: string) => void
  /** The cluster whose users these are; undefined for users of this server. */
  readonly origin?: string
  /** Counts requests whose token could not be checked. */
  readonly refusal?: Refusal
  /** The beginning of log messages. */
  readonly title?: string
  readonly clock: Clock
  readonly log: Log
}

interface TokenResult {
  /** Undefined when the webhook does not know the token. */
  readonly user: User | undefined
}

/**
 * Authenticates tokens by a webhook (TokenReview). Requests with the same token share one review
 * and, for a time, its result. A failure or an invalid response is not cached and means 503: the
 * token may be valid. Unauthenticated clients cause reviews too, so all clients of one network
 * share one part of the requests to the webhook.
 */
export class TokenWebhook implements TokenAuthenticator {
  readonly #options: TokenWebhookOptions
  readonly #results: ReviewCache<TokenResult>
  #isFailing = false

  constructor(options: TokenWebhookOptions) {
    const { cacheMs, clock, entriesMax = ENTRIES_MAX } = options
    this.#options = options
    this.#results = new ReviewCache({
      ttlMs: ({ user }) => (user === undefined || userMemory(user) <= USER_BYTES_MAX ? cacheMs : 0),
      isRefusal: ({ user }) => user === undefined,
      entriesMax,
      clock,
    })
  }

  async userOf(token: string, from = ''): Promise<User | undefined> {
    const { user } = await this.#results.resultOf(token, () => this.#review(token, from))
    return user
  }

  stop(): void {
    this.#options.reviewer.stop()
  }

  async #review(token: string, from: string): Promise<TokenResult> {
    const { reviewer, audiences, check, origin, refusal = 'webhook-failed' } = this.#options
    check?.(token)
    try {
      const review = tokenReview(token, audiences)
      const options = { timeoutMs: TIMEOUT_MS, sharer: networkOf(from) }
      const found = userIn(await reviewer.post(review, options), audiences)
      this.#report(undefined)
      return { user: found === undefined || origin === undefined ? found : { ...found, origin } }
    } catch (err) {
      this.#report(err)
      const where = origin === undefined ? '' : ` by cluster ${origin}`
      const status = unavailable(
        `the token cannot be verified${where} now; the server log has the reason`,
        RETRY_SECONDS,
      )
      throw new NotIdentified(refusal, status)
    }
  }

  /** Logs the first failure and the recovery, since a line per request would flood the log. */
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

/** A webhook that does not support audiences returns none; its result is then valid for ours. */
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
