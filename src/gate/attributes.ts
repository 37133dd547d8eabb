/** The cluster of a request that lists or watches the events of all clusters. */
export const ALL_CLUSTERS = '*'

/** A request in the terms in which permissions are granted. */
export type Attributes = ResourceAttributes | PathAttributes

interface InCluster {
  /** Permissions are granted per cluster. `*` is a list or watch of all clusters. */
  readonly cluster: string
  /** Whether the path of the request names the cluster: `/clusters/<name>/...`. */
  readonly isPrefixed?: boolean
}

export interface ResourceAttributes extends InCluster {
  readonly isResource: true
  /**
   * `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`; '' for none.
   */
  readonly verb: string
  /** '' is the core group. */
  readonly group: string
  readonly version: string
  readonly resource: string
  readonly subresource: string
  /** '' for all namespaces, and for a resource without namespaces. */
  readonly namespace: string
  /** '' unless one object is addressed. */
  readonly name: string
  /** The path within the cluster, without `/clusters/<name>`. */
  readonly path: string
}

/** A method on a path that is not a resource. */
export interface PathAttributes extends InCluster {
  readonly isResource: false
  /** The method in lower case. */
  readonly verb: string
  /** The path within the cluster, without `/clusters/<name>`. */
  readonly path: string
}
