/**
 * Keeps memory and history in step with the store: loads everything once, then follows every change
 * after that.
 *
 * Following survives failures: it resumes after the last version it has. Only when the store says
 * that the changes after that version are gone, or cannot prove that its changes continue the same
 * history, does the reflector load everything again. During a reload memory is a mixture of two
 * states and `isCurrent` is false: no read may be served from the present state then. Pinned states
 * and delivered changes from before the reload may belong to another history and are not used
 * again.
 *
 * `verified` says whether memory and the store are in the same history. It is 0 from each break of
 * the watch until the next stream has proven that it continues where the last one ended.
 */
import { pause } from '../lib/abort.ts'
import { Backoff } from '../lib/backoff.ts'
import type { Clock } from '../lib/clock.ts'
import { Latch } from '../lib/latch.ts'
import type { Log } from '../lib/log/log.ts'
import type { Lane, Slices } from '../lib/run-queue.ts'
import { StorageError } from '../storage/errors.ts'
import { pathOf } from '../storage/event-scope.ts'
import { revisionOf, type Version, versionOfState } from '../storage/resource-version.ts'
import type {
  ConnectionNumber,
  EventKey,
  FollowItem,
  FollowWatch,
  StoredEvent,
  Unreadable,
  WatchItem,
} from '../storage/storage.ts'
import { StoredBody, withVersion } from '../storage/stored-form.ts'
import { NO_TRAILER } from '../storage/trailer.ts'
import type { FollowedStorage } from './followed-storage.ts'
import type { EventMemory } from './memory/memory.ts'
import { EventsExceedMemory, loadMemory } from './memory-loader.ts'
import type { NamespaceLog } from './namespace-log.ts'
import { Progress } from './progress.ts'
import type { FanOut } from './watch/fan-out.ts'
import type { History } from './watch/history.ts'

const retryFirstMs = 100
const retryMostMs = 5_000
/** Events that exceed memory are read again after this many times as long as reading them took. */
const excessPauseFactor = 2
const excessPauseMsMin = 5_000
const excessPauseMsMax = 60_000
const MIB = 1024 * 1024

export interface ReflectorOptions {
  readonly source: FollowedStorage
  readonly memory: EventMemory
  readonly history: History
  readonly fanOut: FanOut
  readonly namespaceLog: NamespaceLog
  /** Limit of the events' memory at the first load. Default: none. */
  readonly loadBytesMax?: number | undefined
  readonly clock: Clock
  readonly log: Log
  /** Loading and following use its time. */
  readonly lane: Lane
  /** Called after each load, with how long it took. */
  readonly onLoaded?: ((tookMs: number) => void) | undefined
  /** Called after each reload: the new state may belong to another history than the old one. */
  readonly onReread?: (() => void) | undefined
  /**
   * Called with each event that is created or updated, by any replica, and when that arrived by the
   * clock; not with events that are loaded.
   */
  readonly onWritten?: ((stored: StoredEvent, atMs: number) => void) | undefined
}

export class Reflector {
  readonly progress: Progress = new Progress(() => this.requestProgress())
  readonly #options: ReflectorOptions
  readonly #backoff = new Backoff({ firstMs: retryFirstMs, mostMs: retryMostMs })
  readonly #everSynced = new Latch()
  readonly #everListed = new Latch()
  #excess: EventsExceedMemory | undefined
  #isCurrent = false
  #watch: FollowWatch | undefined
  /** The newest connection when memory was last loaded. */
  #loadedAt: ConnectionNumber = 0
  #receivedAtMs = Number.NEGATIVE_INFINITY
  #initializations = 0
  #received = 0
  /** Keys whose values are not events, by path. Usually empty. */
  #unreadable = new Map<string, Unreadable>()

  constructor(options: ReflectorOptions) {
    this.#options = options
  }

  /** Memory is a state of the store and follows its changes. */
  get isCurrent(): boolean {
    return this.#isCurrent
  }

  /** Connections up to this one lead to the history that memory belongs to. */
  get verified(): ConnectionNumber {
    return this.#isCurrent ? (this.#watch?.verified ?? 0) : 0
  }

  /** Makes sure that `verified` reaches this connection, or that everything is loaded again. */
  verify(connection: ConnectionNumber): void {
    this.#watch?.verify(connection)
  }

  /** Resolves when memory is current for the first time, or when `run` ends. */
  get synced(): Promise<void> {
    return this.#everSynced.opened
  }

