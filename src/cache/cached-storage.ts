import type { KnownOwners } from '../incidents/known-owners.ts'
import { marksOf } from '../incidents/marks.ts'
import { pause } from '../lib/abort.ts'
import { type Clock, monotonicClock } from '../lib/clock.ts'
import type { Log } from '../lib/log/log.ts'
import { RunQueue } from '../lib/run-queue.ts'
import { throwIfAborted } from '../storage/aborted-read.ts'
import { missing, OtherHistoryError } from '../storage/errors.ts'
import type { RegardedKind } from '../storage/event-fields.ts'
import {
  beginning,
  isAfter,
  revisionOf,
  type Version,
  versionOfState,
} from '../storage/resource-version.ts'
import type {
  ConnectionNumber,
  EventKey,
  EventPage,
  EventScope,
  KnownEvent,
  ListOptions,
  MarksOf,
  PulledWatch,
  ReadOptions,
  ReadStorage,
  RunsOptions,
  RunsPage,
  StoredEvent,
  Unreadable,
  WatchOptions,
} from '../storage/storage.ts'
import { unreadable } from '../storage/stored-form.ts'
import type { StoredSizes } from '../storage/stored-sizes.ts'
import type { CacheStats } from './cache-stats.ts'
import type { FollowedStorage } from './followed-storage.ts'
import { Freshness } from './freshness.ts'
import { EVENT_OVERHEAD_BYTES, NAMESPACE_OVERHEAD_BYTES } from './memory/event-overhead.ts'
import { defaultMemoryBounds, EventMemory, type MemoryBounds, type State } from './memory/memory.ts'
import { orderKey } from './memory/order-key.ts'
import { NamespaceLog } from './namespace-log.ts'
import { NamespaceStorage } from './namespace-storage.ts'
import { countIn, readPage } from './read/page.ts'
import { nodeOfPod } from './read/pod-node.ts'
import { runsOf } from './read/runs.ts'
import { SeenTimes } from './read/seen-times.ts'
import { Reflector, type ReflectorOptions } from './reflector.ts'
import { SummaryStorage } from './summary/summary-storage.ts'
import { CatchUpReader } from './watch/catch-up-reader.ts'
import { Cursor } from './watch/cursor.ts'
import { FanOut } from './watch/fan-out.ts'
import { defaultHistoryBounds, History, type HistoryBounds } from './watch/history.ts'

/** How often the store's version is read while memory is not verified to be in its history. */
const unverifiedCheckEveryMs = 500
/** Gives watches time to end with `compacted`, so that clients list again, before `run` rejects. */
const watchersEndMs = 250

export interface CachedStorageOptions
  extends Pick<ReflectorOptions, 'onLoaded' | 'onReread' | 'onWritten'> {
  readonly inner: FollowedStorage
  readonly log: Log
  readonly clock?: Clock | undefined
  /** Default: a new one. */
  readonly runQueue?: RunQueue | undefined
  readonly memoryBounds?: MemoryBounds | undefined
  readonly historyBounds?: HistoryBounds | undefined
  /** Limit of the events' memory at the first load. Default: none. */
  readonly loadBytesMax?: number | undefined
  /** Called with how long each consistent read waited for memory, and whether memory served it. */
  readonly onConsistentRead?: ((waitedMs: number, isServed: boolean) => void) | undefined
}

/**
 * Implements the reading part of the storage contract with a cache: reads are served from memory and
 * are as fresh as the store's own. Until `run` has loaded everything, and during each reload, reads
 * go to the store, and watches wait.
 */
export class CachedStorage implements ReadStorage {
  /** The namespaces that have events, as objects. */
  readonly namespaces: NamespaceStorage
  /** Stored counts and bytes; undefined while memory is not verified. */
  readonly sizes: StoredSizes
  /** When the oldest and the newest event of a scope were last seen. */
  readonly oldest: SeenTimes
  readonly newest: SeenTimes
  /** Events counted by group and by time. */
  readonly summaries: SummaryStorage
  readonly #inner: FollowedStorage
  readonly #memory: EventMemory
  readonly #history: History
  readonly #historyBounds: HistoryBounds
  readonly #fanOut: FanOut
  readonly #reflector: Reflector
  readonly #freshness: Freshness
  readonly #catchUpReader: CatchUpReader
  readonly #storeWentBack = Promise.withResolvers<never>()

