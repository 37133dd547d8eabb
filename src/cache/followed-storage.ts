import type { Traced } from '../lib/tracing/span.ts'
import type { Version } from '../storage/resource-version.ts'
import type {
  ConnectionNumber,
  EventScope,
  EventStorage,
  EventWatch,
  FollowWatch,
  ListOptions,
  Newest,
  StoredPage,
} from '../storage/storage.ts'

/**
 * The store behind the cache. Results carry the number of the connection that they came over, so that
 * the cache detects an etcd that was restored from a snapshot.
 */
export interface FollowedStorage extends EventStorage {
  /** Waits for a connection; resolves to the newest connection number. */
  connected(signal: AbortSignal): Promise<ConnectionNumber>
  /** Also returns the connection that the page was read over. */
  list(scope: EventScope, options: ListOptions): Promise<StoredPage>
  /**
   * All events at one version, in the order of their keys, as pages of a few megabytes: at least
   * one, of which any may be empty. The next one is read while the caller processes one.
   */
  readAll(options: Pick<ListOptions, 'lane' | 'signal' | 'isPatient'>): AsyncIterable<StoredPage>
  /** `connection` is the newest one that any of the watch's batches so far came over. */
  watch(
    scope: EventScope,
    options: { readonly from: Version; readonly signal: AbortSignal },
  ): EventWatch & { readonly connection: ConnectionNumber }
  /**
   * Watches all events, without their previous states. Continues the history that connections up to
   * `connectionMax` served. Fails with a `compacted` StorageError if that history is gone, and with an
   * OtherHistoryError if the store has a different one.
   */
  follow(options: {
    readonly from: Version
    readonly signal: AbortSignal
    readonly connectionMax: ConnectionNumber
  }): FollowWatch
  /** The current version, and the connection over which it was read. */
  newest(options: { readonly signal: AbortSignal } & Traced): Promise<Newest>
  /** Writes a marker key, which identifies the history even if no client writes. */
  mark(): Promise<void>
}
