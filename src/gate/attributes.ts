/** What a request does, in the terms in which permissions are granted. */
export type Attributes = ResourceAttributes | PathAttributes

/** A verb on objects. */
export interface ResourceAttributes {
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
  readonly path: string
}

/** A method on a path that is not a resource. */
export interface PathAttributes {
  readonly isResource: false
  /** The method in lower case. */
  readonly verb: string
  readonly path: string
}
