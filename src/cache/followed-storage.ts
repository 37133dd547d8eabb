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

/** A storage that memory can be kept of. */
export interface FollowedStorage extends EventStorage {
  /** Waits until there is a connection to list and to follow over; the newest one by then. */
  connected(signal: AbortSignal): Promise<ConnectionNumber>
  /** Says over which connection it came. */
  list(
    scope: EventScope,
    options: ListOptions,
  ): Promise<EventPage & { readonly connection: ConnectionNumber }>
  /** Says up to which connection what it told came over. */
  watch(
    scope: EventScope,
    options: { readonly from: Version; readonly signal: AbortSignal },
  ): EventWatch & { readonly connection: ConnectionNumber }
  /**
   * Like `watch` for all events, without the states before. Goes on in the history that was read over
   * connections up to `connectionMax`, and fails with `compacted` or an OtherHistoryError otherwise.
   */
  follow(options: {
    readonly from: Version
    readonly signal: AbortSignal
    readonly connectionMax: ConnectionNumber
  }): FollowWatch
  /** As `currentVersion`. */
  newest(options: { readonly signal: AbortSignal }): Promise<Newest>
  /** Puts something there by which the history can be recognised, for when nobody else writes. */
  mark(): Promise<void>
}
