import { pause } from '../lib/abort.ts'
import type { Clock } from '../lib/clock.ts'
import { monotonicClock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { missing, OtherHistoryError, StorageError } from '../storage/errors.ts'
import {
  beginning,
  formatVersion,
  isAfter,
  revisionOf,
  type Version,
  versionOfState,
} from '../storage/resource-version.ts'
import type {
  Change,
  ConnectionNumber,
  EventKey,
  EventPage,
  EventScope,
  Guard,
  ListOptions,
  Newest,
  PulledWatch,
  ReadOptions,
  RegardedKind,
  RunsOptions,
  RunsPage,
  StoredEvent,
  Unreadable,
  WatchedStorage,
} from '../storage/storage.ts'
import { unreadable } from '../storage/stored-form.ts'
import { Behind } from './behind.ts'
import { Cursor } from './cursor.ts'
import { FanOut } from './fan-out.ts'
import type { FollowedStorage } from './followed-storage.ts'
import { defaultHistoryBounds, History, type HistoryBounds } from './history.ts'
import { defaultMemoryBounds, EventMemory, type MemoryBounds, type State } from './memory.ts'
import { orderKey } from './order-key.ts'
import { readPage } from './page.ts'
import { Reflector, wentBack } from './reflector.ts'
import { readRuns } from './runs.ts'
import { SharedQuestion } from './shared-question.ts'
import { throwIfAborted } from './turns.ts'

/** A read that memory cannot serve by then asks the store itself. */
const freshnessWaitMsMax = 3_000
/** While it is not known whether memory is of the store's history, the store is asked how far it is. */
const doubtIntervalMs = 500
/** For watchers to be told that they have to list again, before whoever runs this ends the process. */
const farewellMs = 250

export interface CachedStorageOptions {
  readonly inner: FollowedStorage
  readonly log: Log
  readonly clock?: Clock | undefined
  readonly memoryBounds?: MemoryBounds | undefined
  readonly historyBounds?: HistoryBounds | undefined
  /** Everything was read again, as it may be of another history than what was read before. */
  readonly onReread?: (() => void) | undefined
  /** Told how long each consistent read waited for memory, and whether memory served it. */
  readonly onConsistentRead?: ((waitedMs: number, isServed: boolean) => void) | undefined
}

/** For metrics. Counters count from the start. */
export interface CacheStats {
  readonly objects: number
  readonly bodyBytes: number
  readonly version: Version
  /** Earlier states that are kept for lists under way. */
  readonly statesKept: number
  readonly historyChanges: number
  readonly historyChangesMax: number
  readonly historyBytes: number
  readonly watchersWaiting: number
  readonly eventsReceived: number
  readonly eventsDispatched: number
  readonly initializations: number
  readonly revisionQuestions: number
  /** Steps of watchers that have fallen off the ring. */
  readonly stepsBehind: number
}

/**
 * The promise kept from memory: reads are answered here, as fresh as the store's own; writes go
 * straight through. Until `run` has read everything, and whenever it has to do so again, reads go
 * through as well, and watches wait.
 */
export class CachedStorage implements WatchedStorage {
  readonly #inner: FollowedStorage
  readonly #options: CachedStorageOptions
  readonly #clock: Clock
  readonly #memory: EventMemory
  readonly #history: History
  readonly #historyBounds: HistoryBounds
  readonly #fanOut: FanOut
  readonly #reflector: Reflector
  readonly #question: SharedQuestion<Newest>
  readonly #behind: Behind
  readonly #setBack = Promise.withResolvers<never>()

  constructor(options: CachedStorageOptions) {
    const { inner, log } = options
    this.#inner = inner
    this.#options = options
    this.#clock = options.clock ?? monotonicClock
    this.#historyBounds = options.historyBounds ?? defaultHistoryBounds
    this.#memory = new EventMemory(options.memoryBounds ?? defaultMemoryBounds, this.#clock)
    this.#history = new History(this.#historyBounds, beginning, this.#clock)
    this.#fanOut = new FanOut(this.#history, this.#clock)
    this.#reflector = new Reflector({
      source: inner,
      memory: this.#memory,
      history: this.#history,
      fanOut: this.#fanOut,
      clock: this.#clock,
      log,
      onReread: options.onReread,
    })
    this.#question = new SharedQuestion(async () => {
      const known = this.#memory.version
      // Shared by many, so that nobody's signal may end it; it ends by the store's own deadline.
      const { signal } = new AbortController()
      const newest = await inner.newest({ signal })
      if (isAfter(known, newest.version)) this.#setBack.reject(wentBack(known, newest.version))
      return newest
    })
    this.#behind = new Behind({
      store: inner,
      isSameHistory: (connection, signal) => this.#isVerified(connection, signal),
    })
    // Heard by whoever runs it; nobody may be there yet.
    this.#setBack.promise.catch(() => {})
  }

  /**
   * Keeps memory up until aborted. Rejects on a bug, and when the store has been set back to an
   * earlier state: versions will then be given out a second time, and nothing that is remembered
   * here, or by any client, can be trusted any more.
   */
  async run(signal: AbortSignal): Promise<void> {
    const timer = setInterval(() => this.#doubt(signal), doubtIntervalMs)
    timer.unref()
    try {
      await Promise.race([this.#reflector.run(signal), this.#setBack.promise])
    } catch (error) {
      this.#reflector.abandon()
      if (error instanceof OtherHistoryError) await pause(farewellMs, signal)
      throw error
    } finally {
      clearInterval(timer)
    }
  }

  /** Everything has been read and is being followed. */
  get hasSynced(): boolean {
    return this.#reflector.isCurrent
  }

  /**
   * What the store answers over connections up to this one is of the history that memory is of. 0 while
   * that is not known.
   */
  get verified(): ConnectionNumber {
    return this.#reflector.verified
  }

  /** Whether memory is of the history that this connection leads to; if not known, finds out. */
  isVerifiedFor(connection: ConnectionNumber): boolean {
    if (this.#isOf(connection)) return true
    this.#reflector.verify(connection)
    return false
  }

  /**
   * Resolves to whether memory is of the history that this connection leads to, as soon as that is
   * known; false when it is not by then.
   */
  isOfHistory(
    connection: ConnectionNumber,
    options: { readonly signal: AbortSignal; readonly waitMsMax: number },
  ): Promise<boolean> {
    if (this.isVerifiedFor(connection)) return Promise.resolve(true)
    return this.#reflector.progress.waitFor({ version: beginning, connection }, options)
  }

  /** Sees to it that `verified` reaches this connection, or that everything is read again. */
  verify(connection: ConnectionNumber): void {
    this.#reflector.verify(connection)
  }

  /** Resolves when that is so for the first time, or never will be. */
  get synced(): Promise<void> {
    return this.#reflector.synced
  }

  /** How long ago the follower last heard of the store. */
  get lagMs(): number {
    return this.#reflector.silentMs
  }

  /** How many events there are. */
  get count(): number {
    return this.#memory.count
  }

  /** Keys that are left out, as their values are not events. */
  get unreadable(): Iterable<Unreadable> {
    return this.#reflector.unreadable
  }

  /** Kinds that events have been about. */
  regardedKinds(): readonly RegardedKind[] {
    return this.#memory.kinds.list()
  }

  stats(): CacheStats {
    return {
      objects: this.#memory.count,
      bodyBytes: this.#memory.table.bodyBytes,
      version: this.#memory.version,
      statesKept: this.#memory.statesKept,
      historyChanges: this.#history.head - this.#history.tail,
      historyChangesMax: this.#historyBounds.changesMax,
      historyBytes: this.#history.bytes,
      watchersWaiting: this.#fanOut.waitingCount,
      eventsReceived: this.#reflector.received,
      eventsDispatched: this.#fanOut.dispatched,
      initializations: this.#reflector.initializations,
      revisionQuestions: this.#question.begun,
      stepsBehind: this.#behind.steps,
    }
  }

  /** What is believed to be there, which may be out of date. */
  recall(key: EventKey): StoredEvent | undefined {
    if (this.#reflector.verified === 0) return undefined
    return this.#found(key)
  }

  async get(key: EventKey, options: ReadOptions): Promise<StoredEvent> {
    if (!(await this.#isFresh(options))) return this.#inner.get(key, options)
    const stored = this.#found(key)
    if (stored !== undefined) return stored
    const other = this.#reflector.unreadableAt(key)
    throw other === undefined ? missing(key) : unreadable(key, other.fault)
  }

  async list(scope: EventScope, options: ListOptions): Promise<EventPage> {
    throwIfAborted(options.signal)
    const isPresent = options.at === undefined && (await this.#isFresh(options))
    // Looked at in the same breath as it is read: the present is good until the next change.
    const state = isPresent ? this.#memory.peek() : this.#stateAt(options)
    if (state === undefined) return this.#inner.list(scope, options)
    return readPage(this.#memory, state, { ...options, scope })
  }

  listRuns(scope: EventScope, options: RunsOptions): RunsPage | undefined {
    return readRuns(this.#memory, scope, options)
  }

  create(key: EventKey, body: Buffer): Promise<StoredEvent> {
    return this.#inner.create(key, body)
  }

  update(key: EventKey, change: Change): Promise<StoredEvent> {
    return this.#inner.update(key, change)
  }

  delete(key: EventKey, guard?: Guard): Promise<StoredEvent> {
    return this.#inner.delete(key, guard)
  }

  watch(
    scope: EventScope,
    options: { readonly from: Version; readonly signal: AbortSignal },
  ): PulledWatch {
    return new Cursor({
      ...options,
      scope,
      history: this.#history,
      fanOut: this.#fanOut,
      isOpen: () => this.#reflector.isCurrent,
      readBehind: (step) => this.#behind.read(step),
      askForProgress: () => this.#reflector.askForProgress(),
    })
  }

  async currentVersion(options: { readonly signal: AbortSignal }): Promise<Version> {
    return (await this.#question.ask(options.signal)).version
  }

  #found(key: EventKey): StoredEvent | undefined {
    const slot = this.#memory.find(orderKey(key))
    return slot === undefined ? undefined : this.#memory.table.read(slot)
  }

  /** Undefined when memory has not, or not any more, what was asked for. */
  #stateAt({ at, notOlderThan }: ListOptions): State | undefined {
    if (at === undefined) return undefined
    if (notOlderThan !== undefined && isAfter(notOlderThan, at)) return undefined
    const isPresent = versionOfState(revisionOf(at)) === this.#memory.version
    if (isPresent && this.#reflector.isCurrent) return this.#memory.peek()
    return this.#memory.keptAt(at)
  }

  /** Whether the present is fresh enough, now or soon. */
  async #isFresh(options: ReadOptions): Promise<boolean> {
    throwIfAborted(options.signal)
    const beganAtMs = this.#clock.now()
    const isFresh =
      this.#reflector.isCurrent && (await this.#becomesFresh(options)) && this.#reflector.isCurrent
    if (options.notOlderThan === undefined) {
      this.#options.onConsistentRead?.(this.#clock.now() - beganAtMs, isFresh)
    }
    return isFresh
  }

  async #becomesFresh(options: ReadOptions): Promise<boolean> {
    const { notOlderThan, signal } = options
    if (notOlderThan !== undefined && this.#has(notOlderThan)) return true
    const { version: newest, connection } = await this.#question.ask(signal)
    if (notOlderThan !== undefined && isAfter(notOlderThan, newest)) {
      throw new StorageError({
        kind: 'future',
        message: `version ${formatVersion(notOlderThan)} has not come to be`,
        version: newest,
      })
    }
    return this.#reaches({ version: notOlderThan ?? newest, connection }, signal)
  }

  /** Whether memory gets there, in the history that the connection leads to. */
  async #reaches(wanted: Newest, signal: AbortSignal): Promise<boolean> {
    const { version, connection } = wanted
    if (this.isVerifiedFor(connection) && this.#has(version)) return true
    return this.#reflector.progress.waitFor(wanted, { signal, waitMsMax: freshnessWaitMsMax })
  }

  #isVerified(connection: ConnectionNumber, signal: AbortSignal): Promise<boolean> {
    return this.isOfHistory(connection, { signal, waitMsMax: freshnessWaitMsMax })
  }

  #isOf(connection: ConnectionNumber): boolean {
    const { verified } = this.#reflector
    return verified > 0 && connection <= verified
  }

  /** A store that is behind what memory knows may never get to where it could be compared. */
  #doubt(signal: AbortSignal): void {
    if (!this.#reflector.isCurrent || this.#reflector.verified > 0) return
    this.#question.ask(signal).catch(() => {})
  }

  #has(version: Version): boolean {
    return this.#reflector.isCurrent && !isAfter(version, this.#memory.version)
  }
}
