import type { Clock } from '../../lib/clock.ts'
import { isObject, type JsonObject, memberOf } from '../../lib/json.ts'
import type { Log } from '../../lib/log.ts'
import type { Attributes } from '../attributes.ts'
import type { Authorizer, Decision } from '../gate.ts'
import type { User } from '../user.ts'
import type { WebhookClient } from '../webhook/webhook-client.ts'
import { ReviewCache } from './review-cache.ts'

export interface WebhookAuthorizerOptions {
  readonly client: Pick<WebhookClient, 'post'>
  /** How long a permission is good for, and how long a refusal is. */
  readonly authorizedTtlMs: number
  readonly unauthorizedTtlMs: number
  readonly clock: Clock
  readonly log: Log
}

/** Well below the time a request has, so that its caller hears why. */
const TIMEOUT_MS = 10_000
/** Of those who may, and of those who may not. */
const ANSWERS_MAX = 8192
const KIND = 'SubjectAccessReview'
const API_VERSION = 'authorization.k8s.io/v1'
/** Reasons are told to whoever is refused. */
const REASON_LENGTH_MAX = 1024
/** A webhook that is down is told once in a while, not for each request. */
const REPEAT_LOG_MS = 10_000

/**
 * Asks somebody else, by SubjectAccessReview. While there is no answer that can be used, nobody is
 * let in on its word.
 */
export class WebhookAuthorizer implements Authorizer {
  readonly #options: WebhookAuthorizerOptions
  readonly #answers: ReviewCache<Decision>
  #loggedAt: number | undefined

  constructor(options: WebhookAuthorizerOptions) {
    const { authorizedTtlMs, unauthorizedTtlMs, clock } = options
    this.#options = options
    this.#answers = new ReviewCache({
      ttlMs: ({ verdict }) => (verdict === 'allow' ? authorizedTtlMs : unauthorizedTtlMs),
      isRefusal: ({ verdict }) => verdict !== 'allow',
      entriesMax: ANSWERS_MAX,
      clock,
    })
  }

  async decide(user: User, attributes: Attributes): Promise<Decision> {
    const spec = reviewSpec(user, attributes)
    try {
      return await this.#answers.answerTo(JSON.stringify(spec), () => this.#ask(spec, user))
    } catch (err) {
      this.#logFailure(err)
      return { verdict: 'no-opinion', isUnsure: true }
    }
  }

  async #ask(spec: object, { name: sharer }: User): Promise<Decision> {
    const review = { kind: KIND, apiVersion: API_VERSION, spec }
    return decisionOf(await this.#options.client.post(review, { timeoutMs: TIMEOUT_MS, sharer }))
  }

  #logFailure(err: unknown): void {
    const { clock, log } = this.#options
    const now = clock.now()
    if (this.#loggedAt !== undefined && now - this.#loggedAt < REPEAT_LOG_MS) return
    this.#loggedAt = now
    log.warn('Authorization webhook gave no answer', { err })
  }
}

function reviewSpec(user: User, attributes: Attributes): object {
  return {
    ...(attributes.isResource
      ? { resourceAttributes: resourceSpec(attributes) }
      : { nonResourceAttributes: { path: attributes.path, verb: attributes.verb } }),
    user: user.name,
    ...(user.groups.length === 0 ? {} : { groups: user.groups }),
    ...(user.extra === undefined ? {} : { extra: user.extra }),
    ...(user.uid === undefined || user.uid === '' ? {} : { uid: user.uid }),
  }
}

/** Empty members are left out, as other servers do. */
function resourceSpec(attributes: Extract<Attributes, { isResource: true }>): object {
  const { namespace, verb, group, version, resource, subresource, name } = attributes
  const spec = { namespace, verb, group, version, resource, subresource, name }
  return Object.fromEntries(Object.entries(spec).filter(([, value]) => value !== ''))
}

/** Throws when the answer is no review. */
function decisionOf(answer: JsonObject): Decision {
  if (memberOf(answer, 'kind') !== KIND || memberOf(answer, 'apiVersion') !== API_VERSION) {
    throw new Error(`the answer is no ${KIND} of ${API_VERSION}`)
  }
  const status = memberOf(answer, 'status')
  const allowed = isObject(status) ? memberOf(status, 'allowed') : undefined
  if (!isObject(status) || typeof allowed !== 'boolean') {
    throw new Error(`the answer is no ${KIND} with a status`)
  }
  const given = memberOf(status, 'reason')
  const reason =
    typeof given === 'string' && given !== '' ? { reason: given.slice(0, REASON_LENGTH_MAX) } : {}
  const denied = memberOf(status, 'denied') ?? false
  if (denied !== false) return { verdict: 'deny', ...reason }
  return { verdict: allowed ? 'allow' : 'no-opinion', ...reason }
}
