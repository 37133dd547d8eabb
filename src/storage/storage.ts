import type { Event } from '../api/event.ts'
import type { Pull } from '../lib/pull.ts'
import type { Lane } from '../lib/run-queue.ts'
import type { Traced } from '../lib/tracing/span.ts'
import type { EventFields } from './event-fields.ts'
import type { Requires } from './requires.ts'
import type { Version } from './resource-version.ts'
import type { WorkloadMark } from './trailer.ts'

export interface EventKey {
  /** The cluster that the event belongs to, a DNS label. */
  readonly cluster: string
  readonly namespace: string
  readonly name: string
}

/**
 * Connections to the store are numbered in the order in which they are established. A store that
 * was restored from a snapshot can respond only over connections established after the restore.
 */
export type ConnectionNumber = number

/** Fields with the same meaning as in `EventFields`. */
export interface EventValues {
  readonly type: string
  readonly reason: string
  /** The kind of the regarded object. */
  readonly kind: string
  readonly reportingController: string
}

/** The state of an event after one change. */
export interface StoredEvent {
  readonly key: EventKey
  /**
   * The events.k8s.io/v1 object as JSON, without its resourceVersion. Often a view into a larger
   * message: copy it to retain it.
   */
  readonly body: Buffer
  /** What the server knows beyond the fields; see trailer.ts. Default: nothing. */
  readonly trailer?: Buffer | undefined
  /** Where in `body` the resourceVersion is inserted; see `served` in stored-form.ts. */
  readonly versionOffset: number
  /** The version of that change. */
  readonly version: Version
  /** The time of that change, by the clock of the replica that wrote it. Lifetimes start here. */
  readonly writtenAtMs: number
  /** Parsed from `body` on first access. Throws `corrupt` when `body` is not valid JSON. */
  readonly fields: EventFields
  /** Some of the fields, where they are known without parsing `body`. */
  readonly values?: EventValues | undefined
}

/** A value under one of our keys that is not an event. */
export interface Unreadable {
  readonly key: EventKey
  /** `foreign`: another program wrote it. `damaged`: this server wrote it, but cannot decode it. */
  readonly fault: 'foreign' | 'damaged'
  /** The version of the change that wrote the value. */
  readonly version: Version
  /** 0 for a foreign value. */
  readonly writtenAtMs: number
}

/**
 * The events of a list or a watch: of all clusters, of a cluster, or of a namespace in a cluster.
 * Undefined means all.
 */
export type EventScope =
  | { readonly cluster: undefined; readonly namespace: undefined }
  | { readonly cluster: string; readonly namespace: string | undefined }

/** A filter for events. */
export interface EventSelector {
  matches(stored: StoredEvent): boolean
  /** `matches` decides. */
  readonly requires?: Requires
}

export interface ReadOptions extends Traced {
  /**
   * The state must include this version: `future` when there is no such state yet. With `beginning`
   * any state will do. Undefined: a consistent read, which includes every write that was
   * acknowledged before the call.
   */
  readonly notOlderThan?: Version | undefined
  readonly signal: AbortSignal
  /** Waits for a store that is known to be down; other reads fail at once. Default false. */
  readonly isPatient?: boolean | undefined
}

/**
 * `key` is the byte order of `cluster/namespace/name`. `oldest` is the order of the times when events
 * were last seen, and events of the same time are in key order. `newest` is the reverse of `oldest`.
 */
export type ListOrder = 'key' | 'oldest' | 'newest'

export interface ListOptions extends ReadOptions {
  /** Whose time a long list uses. */
  readonly lane: Lane
  /**
   * Read exactly the state at this version. Versions of one transaction share the state after the
   * whole transaction; the version of the page shows that.
   */
  readonly at?: Version | undefined
  /**
   * Default `key`. Other orders are served from memory only: without it they fail with
   * `unavailable`, and with `at` and a state that is no longer in memory with `compacted`.
   */
  readonly order?: ListOrder | undefined
  /** Start after this key, which need not exist. */
  readonly after?: EventKey | undefined
  /** When the event with that key was last seen; required by orders other than `key`. */
  readonly afterMs?: number | undefined
  /** The uid of that event, since the archive has others with the same key. */
  readonly afterUid?: string | undefined
  /** At least 1. A reader of everything reads page after page at the version of the first page. */
  readonly limit: number
  /** Further pages will be read even if no event follows, so the state must be retained. */
  readonly isContinued?: boolean | undefined
  /** No further page will be read, so the state need not be retained for it. */
  readonly isOnlyPage?: boolean | undefined
  /** Nobody reads this list again after its last page, so the state need not be retained longer. */
  readonly isReadOnce?: boolean | undefined
  /** A page may end before the limit once its bodies have this size. */
  readonly bytesEnough?: number | undefined
  readonly selector?: EventSelector | undefined
  /**
   * If the selector has a time that reaches behind the events of the store, the archive continues
   * them. Undefined: it does not.
   */
  readonly archive?: ArchiveOptions | undefined
}

