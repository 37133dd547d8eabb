import type { Clock } from '../../lib/clock.ts'
import { isObject, type JsonObject, memberOf } from '../../lib/json.ts'
import type { Log } from '../../lib/log/log.ts'
import type { Attributes } from '../attributes.ts'
import type { Authorizer, Decision } from '../decisions.ts'
import { accountOf, type User } from '../user.ts'
import { ReviewCache } from '../webhook/review-cache.ts'
import type { Reviewer } from '../webhook/review-client.ts'

export interface WebhookAuthorizerOptions {
  readonly client: Reviewer
  /** The default cluster, for paths that do not name one. Reviews for it do not name it either. */
  readonly clusterName: string
  /** How long a permission is cached. */
  readonly authorizedTtlMs: number
  /** How long a refusal is cached. */
  readonly unauthorizedTtlMs: number
  /** Size of the cache of permissions, and of that of refusals. */
  readonly entriesMax?: number
  /** The log message when there is no usable response. */
  readonly failure?: string
  readonly clock: Clock
  readonly log: Log
}

/** Well below the request timeout, so that the client gets the reason. */
const TIMEOUT_MS = 10_000
const DECISIONS_MAX = 8192
const KIND = 'SubjectAccessReview'
const API_VERSION = 'authorization.k8s.io/v1'
/** The reason of a refusal is sent to the client. */
const REASON_LENGTH_MAX = 1024
/** Minimum time between two log lines about a webhook that fails. */
const REPEAT_LOG_MS = 10_000

/**
 * Decides by a webhook (SubjectAccessReview). Fails closed: without a usable response of the
 * webhook, this authorizer allows nothing.
 */
export class WebhookAuthorizer implements Authorizer {
  readonly #options: WebhookAuthorizerOptions
  readonly #decisions: ReviewCache<Decision>
  #loggedAt: number | undefined

  constructor(options: WebhookAuthorizerOptions) {
    const { authorizedTtlMs, unauthorizedTtlMs, entriesMax = DECISIONS_MAX, clock } = options
    this.#options = options
    this.#decisions = new ReviewCache({
      ttlMs: ({ verdict }) => (verdict === 'allow' ? authorizedTtlMs : unauthorizedTtlMs),
      isRefusal: ({ verdict }) => verdict !== 'allow',
      entriesMax,
      clock,
    })
  }

  async decide(user: User, attributes: Attributes): Promise<Decision> {
    const spec = reviewSpec(user, attributes, this.#options.clusterName)
    try {
      return await this.#decisions.resultOf(JSON.stringify(spec), () => this.#send(spec, user))
    } catch (err) {
      this.#logFailure(err)
      return { verdict: 'no-opinion', isUnsure: true }
    }
  }

  async #send(spec: object, user: User): Promise<Decision> {
    const sharer = user.payer ?? accountOf(user)
    const review = { kind: KIND, apiVersion: API_VERSION, spec }
    return decisionOf(await this.#options.client.post(review, { timeoutMs: TIMEOUT_MS, sharer }))
  }

  #logFailure(err: unknown): void {
    const { clock, log, failure = 'Authorization webhook failed' } = this.#options
    const now = clock.now()
    if (this.#loggedAt !== undefined && now - this.#loggedAt < REPEAT_LOG_MS) return
    this.#loggedAt = now
    log.warn(failure, { err })
  }
}

/**
 * The cluster is sent in `extra`: reviews have no field for it, and receivers drop unknown ones.
 */
const CLUSTER_KEY = 'tidings.dev/cluster'

function reviewSpec(user: User, attributes: Attributes, clusterName: string): object {
  const { cluster } = attributes
  const extra = extraOf(user, cluster === clusterName ? undefined : cluster)
  return {
    ...(attributes.isResource
      ? { resourceAttributes: resourceSpec(attributes) }
      : { nonResourceAttributes: { path: attributes.path, verb: attributes.verb } }),
    user: user.name,
    ...(user.groups.length === 0 ? {} : { groups: user.groups }),
    ...(extra === undefined ? {} : { extra }),
    ...(user.uid === undefined || user.uid === '' ? {} : { uid: user.uid }),
  }
}

/** Credentials cannot set the key that names the cluster. */
function extraOf({ extra }: User, cluster: string | undefined): User['extra'] {
  const isClaimed = extra !== undefined && Object.keys(extra).some(isClusterKey)
  const own = isClaimed
    ? Object.fromEntries(Object.entries(extra).filter(([key]) => !isClusterKey(key)))
    : extra
  return cluster === undefined ? own : { ...own, [CLUSTER_KEY]: [cluster] }
}

function isClusterKey(key: string): boolean {
  return key.toLowerCase() === CLUSTER_KEY
}

/** Omits empty members, as other API servers do. */
function resourceSpec(attributes: Extract<Attributes, { isResource: true }>): object {
  const { namespace, verb, group, version, resource, subresource, name } = attributes
  const spec = { namespace, verb, group, version, resource, subresource, name }
  return Object.fromEntries(Object.entries(spec).filter(([, value]) => value !== ''))
}

/** Throws when the response is not a review. */
function decisionOf(response: JsonObject): Decision {
  if (memberOf(response, 'kind') !== KIND || memberOf(response, 'apiVersion') !== API_VERSION) {
    throw new Error(`the response is not a ${KIND} of ${API_VERSION}`)
  }
  const status = memberOf(response, 'status')
  const allowed = isObject(status) ? memberOf(status, 'allowed') : undefined
  if (!isObject(status) || typeof allowed !== 'boolean') {
    throw new Error(`the response is not a ${KIND} with a status`)
  }
  const given = memberOf(status, 'reason')
  const reason =
    typeof given === 'string' && given !== '' ? { reason: given.slice(0, REASON_LENGTH_MAX) } : {}
  const denied = memberOf(status, 'denied') ?? false
  if (denied !== false) return { verdict: 'deny', ...reason }
  return { verdict: allowed ? 'allow' : 'no-opinion', ...reason }
}