  /** Resolves when all events have been read for the first time, or when `run` ends. */
  get listed(): Promise<void> {
    return this.#everListed.opened
  }

  /** Set while memory is not filled because the events would exceed their limit. */
  get excess(): EventsExceedMemory | undefined {
    return this.#excess
  }

  /**
   * Time since the last message of the store. The watch requests progress after a second of
   * silence.
   */
  get silentMs(): number {
    return this.#options.clock.now() - this.#receivedAtMs
  }

  /** Number of loads, the first one included. */
  get initializations(): number {
    return this.#initializations
  }

  /** Number of changes received while following. */
  get received(): number {
    return this.#received
  }

  /** Keys that are not in memory because their values are not events. */
  get unreadable(): Iterable<Unreadable> {
    return this.#unreadable.values()
  }

  unreadableAt(key: EventKey): Unreadable | undefined {
    return this.#unreadable.size === 0 ? undefined : this.#unreadable.get(pathOf(key))
  }

  /**
   * The store is in another history: memory is no longer read, and watches end with `compacted`, so
   * that clients list again instead of continuing in the other history.
   */
  abandon(): void {
    const { memory, history, fanOut, namespaceLog } = this.#options
    this.#lose()
    memory.forgetStates()
    history.restart(history.version)
    fanOut.restarted()
    namespaceLog.restarted(history.version)
  }

  requestProgress(): void {
    this.#watch?.requestProgress()
  }

  /** Runs until aborted. Waits while the store is down; rejects on a bug only. */
  async run(signal: AbortSignal): Promise<void> {
    const { log } = this.#options
    try {
      while (!signal.aborted) {
        try {
          if (await this.#loadIfPossible(signal)) await this.#follow(signal)
        } catch (error) {
          if (signal.aborted) break
          if (!(error instanceof StorageError)) throw error
          if (error.kind === 'compacted') this.#lose()
          const fields = { err: error, isCurrent: this.isCurrent }
          log.warn('Reading events from etcd was interrupted; will retry', fields)
          await pause(this.#backoff.next(), signal)
        }
      }
    } finally {
      this.#lose()
      this.#everListed.open()
      this.#everSynced.open()
    }
  }

  /** Returns whether memory is current; false, after a pause, when the events exceed it. */
  async #loadIfPossible(signal: AbortSignal): Promise<boolean> {
    if (this.isCurrent) return true
    const { clock, log } = this.#options
    const beganAtMs = clock.now()
    try {
      await this.#load(signal)
      this.#excess = undefined
      return true
    } catch (error) {
      if (!(error instanceof EventsExceedMemory)) throw error
      this.#excess = error
      this.#everListed.open()
      const [eventsMib, partMib] = [error.bytes, error.bytesMax].map((n) => Math.round(n / MIB))
      log.error('The events in etcd take more than their part of the memory limit: not ready', {
        eventsMib,
        partMib,
        help: 'delete events (kubectl delete events --all -n NAMESPACE), shorten their lifetimes, or raise the memory limit; expired events are still deleted, and the replica is ready once the events fit',
      })
      const tookMs = clock.now() - beganAtMs
      const pauseMs = Math.max(excessPauseMsMin, tookMs * excessPauseFactor)
      await pause(Math.min(excessPauseMsMax, pauseMs), signal)
      return false
    }
  }

  #lose(): void {
    this.#isCurrent = false
    this.progress.giveUp()
  }