export interface ArchiveOptions {
  /** The state of the archive that earlier pages were read from. Undefined: the newest. */
  readonly state?: string | undefined
}

/** What a page has of the archive. */
export interface ArchivePart {
  /** The state that was read; the next page must be read from the same one. */
  readonly state: string
  /** Set when time ran out before the limit was reached. */
  readonly cut?: ArchiveCut | undefined
}

export interface ArchiveCut {
  /** The place of the next page. */
  readonly after: EventKey
  /** Undefined in the order of keys. */
  readonly afterMs: number | undefined
  /** Undefined: after all events with that key. */
  readonly afterUid?: string | undefined
}

export interface EventPage {
  /** Events in the requested order: fewer than the limit only at the end, or at `bytesEnough`. */
  readonly items: readonly StoredEvent[]
  /** The version of the state that was read; the next page must be read `at` it. */
  readonly version: Version
  /** Whether the scope has more events after the last item. They may not match the selector. */
  readonly more: boolean
  /** How many events follow the last item; undefined with a selector, or when it is not known. */
  readonly remaining: number | undefined
  /** Undefined when the archive was not read. */
  readonly archive?: ArchivePart | undefined
  /** Values between the items that are not events. Not set by memory, which has only events. */
  readonly unreadable?: readonly Unreadable[] | undefined
  /** The newest connection that the page came over, if it was read from the store. */
  readonly connection?: ConnectionNumber | undefined
}

/** A page that was read from the store itself. */
export type StoredPage = EventPage & { readonly connection: ConnectionNumber }

/**
 * The identity of an immutable sequence of adjacent events, including their versions; usable as a
 * cache key. Successive states contain the same run until one of its events is changed or deleted,
 * or another event is inserted between them.
 */
export interface EventRun {
  /** The run was replaced: only earlier states contain it. */
  readonly isPast: boolean
}

/** Consecutive events of a list, without the events themselves. */
export interface ListStretch {
  /** Undefined when the list contains only a part of the run. */
  readonly run: EventRun | undefined
  /** At least 1. */
  readonly count: number
  readonly last: StoredEvent
}

export interface RunsOptions {
  /** The state to divide; see `ListOptions`. */
  readonly at: Version
  readonly after?: EventKey | undefined
  /** The page ends with the run in which it reaches this number of events. */
  readonly limit: number
}

export interface RunsPage {
  /** All events of the page, in order and without gaps. */
  readonly stretches: readonly ListStretch[]
  readonly more: boolean
}

/** One change. `stored.version` is the version of the change, for a delete as well. */
export type WatchItem =
  | {
      readonly type: 'put'
      readonly stored: StoredEvent
      readonly previous: StoredEvent | undefined
    }
  /** `stored` is the last state with the version of the delete. */
  | { readonly type: 'delete'; readonly stored: StoredEvent }

/** A change without the previous state, for consumers that retain that state themselves. */
export type FollowItem =
  | { readonly type: 'put'; readonly stored: StoredEvent }
  | { readonly type: 'delete'; readonly key: EventKey; readonly version: Version }
  /** The event was replaced by a value that is not an event. */
  | {
      readonly type: 'unreadable'
      readonly key: EventKey
      readonly version: Version
      readonly value: Unreadable
    }

/** Whole transactions, in order, each change once. Without items it only reports progress. */
export interface WatchBatch<Item = WatchItem> {
  readonly items: readonly Item[]
  /** All changes up to here were delivered: a watch can resume from it. Never goes back. */
  readonly version: Version
}

/** Starts when it is iterated, and can be iterated once. */
export interface EventWatch<Item = WatchItem> extends AsyncIterable<WatchBatch<Item>> {
  /**
   * Requests a batch, possibly without items, that reports the position of the watch. There may be
   * no such batch while there are no changes after `from`.
   */
  requestProgress(): void
}

/** A watch of all events that continues a list; see src/etcd/protocol/protocol.ts. */
export interface FollowWatch extends EventWatch<FollowItem> {
  /** Responses over connections up to this one are of the delivered history. 0: not known now. */
  readonly verified: ConnectionNumber
  verify(connection: ConnectionNumber): void
}

/** The newest version, and the connection over which it was read. */
export interface Newest {
  readonly version: Version
  readonly connection: ConnectionNumber
}

/** A watch that can also be pulled batch by batch; the first pull starts it as well. */
export interface PulledWatch extends EventWatch, Pull<WatchBatch> {}

