import type { Labels } from '../api/compact-labels.ts'
import type { Pull } from '../lib/pull.ts'
import type { Version } from './resource-version.ts'

export interface EventKey {
  readonly namespace: string
  readonly name: string
}

/**
 * Connections to the store are numbered in the order in which they are made. A store that was restored
 * from a snapshot can only answer over connections that are made after that.
 */
export type ConnectionNumber = number

/** An event as one change left it. */
export interface StoredEvent {
  readonly key: EventKey
  /**
   * The events.k8s.io/v1 object as JSON, without its resourceVersion. Often a view into a larger
   * message: whoever keeps it copies it.
   */
  readonly body: Buffer
  /** Where in `body` the resourceVersion goes; see `served` in stored-form.ts. */
  readonly versionOffset: number
  /** Of the change that left it so. */
  readonly version: Version
  /** When that was, by the clock of the replica that wrote it. Lifetimes count from here. */
  readonly writtenAtMs: number
  /** Read out of `body` when first asked for. Throws `corrupt` when that is not the JSON it should be. */
  readonly fields: EventFields
}

/** Under one of our keys there is a value that is not an event. */
export interface Unreadable {
  readonly key: EventKey
  /** `foreign`: another program wrote it. `damaged`: we did, and it cannot be read. */
  readonly fault: 'foreign' | 'damaged'
  /** Of the change that left it so. */
  readonly version: Version
  /** 0 for a foreign one. */
  readonly writtenAtMs: number
}

/** What selectors and indexes look at. Absent strings are empty, as selectors see them. */
export interface EventFields {
  readonly uid: string
  readonly labels: Labels
  readonly reason: string
  readonly type: string
  readonly reportingController: string
  /** `deprecatedSource.component`, which the core/v1 view selects by. */
  readonly sourceComponent: string
  readonly regarding: Readonly<
    Record<
      'kind' | 'namespace' | 'name' | 'uid' | 'apiVersion' | 'resourceVersion' | 'fieldPath',
      string
    >
  >
}

/** A kind of objects that events are about. */
export interface RegardedKind {
  /** Empty for the group without a name. */
  readonly group: string
  readonly version: string
  readonly kind: string
}

/** Which events a list or a watch is about; `namespace` undefined means all of them. */
export interface EventScope {
  readonly namespace: string | undefined
}

/** A choice among events. */
export interface EventSelector {
  matches(stored: StoredEvent): boolean
  /**
   * Values that every match has, for implementations that keep indexes. Leaving some out, or all,
   * is never wrong; `matches` decides.
   */
  readonly requires?: {
    /** Of the event itself; finds it at once within one namespace. */
    readonly name?: string | undefined
    readonly regardingUid?: string | undefined
    readonly regarding?:
      | { readonly kind: string; readonly namespace: string; readonly name: string }
      | undefined
    readonly reason?: string | undefined
    readonly type?: string | undefined
    readonly reportingController?: string | undefined
  }
}

export interface ReadOptions {
  /**
   * A state with this version in it is fresh enough: `future` when there is none yet. With
   * `beginning` whatever is at hand will do. Undefined: the newest state, with every write in it
   * that had been answered when the call was made.
   */
  readonly notOlderThan?: Version | undefined
  readonly signal: AbortSignal
  /** Waits for a store that is known to be away, where others are refused at once. Default false. */
  readonly isPatient?: boolean | undefined
}

export interface ListOptions extends ReadOptions {
  /**
   * The state at this version and no other. Versions inside a transaction share the state after
   * the whole of it; the page says so by its own version.
   */
  readonly at?: Version | undefined
  /** Begin after this key. It need not exist. */
  readonly after?: EventKey | undefined
  /** At least 1. Whoever wants everything reads page after page at the version of the first. */
  readonly limit: number
  /** A page may end before the limit once its bodies take this much. */
  readonly bytesEnough?: number | undefined
  readonly selector?: EventSelector | undefined
}

export interface EventPage {
  /** In the order of the bytes of `namespace/name`. Fewer than the limit only at the end, or when bytes were enough. */
  readonly items: readonly StoredEvent[]
  /** Of the state this page was read from; the next page must be read `at` it. */
  readonly version: Version
  /** Whether the scope goes on after the last item. With a selector, what follows may not match. */
  readonly more: boolean
  /** How many events follow the last item; undefined with a selector. */
  readonly remaining: number | undefined
  /** What was left out between the items; nothing where memory is read, which has only events. */
  readonly unreadable?: readonly Unreadable[] | undefined
  /** The newest one that any of it came over, where it came from the store. */
  readonly connection?: ConnectionNumber | undefined
}

/**
 * Stands for some neighbouring events just as they are, versions included, and for nothing else ever.
 * One state after another has the same run until one of its events changes or goes, or another comes
 * between them.
 */
export interface EventRun {
  /** That has happened: only earlier states have it. */
  readonly isPast: boolean
}

/** A stretch of a list, not empty. */
export type ListPart =
  /** A run of which the reader has what it needs. */
  | { readonly known: Buffer; readonly count: number }
  | {
      readonly known?: undefined
      /** Undefined when these are not the whole of a run. */
      readonly run: EventRun | undefined
      readonly events: readonly StoredEvent[]
      readonly count: number
    }

