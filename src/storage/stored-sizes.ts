/** The stored events of a namespace, or of a whole cluster. */
export interface StoredSize {
  readonly cluster: string
  /** Undefined for the whole cluster. */
  readonly namespace: string | undefined
  readonly events: number
  /** The size of their JSON. */
  readonly bytes: number
}

/** Current counts, without a search. */
export interface StoredSizes {
  /**
   * Namespaces and clusters that have events; undefined while the counts are not known to be those
   * of the store. Counts may change during the iteration: each is read when it is reached.
   */
  all(): Iterable<StoredSize> | undefined
  /** The size of one of them, with 0 events when it has none. */
  of(cluster: string, namespace: string | undefined): StoredSize | undefined
}
