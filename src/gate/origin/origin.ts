import type { ClusterConfig } from '../../clusters/clusters-file.ts'
import { OriginClient } from '../../clusters/origin-client.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log/log.ts'
import type { Attributes } from '../attributes.ts'
import { TokenWebhook } from '../authentication/token-webhook.ts'
import { WebhookAuthorizer } from '../authorization/webhook-authorizer.ts'
import type { Decision } from '../decisions.ts'
import type { User } from '../user.ts'
import { REVIEWS_MAX, ReviewClient } from '../webhook/review-client.ts'
import { forwardable } from './forwardable.ts'

const TOKEN_REVIEWS = '/apis/authentication.k8s.io/v1/tokenreviews'
const ACCESS_REVIEWS = '/apis/authorization.k8s.io/v1/subjectaccessreviews'
/**
 * How long a result is cached, even that a token is unknown or a request refused. Short, so that
 * changes of the cluster's roles take effect soon, but long enough for clients that page or poll.
 */
const CACHE_MS = 10_000
/**
 * Low, since there may be hundreds of clusters. Entries expire after CACHE_MS, so few are cached.
 */
const USERS_MAX = 1000
const DECISIONS_MAX = 2000

export interface OriginOptions {
  readonly clock: Clock
  readonly log: Log
  readonly userAgent?: string | undefined
}

/**
 * Authenticates and authorises the users of one cluster through its own API server, by TokenReview
 * and SubjectAccessReview. Each cluster has caches and connections of its own.
 */
export class Origin {
  readonly config: ClusterConfig
  readonly #client: OriginClient
  readonly #tokens: TokenWebhook
  readonly #access: WebhookAuthorizer

  constructor(
    config: ClusterConfig,
    kubeconfig: NonNullable<ClusterConfig['kubeconfig']>,
    { clock, log, userAgent }: OriginOptions,
  ) {
    this.config = config
    const { name } = config
    const client = new OriginClient(kubeconfig, { userAgent, socketsMax: 2 * REVIEWS_MAX })
    const peer = `the API server of cluster ${name}`
    const tokens = new ReviewClient(client, { path: TOKEN_REVIEWS, peer })
    this.#client = client
    this.#tokens = new TokenWebhook({
      reviewer: { post: (body, options) => tokens.post(body, options), stop: () => {} },
      // Empty, so that the token must be meant for the cluster's own API server.
      audiences: [],
      check: forwardable(name, config.tokens),
      cacheMs: CACHE_MS,
      entriesMax: USERS_MAX,
      origin: name,
      refusal: 'origin-failed',
      title: `Token reviews of cluster ${name}`,
      clock,
      log,
    })
    this.#access = new WebhookAuthorizer({
      client: new ReviewClient(client, { path: ACCESS_REVIEWS, peer }),
      authorizedTtlMs: CACHE_MS,
      unauthorizedTtlMs: CACHE_MS,
      entriesMax: DECISIONS_MAX,
      // The cluster is asked about itself, so reviews do not name it.
      clusterName: name,
      failure: `Access review of cluster ${name} failed: its users get 503`,
      clock,
      log,
    })
  }

  /**
   * Returns undefined when the cluster does not know the token. Rejects with 401 when the token
   * must not be sent to the cluster, and with 503 when the cluster cannot be asked.
   */
  userOf(token: string, address: string): Promise<User | undefined> {
    return this.#tokens.userOf(token, address)
  }

  /** Always has an opinion: no other authorizer decides about users of a cluster. */
  async decide(user: User, attributes: Attributes): Promise<Decision> {
    const decision = await this.#access.decide(user, attributes)
    return decision.verdict === 'no-opinion' ? { ...decision, verdict: 'deny' } : decision
  }

  stop(): void {
    this.#client.close()
  }
}
