import { bodyBytesOf } from '../../storage/frames.ts'
import type { WatchItem } from '../../storage/storage.ts'

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

/** Memory of a change besides its bodies: its objects and its parsed fields. */
const changeOverheadBytes = 1_024
/** Up to this size of the bodies, the overhead includes the parsed fields. */
const largeBytes = 8 * 1024

/**
 * What a change takes that is not packed, without its frames. The fields that selectors parse from a
 * large body may take twice its length: two bytes for each character.
 */
export function unpackedBytesOf(item: WatchItem): number {
  const bodies = bodyBytesOf(item)
  return changeOverheadBytes + (bodies > largeBytes ? 3 : 1) * bodies
}
