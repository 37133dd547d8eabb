import { TIDINGS_GROUP } from '../../api/tidings-group.ts'
import type { ClustersSource } from '../../clusters/clusters-file.ts'
import type { Attributes } from '../attributes.ts'
import type { TokenAuthenticator } from '../authentication/bearer-token.ts'
import { type Authorizer, type Decision, NO_OPINION } from '../decisions.ts'
import type { User } from '../user.ts'
import { Origin, type OriginOptions } from './origin.ts'

/** Discovery and version are served per cluster. Other non-resource paths belong to this server. */
const CLUSTER_PATHS = /^\/(?:(?:api|apis|openapi|version)(?:\/|$)|$)/

/** The clusters with `authorization: origin`: their own API servers decide about their users. */
export class Origins {
  readonly #clusters: Pick<ClustersSource, 'clusters' | 'onChange'>
  readonly #options: OriginOptions
  #origins: ReadonlyMap<string, Origin> = new Map()

  constructor(clusters: Pick<ClustersSource, 'clusters' | 'onChange'>, options: OriginOptions) {
    this.#clusters = clusters
    this.#options = options
    this.#update()
    clusters.onChange(() => this.#update())
  }

  /** Authenticates users of the requested cluster. */
  readonly tokens: TokenAuthenticator = {
    userOf: (token, address, cluster) => this.#origins.get(cluster)?.userOf(token, address),
  }

  /**
   * Must be the first authorizer. It has an opinion about every request of a cluster's user, so
   * that no permission of this server applies to such a user, and about no other request.
   */
  readonly authorizer: Authorizer = {
    decide: (user, attributes) =>
      user.origin === undefined ? NO_OPINION : this.#decide(user, user.origin, attributes),
  }

  stop(): void {
    for (const origin of this.#origins.values()) origin.stop()
    this.#origins = new Map()
  }

  async #decide(user: User, name: string, attributes: Attributes): Promise<Decision> {
    const { isResource, cluster, path } = attributes
    if (cluster !== name) return refused(`the user is known in cluster ${name} only`)
    const isOfServer = isResource ? attributes.group === TIDINGS_GROUP : !CLUSTER_PATHS.test(path)
    if (isOfServer) return refused(`users of cluster ${name} have no access to the server itself`)
    const origin = this.#origins.get(name)
    if (origin === undefined)
      return refused(`cluster ${name} does not authorise its users any more`)
    return origin.decide(user, attributes)
  }

  /** Reuses the caches and connections of clusters that have not changed. */
  #update(): void {
    const updated = new Map<string, Origin>()
    for (const [name, config] of this.#clusters.clusters) {
      const { authorization, kubeconfig } = config
      if (authorization !== 'origin' || kubeconfig === undefined) continue
      const known = this.#origins.get(name)
      updated.set(
        name,
        known?.config === config ? known : new Origin(config, kubeconfig, this.#options),
      )
    }
    for (const [name, old] of this.#origins) if (updated.get(name) !== old) old.stop()
    this.#origins = updated
  }
}

function refused(reason: string): Decision {
  return { verdict: 'deny', reason }
}