  async #load(signal: AbortSignal): Promise<void> {
    const { source, memory, history, fanOut, namespaceLog, clock, log, lane, onReread } =
      this.#options
    const beganAtMs = clock.now()
    // A reload is not bounded: memory holds about as much already.
    const isFirst = this.#initializations === 0
    const bytesMax = (isFirst ? this.#options.loadBytesMax : undefined) ?? Number.POSITIVE_INFINITY
    const loading = loadMemory(source, memory, { lane, signal, bytesMax })
    const { version, connectionMax, unreadable } = await loading
    this.#loadedAt = connectionMax
    memory.reach(version)
    history.restart(version)
    this.#unreadable = unreadable
    if (this.#initializations++ > 0) onReread?.()
    this.#noteReceived()
    this.#isCurrent = true
    this.#everListed.open()
    this.#everSynced.open()
    fanOut.restarted()
    namespaceLog.restarted(version)
    const tookMs = clock.now() - beganAtMs
    this.#options.onLoaded?.(tookMs)
    const seconds = Math.round(tookMs) / 1000
    const fields = { count: memory.count, seconds, revision: revisionOf(version) }
    log.info('Loaded all events into memory, watching etcd for changes', fields)
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const { source, memory } = this.#options
    const connectionMax = this.#loadedAt
    const failed = new AbortController()
    const ending = AbortSignal.any([signal, failed.signal])
    const watch = source.follow({ from: memory.version, signal: ending, connectionMax })
    this.#watch = watch
    this.#mark(watch, signal).catch((error) => failed.abort(error))
    if (this.progress.waiting > 0) watch.requestProgress()
    try {
      for await (const { items, version } of watch) {
        this.#backoff.reset()
        this.#noteReceived()
        // Opened for each batch, since the wait for the next one takes no CPU time.
        using slices = this.#options.lane.slices({ signal })
        await this.#apply(items, slices)
        this.#reach([], version)
      }
      failed.signal.throwIfAborted()
    } finally {
      this.#watch = undefined
    }
  }

  /** A quiet store needs a mark by which its history is recognised after a break. */
  async #mark(watch: FollowWatch, signal: AbortSignal): Promise<void> {
    const { source, log } = this.#options
    const backoff = new Backoff({ firstMs: retryFirstMs, mostMs: retryMostMs })
    while (this.#watch === watch && !signal.aborted) {
      try {
        await source.mark()
        return
      } catch (err) {
        if (!(err instanceof StorageError)) throw err
        // Expected until the prefix check has passed, and while etcd is full.
        log.v(2, 'Could not write the history mark to etcd; will retry', { err })
      }
      await pause(backoff.next(), signal)
    }
  }

  /** Applies whole transactions: a read between two slices never sees part of one. */
  async #apply(items: readonly FollowItem[], slices: Slices): Promise<void> {
    let changes: WatchItem[] = []
    for (const [index, item] of items.entries()) {
      const change = this.#change(item)
      if (change !== undefined) changes.push(change)
      const revision = revisionOf(versionOf(item))
      const next = items[index + 1]
      if (next !== undefined && revisionOf(versionOf(next)) === revision) continue
      this.#reach(changes, versionOfState(revision))
      changes = []
      if (slices.isOver()) await slices.next()
    }
  }

  /** Applies the change to memory; returns undefined when there was nothing to delete. */
  #change(item: FollowItem): WatchItem | undefined {
    const { memory } = this.#options
    this.#received++
    this.#noteUnreadable(item)
    if (item.type === 'put') {
      const { stored } = item
      const previous = memory.put(stored)
      this.#options.onWritten?.(stored, this.#receivedAtMs)
      // The history drops the parsed fields, which take most of the space: memory has indexed them
      // already, and selectors parse them again.
      const withoutFields = withVersion(stored, stored.version)
      return { type: 'put', stored: withoutFields, previous: previous && copied(previous) }
    }
    const last = memory.delete(item.key, item.version)
    return last && { type: 'delete', stored: withVersion(copied(last), item.version) }
  }

  #noteUnreadable(item: FollowItem): void {
    if (item.type === 'unreadable') this.#unreadable.set(pathOf(item.key), item.value)
    else if (this.#unreadable.size > 0) {
      this.#unreadable.delete(pathOf(item.type === 'put' ? item.stored.key : item.key))
    }
  }

  #reach(changes: readonly WatchItem[], version: Version): void {
    const { memory, history, fanOut, namespaceLog } = this.#options
    memory.reach(version)
    history.append(changes, version)
    fanOut.changed()
    namespaceLog.reached(memory.namespaces.takeChanges(), version)
    this.progress.reached(version, this.verified)
  }

  #noteReceived(): void {
    this.#receivedAtMs = this.#options.clock.now()
  }
}

function versionOf(item: FollowItem): Version {
  return item.type === 'put' ? item.stored.version : item.version
}

/** A copy of the bytes: the history would otherwise keep the whole slab alive. */
function copied(stored: StoredEvent): StoredEvent {
  const { key, versionOffset, version, writtenAtMs } = stored
  const body = Buffer.from(stored.body)
  const trailer = Buffer.from(stored.trailer ?? NO_TRAILER)
  return new StoredBody({ key, body, trailer, versionOffset, version, writtenAtMs })
}