/**
 * Computes the new state of an event; `current` is undefined when there is no event. Must be
 * repeatable: it runs once per attempt, and the last run counts. Undefined, or `current.body`
 * itself, means that nothing is written; `remove` deletes the event. An error that it throws is
 * passed on to the caller unchanged.
 */
export type Change = (current: StoredEvent | undefined) => NewState | Buffer | 'remove' | undefined

/** A body to write, and what saves the storage from parsing it. */
export interface NewState extends Marks {
  readonly body: Buffer
  readonly event?: Event | undefined
}

/** What other events or owner references say about the object of an event. */
export interface Marks {
  /** `by-name`: what names say. Undefined: nothing new is known. */
  readonly workload?: WorkloadMark | 'by-name' | undefined
  readonly node?: string | undefined
}

/** Finds what is known about an event of this cluster that is about to be stored. */
export type MarksOf = (cluster: string, event: Event) => Marks

/** Gets the event before it is deleted, and throws to prevent that. Must be repeatable too. */
export type Guard = (current: StoredEvent) => void

/**
 * A write with a fence is applied only while this key of the store still has this revision. Work
 * that one elected replica does is fenced by the key of its election: if another replica was elected
 * during a pause, the write is refused.
 */
export interface Fence {
  readonly key: string
  readonly revision: number
}

/** An event as a cache has it. It may be stale. */
export interface KnownEvent {
  readonly stored: StoredEvent
  /** A write that depends on it must not be sent over later connections. */
  readonly connectionMax: ConnectionNumber
}

export interface CreateOptions extends Traced, Marks {
  /**
   * The event that `body` encodes, which saves parsing `body` when it is read again. It may be
   * retained for a while, with all that its texts are parts of.
   */
  readonly event?: Event | undefined
}

export interface DeleteOptions extends Traced {
  /** Saves the read of the event; no result depends on it alone. */
  readonly known?: KnownEvent | undefined
}

export interface UpdateOptions extends DeleteOptions {
  readonly fence?: Fence | undefined
  /** There is probably no event yet: a read of the key is not worth its cost. Default false. */
  readonly isProbablyNew?: boolean | undefined
}

export interface WatchOptions {
  readonly from: Version
  readonly signal: AbortSignal
  /** Whose time is used when the watch has to catch up. Undefined: the server's own. */
  readonly lane?: Lane | undefined
}

/**
 * The storage of events. The tests in test/ci/contract check every implementation. All methods fail
 * with a StorageError, or with the error that a `Change`, `Guard` or selector threw. They know
 * nothing about HTTP.
 *
 * Reads and watches end with their signal. Writes have no signal: once started they run to
 * completion within a few seconds, even if the client has disconnected.
 */
export interface EventStorage {
  /** Fails with `missing`. */
  get(key: EventKey, options: ReadOptions): Promise<StoredEvent>
  list(scope: EventScope, options: ListOptions): Promise<EventPage>

  /** Fails with `exists` when the key exists; the error contains the existing event. */
  create(key: EventKey, body: Buffer, options?: CreateOptions): Promise<StoredEvent>

  /**
   * Optimistic update: reads, changes, and writes if there was no other write in between; otherwise
   * it starts over from the new state. If there is no event and `change` writes nothing, it fails with
   * `missing`. Returns the new state; for a removed event, the last state with the version of the
   * delete. With a fence that no longer holds, it fails with `fenced`.
   */
  update(key: EventKey, change: Change, options?: UpdateOptions): Promise<StoredEvent>

  /**
   * Fails with `missing`. Returns the last state with the version of the delete. A damaged event is
   * deleted too: the guard gets, and the result is, an event that has only its name.
   */
  delete(key: EventKey, guard?: Guard, options?: DeleteOptions): Promise<StoredEvent>

  /**
   * Every change after `from`, in order, once, until the signal aborts; then it ends without an
   * error. Waits for a future version. Fails with `compacted` when the needed history is lost.
   */
  watch(scope: EventScope, options: WatchOptions): EventWatch

  /** The version of the newest state, which includes every write acknowledged before the call. */
  currentVersion(options: { readonly signal: AbortSignal }): Promise<Version>
}

/** The writing part of a storage. */
export type EventWrites = Pick<EventStorage, 'create' | 'update' | 'delete'>

/**
 * The reading part of a storage with many watchers, and with long lists that change little between
 * reads. Objects that are derived from events are read in the same way.
 */
export interface ReadStorage extends Pick<EventStorage, 'get' | 'list' | 'currentVersion'> {
  watch(scope: EventScope, options: WatchOptions): PulledWatch

  /**
   * Divides the list of the events by key at that version into runs, without reading the events.
   * Undefined when that state is not in memory. Absent where lists are short.
   */
  runs?(scope: EventScope, options: RunsOptions): RunsPage | undefined
}
