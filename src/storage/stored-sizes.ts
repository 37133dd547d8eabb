/** How much is stored of a namespace, or of a whole cluster. */
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
   * of the store. They may change meanwhile: each has the counts of when it is reached.
   */
  all(): Iterable<StoredSize> | undefined
  /** The same for one of them; of 0 events when it has none. */
  of(cluster: string, namespace: string | undefined): StoredSize | undefined
}
