import type { Version } from '../storage/resource-version.ts'
import type { EventKey, EventStorage, EventWatch, StoredEvent } from '../storage/storage.ts'

/** A change without the state before it, which memory has. */
export type FollowItem =
  | { readonly type: 'put'; readonly stored: StoredEvent }
  | { readonly type: 'delete'; readonly key: EventKey; readonly version: Version }

/** A storage that memory can be kept of. */
export interface FollowedStorage extends EventStorage {
  /** Like `watch` for all events, without the states before. */
  follow(options: { readonly from: Version; readonly signal: AbortSignal }): EventWatch<FollowItem>
}
