export interface HistoryBounds {
  readonly changesMax: number
  readonly bytesMax: number
  /** Undefined: all changes stay fresh. Fresh changes also take a quarter of the bytes at most. */
  readonly freshMax?: number | undefined
  /** Undefined: any age. */
  readonly ageMsMax?: number | undefined
}

/**
 * A few minutes of a busy cluster. A watcher that is further behind reads etcd's history, which by
 * default reaches back no further than `ageMsMax`: a larger bound would not help it.
 */
export const defaultHistoryBounds: HistoryBounds = {
  changesMax: 50_000,
  bytesMax: 96 * 1024 * 1024,
  freshMax: 2_048,
  ageMsMax: 10 * 60_000,
}
