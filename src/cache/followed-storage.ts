import type { Version } from '../storage/resource-version.ts'
import type { EventStorage, EventWatch, FollowItem } from '../storage/storage.ts'

/** A storage that memory can be kept of. */
export interface FollowedStorage extends EventStorage {
  /** Like `watch` for all events, without the states before. */
  follow(options: { readonly from: Version; readonly signal: AbortSignal }): EventWatch<FollowItem>
}
