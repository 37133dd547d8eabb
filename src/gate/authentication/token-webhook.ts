import { unavailable } from '../../api/status.ts'
import type { Clock } from '../../lib/clock.ts'
import { isObject, type Json, type JsonObject, memberOf } from '../../lib/json.ts'
import type { Log } from '../../lib/log.ts'
import { networkOf } from '../../lib/network.ts'
import { NotIdentified } from '../refusal.ts'
import type { User } from '../user.ts'
import type { TokenUsers } from './bearer-token.ts'
import { TokenCache, tokenDigest } from './token-cache.ts'

const API_VERSION = 'authentication.k8s.io/v1'
/** A caller that waits longer has given up. */
const TIMEOUT_MS = 10_000
/** For want of an answer; the next try may have one. */
const RETRY_SECONDS = 1
/** Apart from each other, so that made-up tokens cannot push out good ones. */
const USERS_MAX = 10_000
const REFUSALS_MAX = 10_000

/** Puts a question to the webhook; rejects when there is no answer that can be used. */
export interface Reviewer {
  post(
    body: object,
    options: { readonly timeoutMs: number; readonly sharer: string },
  ): Promise<JsonObject>
  stop(): void
}

export interface TokenWebhookOptions {
  readonly reviewer: Reviewer
  /** What tokens must be meant for; none means that the webhook decides. */
  readonly audiences: readonly string[]
  /** How long an answer holds, also one that the token is nobody's. 0 asks each time. */
  readonly cacheMs: number
  readonly clock: Clock
  readonly log: Log
}

const NOBODY = {}

/**
 * Asks another server whose a token is. Whoever comes with the same token shares the question and,
 * for a while, the answer. No answer, or one that makes no sense, is kept for nobody and means 503:
 * the token may be a good one. Strangers ask too, so those from one address share what they may.
 */
export class TokenWebhook implements TokenUsers {
  readonly #options: TokenWebhookOptions
  readonly #users: TokenCache<User>
  readonly #refusals: TokenCache<typeof NOBODY>
  readonly #pending = new Map<string, Promise<User | undefined>>()
  #isFailing = false

  constructor(options: TokenWebhookOptions) {
    const { clock } = options
    this.#options = options
    this.#users = new TokenCache({ entriesMax: USERS_MAX, clock })
    this.#refusals = new TokenCache({ entriesMax: REFUSALS_MAX, clock })
  }

  async userOf(token: string, from = ''): Promise<User | undefined> {
    const digest = tokenDigest(token)
    const known = this.#users.get(digest)
    if (known !== undefined) return known
    if (this.#refusals.get(digest) !== undefined) return undefined
    let answer = this.#pending.get(digest)
    if (answer === undefined) {
      answer = this.#ask(token, digest, networkOf(from)).finally(() => this.#pending.delete(digest))
      this.#pending.set(digest, answer)
    }
    return answer
  }

  stop(): void {
    this.#options.reviewer.stop()
  }

  async #ask(token: string, digest: string, sharer: string): Promise<User | undefined> {
    const { reviewer, audiences, cacheMs } = this.#options
    let user: User | undefined
    try {
      const asked = question(token, audiences)
      const review = await reviewer.post(asked, { timeoutMs: TIMEOUT_MS, sharer })
      user = userIn(review, audiences)
    } catch (err) {
      this.#report(err)
      const answer = unavailable('whose token this is cannot be found out now', RETRY_SECONDS)
      throw new NotIdentified('webhook-failed', answer)
    }
    this.#report(undefined)
    if (user === undefined) this.#refusals.set(digest, NOBODY, cacheMs)
    else this.#users.set(digest, user, cacheMs)
    return user
  }

  /** Once when it breaks and once when it is mended: a line for each request would be a flood. */
  #report(err: unknown): void {
    const { log } = this.#options
    const isFailing = err !== undefined
    if (isFailing && !this.#isFailing)
      log.warn('Token webhook failing, its tokens get 503', { err })
    if (!isFailing && this.#isFailing) log.info('Token webhook answers again')
    this.#isFailing = isFailing
  }
}

function question(token: string, audiences: readonly string[]): object {
  return {
    kind: 'TokenReview',
    apiVersion: API_VERSION,
    metadata: {},
    spec: { token, ...(audiences.length === 0 ? {} : { audiences }) },
    status: { user: {} },
  }
}

/** Undefined when the token is nobody's. Throws when that is not what the answer is about. */
function userIn(review: JsonObject, audiences: readonly string[]): User | undefined {
  if (
    memberOf(review, 'kind') !== 'TokenReview' ||
    memberOf(review, 'apiVersion') !== API_VERSION
  ) {
    throw new Error(`the webhook answered with something else than a TokenReview of ${API_VERSION}`)
  }
  const status = memberOf(review, 'status')
  if (!isObject(status)) throw new Error('the review of the webhook has no status')
  const isAuthenticated = memberOf(status, 'authenticated') ?? false
  if (typeof isAuthenticated !== 'boolean')
    throw new Error('the webhook answers neither yes nor no')
  if (!isAuthenticated) return undefined
  if (!isMeantForUs(status, audiences)) return undefined
  const user = memberOf(status, 'user')
  if (!isObject(user)) throw new Error('the webhook names no user')
  return reviewedUser(user)
}

/** A webhook that knows nothing of audiences names none, and answers for ours. */
function isMeantForUs(status: JsonObject, audiences: readonly string[]): boolean {
  const confirmed = texts(memberOf(status, 'audiences'))
  if (audiences.length === 0 || confirmed.length === 0) return true
  return confirmed.some((audience) => audiences.includes(audience))
}

function reviewedUser(user: JsonObject): User {
  const name = memberOf(user, 'username')
  const uid = memberOf(user, 'uid') ?? ''
  const extra = memberOf(user, 'extra') ?? {}
  if (typeof name !== 'string' || name === '' || typeof uid !== 'string' || !isObject(extra)) {
    throw new Error('the webhook names a user that cannot be one')
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
    throw new Error('the webhook answers with something else than a list of texts')
  }
  return value
}
