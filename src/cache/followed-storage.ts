import type { Traced } from '../lib/tracing/span.ts'
import type { Version } from '../storage/resource-version.ts'
import type {
  ConnectionNumber,
  EventPage,
  EventScope,
  EventStorage,
  EventWatch,
  FollowWatch,
  ListOptions,
  Newest,
} from '../storage/storage.ts'

/** A storage that the cache can load and follow. */
export interface FollowedStorage extends EventStorage {
  /** Waits until there is a connection to list and to follow over; returns the newest one. */
  connected(signal: AbortSignal): Promise<ConnectionNumber>
  /** Also returns the connection that the page was read over. */
  list(
    scope: EventScope,
    options: ListOptions,
  ): Promise<EventPage & { readonly connection: ConnectionNumber }>
  /** `connection` is the newest one that any of the watch's batches so far came over. */
  watch(
    scope: EventScope,
    options: { readonly from: Version; readonly signal: AbortSignal },
  ): EventWatch & { readonly connection: ConnectionNumber }
  /**
   * Like `watch` for all events, without the previous states. Continues in the history that was
   * read over connections up to `connectionMax`; otherwise fails with `compacted` or an
   * OtherHistoryError.
   */
  follow(options: {
    readonly from: Version
    readonly signal: AbortSignal
    readonly connectionMax: ConnectionNumber
  }): FollowWatch
  /** Like `currentVersion`, with the connection. */
  newest(options: { readonly signal: AbortSignal } & Traced): Promise<Newest>
  /** Writes a mark by which the history can be recognised while no client writes. */
  mark(): Promise<void>
}