export interface RunsOptions {
  /** As with a list. */
  readonly at: Version
  readonly after?: EventKey | undefined
  /** The page ends with the run in which it reaches this many. */
  readonly limit: number
  /** What the reader made of a run and kept; its events are then not read. */
  readonly recall: (run: EventRun) => Buffer | undefined
}

export interface RunsPage {
  /** In order, without gaps. */
  readonly parts: readonly ListPart[]
  /** Of the last event; undefined when there is none. */
  readonly last: EventKey | undefined
  readonly more: boolean
}

/** One change. `stored.version` is that of the change, for a delete too. */
export type WatchItem =
  | {
      readonly type: 'put'
      readonly stored: StoredEvent
      readonly previous: StoredEvent | undefined
    }
  /** `stored` is the last state under the version of the delete. */
  | { readonly type: 'delete'; readonly stored: StoredEvent }

/** A change for somebody who knows the state before it, and so need not be told. */
export type FollowItem =
  | { readonly type: 'put'; readonly stored: StoredEvent }
  | { readonly type: 'delete'; readonly key: EventKey; readonly version: Version }
  /** An event that was there is not there any more. */
  | {
      readonly type: 'unreadable'
      readonly key: EventKey
      readonly version: Version
      readonly value: Unreadable
    }

/** Whole transactions, in order, each change once. No items: only progress was made. */
export interface WatchBatch<Item = WatchItem> {
  readonly items: readonly Item[]
  /** Nothing up to here is owed any more: a watch may be resumed from it. Never goes back. */
  readonly version: Version
}

/** Begins when it is iterated, and can be iterated once. */
export interface EventWatch<Item = WatchItem> extends AsyncIterable<WatchBatch<Item>> {
  /**
   * Asks for a batch, possibly without items, that says how far the watch has come. None need come
   * while there is nothing after `from`.
   */
  requestProgress(): void
}

/** Of all events, from where a list left off; see src/etcd/protocol.ts. */
export interface FollowWatch extends EventWatch<FollowItem> {
  /** What comes over connections up to this one is of the history that was told. 0: not known now. */
  readonly verified: ConnectionNumber
  verify(connection: ConnectionNumber): void
}

/** The newest version, and over which connection that was learned. */
export interface Newest {
  readonly version: Version
  readonly connection: ConnectionNumber
}

/** One that can be taken from batch by batch instead, which begins it as well. */
export interface PulledWatch extends EventWatch, Pull<WatchBatch> {}

/**
 * What an update makes of an event; `current` is undefined when there is none. Must be repeatable:
 * it runs once per attempt, and the last run counts. Returning undefined, or `current.body` itself, means that nothing is to be
 * written, `remove` that the event is to go; what it throws comes out unchanged.
 */
export type Change = (current: StoredEvent | undefined) => Buffer | 'remove' | undefined

/** Sees the event about to go and throws to keep it. Must be repeatable as well. */
export type Guard = (current: StoredEvent) => void

/**
 * Where events live. Every implementation is held to this by the tests in test/contract. All
 * methods fail with a StorageError, or with what a `Change`, `Guard` or selector threw; none of them
 * knows of HTTP.
 *
 * Reads and watches end with their signal. Writes have none: once begun they run to their end,
 * which comes soon enough, and a caller who has gone away changes nothing about that.
 */
export interface EventStorage {
  /** Fails with `missing`. */
  get(key: EventKey, options: ReadOptions): Promise<StoredEvent>
  list(scope: EventScope, options: ListOptions): Promise<EventPage>

  /** Fails with `exists` when the key is taken; the error has the event that took it. */
  create(key: EventKey, body: Buffer): Promise<StoredEvent>

  /**
   * Reads, changes, writes if nobody wrote in between, else starts over from what is there now.
   * Where there is no event, a `change` that wants nothing written fails with `missing`. Answers
   * what it left; of an event that it removed, the last state under the version of the delete.
   */
  update(key: EventKey, change: Change): Promise<StoredEvent>

  /**
   * Fails with `missing`. Answers the last state, under the version of the delete. A damaged event
   * is deleted too: the guard sees, and the answer is, one that has no more than its name.
   */
  delete(key: EventKey, guard?: Guard): Promise<StoredEvent>

  /**
   * Every change after `from`, in order, once, until the signal aborts; then it ends without an
   * error. A version of the future is waited for. Fails with `compacted` when what is owed is gone.
   */
  watch(
    scope: EventScope,
    options: { readonly from: Version; readonly signal: AbortSignal },
  ): EventWatch

  /** Of the newest state: every write answered before the call is in it. */
  currentVersion(options: { readonly signal: AbortSignal }): Promise<Version>
}

/** One whose watchers are many, and its long lists often the same. */
export interface WatchedStorage extends EventStorage {
  /**
   * The same events as `list` at that version, run by run, for readers who keep what they make of
   * them. Undefined when that state is not at hand in runs; `list` knows.
   */
  listRuns(scope: EventScope, options: RunsOptions): RunsPage | undefined

  watch(
    scope: EventScope,
    options: { readonly from: Version; readonly signal: AbortSignal },
  ): PulledWatch
}