  constructor(options: CachedStorageOptions) {
    const { inner, log, clock = monotonicClock, runQueue = new RunQueue() } = options
    this.#inner = inner
    this.#historyBounds = options.historyBounds ?? defaultHistoryBounds
    this.#memory = new EventMemory(options.memoryBounds ?? defaultMemoryBounds, clock)
    this.#history = new History(this.#historyBounds, beginning, clock)
    const watches = runQueue.serverLane('watches')
    this.#fanOut = new FanOut(this.#history, clock, watches)
    const namespaceLog = new NamespaceLog(clock, watches)
    this.#reflector = new Reflector({
      source: inner,
      memory: this.#memory,
      history: this.#history,
      fanOut: this.#fanOut,
      namespaceLog,
      clock,
      log,
      lane: runQueue.serverLane('cache'),
      onLoaded: options.onLoaded,
      onReread: options.onReread,
      onWritten: options.onWritten,
      loadBytesMax: options.loadBytesMax,
    })
    this.#freshness = new Freshness({
      source: inner,
      memory: this.#memory,
      reflector: this.#reflector,
      clock,
      onConsistentRead: options.onConsistentRead,
      onWentBack: (error) => this.#storeWentBack.reject(error),
    })
    this.#catchUpReader = new CatchUpReader({
      history: this.#history,
      store: inner,
      lane: watches,
      isSameHistory: (connection, signal) => this.#freshness.isOfHistory(connection, { signal }),
    })
    const read = {
      memory: this.#memory,
      freshness: this.#freshness,
      reflector: this.#reflector,
    }
    this.namespaces = new NamespaceStorage({ ...read, log: namespaceLog })
    this.summaries = new SummaryStorage(read)
    const isLoaded = () => this.verified !== 0
    const seen = { memory: this.#memory, clock, isLoaded }
    this.oldest = new SeenTimes({ ...seen, order: 'oldest' })
    this.newest = new SeenTimes({ ...seen, order: 'newest', wallTime: Date.now })
    this.sizes = this.#memory.namespaces.sizesWhile(isLoaded)
    // `run` handles the rejection, but may not have been called yet.
    this.#storeWentBack.promise.catch(() => {})
  }

  /**
   * Follows the store until aborted. Rejects on a bug, and when the store has been restored to
   * an earlier state: it will then assign versions a second time, and nothing in memory or in any
   * client can be trusted any more.
   */
  async run(signal: AbortSignal): Promise<void> {
    const check = () => this.#freshness.checkUnverified(signal)
    const timer = setInterval(check, unverifiedCheckEveryMs)
    timer.unref()
    try {
      await Promise.race([this.#reflector.run(signal), this.#storeWentBack.promise])
    } catch (error) {
      this.#reflector.abandon()
      if (error instanceof OtherHistoryError) await pause(watchersEndMs, signal)
      throw error
    } finally {
      clearInterval(timer)
    }
  }

  /** Everything has been loaded and is being followed. */
  get hasSynced(): boolean {
    return this.#reflector.isCurrent
  }

  /** Connections up to this one lead to the history that memory belongs to. 0 while unknown. */
  get verified(): ConnectionNumber {
    return this.#reflector.verified
  }

  /**
   * Whether this connection is known to lead to the history that memory belongs to. If not, starts
   * to verify it.
   */
  isVerifiedFor(connection: ConnectionNumber): boolean {
    return this.#freshness.isVerifiedFor(connection)
  }

  /**
   * Resolves to true as soon as this connection is verified to lead to the history that memory
   * belongs to, and to false if it is not within `waitMsMax`.
   */
  isOfHistory(
    connection: ConnectionNumber,
    options: { readonly signal: AbortSignal; readonly waitMsMax: number },
  ): Promise<boolean> {
    return this.#freshness.isOfHistory(connection, options)
  }

  /** Makes sure that `verified` reaches this connection, or that everything is loaded again. */
  verify(connection: ConnectionNumber): void {
    this.#reflector.verify(connection)
  }

  /** Resolves when `hasSynced` is true for the first time, or when `run` ends. */
  get synced(): Promise<void> {
    return this.#reflector.synced
  }

  /** Resolves when all events have been read for the first time, or when `run` ends. */
  get listed(): Promise<void> {
    return this.#reflector.listed
  }

  /** Set while memory is not filled because the events would exceed their limit. */
  get excess(): { readonly bytes: number; readonly bytesMax: number } | undefined {
    return this.#reflector.excess
  }

  /** Time since the last message of the store. */
  get lagMs(): number {
    return this.#reflector.silentMs
  }

  /** Number of events in memory. */
  get count(): number {
    return this.#memory.count
  }

  /** What the events take in memory, or would if memory could hold them. */
  get eventBytes(): number {
    if (this.excess !== undefined) return this.excess.bytes
    const { count, table, namespaces } = this.#memory
    return (
      table.bodyBytes + count * EVENT_OVERHEAD_BYTES + namespaces.count * NAMESPACE_OVERHEAD_BYTES
    )
  }

  countIn(scope: EventScope): number {
    return countIn(this.#memory, scope)
  }

  /** The number of events by cluster, for clusters that have events. */
  eventsByCluster(): Iterable<readonly [cluster: string, events: number]> {
    return this.#memory.namespaces.events()
  }

  /** Keys that are absent from memory because their values are not events. */
  get unreadable(): Iterable<Unreadable> {
    return this.#reflector.unreadable
  }

  /** The kinds of the objects that the events of a cluster are about. */
  regardedKinds(cluster: string): readonly RegardedKind[] {
    return this.#memory.kinds.list(cluster)
  }

  stats(): CacheStats {
    return {
      objects: this.#memory.count,
      bodyBytes: this.eventBytes,
      version: this.#memory.version,
      statesKept: this.#memory.statesKept,
      historyChanges: this.#history.head - this.#history.tail,
      historyChangesMax: this.#historyBounds.changesMax,
      historyBytes: this.#history.bytes,
      watchersWaiting: this.#fanOut.waitingCount,
      eventsReceived: this.#reflector.received,
      eventsDispatched: this.#fanOut.dispatched,
      initializations: this.#reflector.initializations,
      revisionReads: this.#freshness.revisionReads,
      catchUpSteps: this.#catchUpReader.steps,
    }
  }

  /**
   * The event as memory has it, which may be out of date; undefined while memory is not verified.
   */
  recall(key: EventKey): StoredEvent | undefined {
    if (this.#reflector.verified === 0) return undefined
    return this.#found(key)
  }

  /** The same for writers, whose writes depend on it. */
  known(key: EventKey): KnownEvent | undefined {
    const stored = this.recall(key)
    return stored && { stored, connectionMax: this.verified }
  }

  /** Which controller owns which object, by the events in memory and by owner references. */
  get owners(): KnownOwners {
    return this.#memory.owners
  }

  /** What the events in memory say about the object of another one. */
  readonly marksOf: MarksOf = (cluster, event) =>
    marksOf(cluster, event, {
      owners: this.#memory.owners,
      nodeOfPod: (home, pod) => nodeOfPod(this.#memory, home, pod),
    })

  async get(key: EventKey, options: ReadOptions): Promise<StoredEvent> {
    if (!(await this.#freshness.isFresh(options))) return this.#inner.get(key, options)
    const stored = this.#found(key)
    if (stored !== undefined) return stored
    const other = this.#reflector.unreadableAt(key)
    throw other === undefined ? missing(key) : unreadable(key, other.fault)
  }

  async list(scope: EventScope, options: ListOptions): Promise<EventPage> {
    const { signal, lane } = options
    throwIfAborted(signal)
    let isPresent = options.at === undefined && (await this.#freshness.isFresh(options))
    // Entered after the wait: reads that waited for the same version would all begin in one turn.
    const entered = lane.enter(signal)
    if (entered !== undefined) {
      const notOlderThan = this.#memory.version
      await entered
      throwIfAborted(signal)
      // All events may be loaded again by now.
      isPresent &&= await this.#freshness.isFresh({ ...options, notOlderThan })
    }
    // Peek and first read happen in the same tick: a peeked state is valid until the next change.
    const state = isPresent ? this.#memory.peek() : this.#stateAt(options)
    if (state === undefined) return this.#inner.list(scope, options)
    return readPage(this.#memory, state, { ...options, scope })
  }

  runs(scope: EventScope, options: RunsOptions): RunsPage | undefined {
    return runsOf(this.#memory, scope, options)
  }

  watch(scope: EventScope, options: WatchOptions): PulledWatch {
    return new Cursor({
      ...options,
      scope,
      history: this.#history,
      fanOut: this.#fanOut,
      isCurrent: () => this.#reflector.isCurrent,
      catchUp: (step) => this.#catchUpReader.read(step),
      requestProgress: () => this.#reflector.requestProgress(),
    })
  }

  currentVersion(options: { readonly signal: AbortSignal }): Promise<Version> {
    return this.#freshness.currentVersion(options.signal)
  }

  #found(key: EventKey): StoredEvent | undefined {
    const slot = this.#memory.find(orderKey(key))
    return slot === undefined ? undefined : this.#memory.table.read(slot)
  }

  /** Undefined when memory does not have the requested state, or no longer has it. */
  #stateAt({ at, notOlderThan, isReadOnce }: ListOptions): State | undefined {
    if (at === undefined) return undefined
    if (notOlderThan !== undefined && isAfter(notOlderThan, at)) return undefined
    const isPresent = versionOfState(revisionOf(at)) === this.#memory.version
    if (isPresent && this.#reflector.isCurrent) return this.#memory.peek()
    return this.#memory.snapshotAt(at, { isReadOnce })
  }
}
