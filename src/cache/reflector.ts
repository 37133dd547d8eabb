/**
 * Keeps memory and history up with the store: reads everything once, page by page at one version,
 * then follows every change after it.
 *
 * Following survives failures: it goes on from the last version it has. Only when the store says
 * that what comes next is gone, or cannot say whether it is what comes next, does it read everything
 * again, and makes of what it has what it finds. In between memory is a mixture of two states, and
 * `isCurrent` is false: nobody may read the present from it then. What was kept and told before may be
 * of another history and is not used again.
 *
 * `verified` says whether memory and the store are of the same history. It is 0 from each break of the
 * watch until the next stream has proven that it goes on where the last one ended.
 */
import { pause } from '../lib/abort.ts'
import { Backoff } from '../lib/backoff.ts'
import type { Clock } from '../lib/clock.ts'
import { Latch } from '../lib/latch.ts'
import type { Log } from '../lib/log.ts'
import { OtherHistoryError, StorageError } from '../storage/errors.ts'
import { isAfter, revisionOf, type Version, versionOfState } from '../storage/resource-version.ts'
import type {
  ConnectionNumber,
  EventKey,
  EventPage,
  FollowItem,
  FollowWatch,
  StoredEvent,
  Unreadable,
  WatchItem,
} from '../storage/storage.ts'
import { StoredBody, withVersion } from '../storage/stored-form.ts'
import type { FanOut } from './fan-out.ts'
import type { FollowedStorage } from './followed-storage.ts'
import type { History } from './history.ts'
import type { EventMemory } from './memory.ts'
import { orderKey, viewOf } from './order-key.ts'
import { Progress } from './progress.ts'
import { Turns } from './turns.ts'

/** Two megabytes: etcd walks over all keys for each page, so small ones cost it dearly. */
const pageSize = 2_000
/** Large events come in smaller pages: two of them are in memory at a time. */
const pageBytes = 4 * 1024 * 1024
const retryFirstMs = 100
const retryMostMs = 5_000

export interface ReflectorOptions {
  readonly source: FollowedStorage
  readonly memory: EventMemory
  readonly history: History
  readonly fanOut: FanOut
  readonly clock: Clock
  readonly log: Log
  /** Everything was read again, as it may be of another history than what was read before. */
  readonly onReread?: (() => void) | undefined
}

export class Reflector {
  readonly progress: Progress = new Progress(() => this.askForProgress())
  readonly #options: ReflectorOptions
  readonly #backoff = new Backoff({ firstMs: retryFirstMs, mostMs: retryMostMs })
  readonly #everSynced = new Latch()
  #isCurrent = false
  #watch: FollowWatch | undefined
  /** The newest connection when memory was last read. */
  #loadedAt: ConnectionNumber = 0
  #heardAtMs = Number.NEGATIVE_INFINITY
  #initializations = 0
  #received = 0
  /** Keys whose values are not events, by namespace and name. Mostly there are none. */
  #unreadable = new Map<string, Unreadable>()

  constructor(options: ReflectorOptions) {
    this.#options = options
  }

  /** Memory is a state of the store, and is being kept up with it. */
  get isCurrent(): boolean {
    return this.#isCurrent
  }

  /** What comes over connections up to this one is of the history that memory is of. */
  get verified(): ConnectionNumber {
    return this.#isCurrent ? (this.#watch?.verified ?? 0) : 0
  }

  /** Sees to it that `verified` reaches this connection, or that everything is read again. */
  verify(connection: ConnectionNumber): void {
    this.#watch?.verify(connection)
  }

  /** Resolves when that is so for the first time, or never will be. */
  get synced(): Promise<void> {
    return this.#everSynced.opened
  }

  /** How long ago the store last said how far it is. The watch asks after a second of silence. */
  get silentMs(): number {
    return this.#options.clock.now() - this.#heardAtMs
  }

  /** How often everything was read. */
  get initializations(): number {
    return this.#initializations
  }

  /** Changes taken in while following. */
  get received(): number {
    return this.#received
  }

  /** What is left out of memory, as it is not an event. */
  get unreadable(): Iterable<Unreadable> {
    return this.#unreadable.values()
  }

  unreadableAt(key: EventKey): Unreadable | undefined {
    return this.#unreadable.size === 0 ? undefined : this.#unreadable.get(pathOf(key))
  }

  /**
   * The store is in another history: memory is not read any more, and watches end with `compacted`, so
   * that clients list again instead of going on in the other history.
   */
  abandon(): void {
    const { memory, history, fanOut } = this.#options
    this.#lose()
    memory.forgetStates()
    history.restart(history.version)
    fanOut.restarted()
  }

  askForProgress(): void {
    this.#watch?.requestProgress()
  }

  /** Runs until aborted. Rejects on a bug only: a store that is down is waited for. */
  async run(signal: AbortSignal): Promise<void> {
    const { log } = this.#options
    try {
      while (!signal.aborted) {
        try {
          if (!this.isCurrent) await this.#load(signal)
          await this.#follow(signal)
        } catch (error) {
          if (signal.aborted) break
          if (!(error instanceof StorageError)) throw error
          if (error.kind === 'compacted') this.#lose()
          log.warn('Following events was interrupted', { err: error, isCurrent: this.isCurrent })
          await pause(this.#backoff.next(), signal)
        }
      }
    } finally {
      this.#lose()
      this.#everSynced.open()
    }
  }

  #lose(): void {
    this.#isCurrent = false
    this.progress.giveUp()
  }

  async #load(signal: AbortSignal): Promise<void> {
    const { source, memory, history, fanOut, clock, log } = this.#options
    const beganAtMs = clock.now()
    const connectionMax = await source.connected(signal)
    memory.forgetStates()
    const scope = { namespace: undefined }
    const common = { limit: pageSize, bytesEnough: pageBytes, signal, isPatient: true }
    let next = source.list(scope, common)
    const isFirst = memory.count === 0
    let after: Buffer = Buffer.alloc(0)
    const unreadable = new Map<string, Unreadable>()
    using turns = new Turns()
    for (;;) {
      const page = await next
      if (page.connection > connectionMax) throw interrupted()
      turns.begin()
      const last = page.items.at(-1)?.key
      const { more, version } = page
      // The next page is on its way while this one is taken in.
      if (more) {
        next = source.list(scope, { ...common, at: version, after: last })
        // Handled where it is awaited, which an error in between would keep us from.
        next.catch(() => {})
      }
      for (const value of page.unreadable ?? []) unreadable.set(pathOf(value.key), value)
      if (isFirst) await this.#add(page, turns)
      else after = await this.#takeIn(page, after, turns)
      if (more) continue
      if (isAfter(memory.version, version)) throw wentBack(memory.version, version)
      this.#loadedAt = connectionMax
      memory.reach(version)
      history.restart(version)
      this.#unreadable = unreadable
      if (this.#initializations++ > 0) this.#options.onReread?.()
      this.#heard()
      this.#isCurrent = true
      this.#everSynced.open()
      fanOut.restarted()
      const seconds = Math.round(clock.now() - beganAtMs) / 1000
      log.info('Following events', { count: memory.count, seconds, revision: revisionOf(version) })
      return
    }
  }

  async #add(page: EventPage, turns: Turns): Promise<void> {
    const { memory } = this.#options
    for (const stored of page.items) {
      memory.put(stored)
      if (turns.isOver()) await turns.yield()
    }
  }

  /** Makes memory what the page says it is, between `after` and the last key of the page. */
  async #takeIn(page: EventPage, after: Buffer, turns: Turns): Promise<Buffer> {
    const { memory } = this.#options
    const { table } = memory
    let passed = after
    for (const stored of page.items) {
      const key = orderKey(stored.key)
      await this.#removeBetween(passed, key, turns)
      const known = memory.find(key)
      // In another history the same version may be of something else.
      const isSame =
        known !== undefined &&
        table.versionOf(known) === stored.version &&
        table.read(known).body.equals(stored.body)
      if (!isSame) memory.put(stored)
      passed = key
      if (turns.isOver()) await turns.yield()
    }
    if (!page.more) await this.#removeBetween(passed, undefined, turns)
    return passed
  }

  /** Removes what lies after one key and before another. */
  async #removeBetween(after: Buffer, before: Buffer | undefined, turns: Turns): Promise<void> {
    const { memory } = this.#options
    const { table } = memory
    const from = viewOf(after)
    const to = before === undefined ? undefined : viewOf(before)
    for (;;) {
      const { byKey } = memory.peek()
      const index = byKey.rank((slot) => (table.compareKey(slot, from) <= 0 ? -1 : 1))
      if (index === byKey.size) return
      const { run, offset } = byKey.runAt(index)
      const slot = run.slots[offset] ?? 0
      if (to !== undefined && table.compareKey(slot, to) >= 0) return
      memory.remove(slot)
      if (turns.isOver()) await turns.yield()
    }
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
      using turns = new Turns()
      for await (const { items, version } of watch) {
        this.#backoff.reset()
        this.#heard()
        turns.begin()
        await this.#apply(items, turns)
        this.#reach([], version)
      }
      failed.signal.throwIfAborted()
    } finally {
      this.#watch = undefined
    }
  }

  /** While nobody writes there is nothing by which the history can be recognised after a break. */
  async #mark(watch: FollowWatch, signal: AbortSignal): Promise<void> {
    const { source, log } = this.#options
    const backoff = new Backoff({ firstMs: retryFirstMs, mostMs: retryMostMs })
    while (this.#watch === watch && !signal.aborted) {
      try {
        await source.mark()
        return
      } catch (err) {
        if (!(err instanceof StorageError)) throw err
        // Not before it is known that this etcd is ours; not while it is full.
        log.v(2, 'The history was not marked', { err })
      }
      await pause(backoff.next(), signal)
    }
  }

  /** Transaction by transaction: whoever reads in between sees whole ones. */
  async #apply(items: readonly FollowItem[], turns: Turns): Promise<void> {
    let changes: WatchItem[] = []
    for (const [index, item] of items.entries()) {
      const change = this.#change(item)
      if (change !== undefined) changes.push(change)
      const revision = revisionOf(versionOf(item))
      const next = items[index + 1]
      if (next !== undefined && revisionOf(versionOf(next)) === revision) continue
      this.#reach(changes, versionOfState(revision))
      changes = []
      if (turns.isOver()) await turns.yield()
    }
  }

  /** Makes the change in memory; undefined when there was nothing to delete. */
  #change(item: FollowItem): WatchItem | undefined {
    const { memory } = this.#options
    this.#received++
    this.#noteUnreadable(item)
    if (item.type === 'put') {
      const { stored } = item
      const previous = memory.put(stored)
      // Without its fields, which are most of what it takes: memory has taken what it needs of them,
      // and whoever selects by them reads them again.
      const kept = withVersion(stored, stored.version)
      return { type: 'put', stored: kept, previous: previous && copied(previous) }
    }
    const last = memory.delete(item.key)
    return last && { type: 'delete', stored: withVersion(copied(last), item.version) }
  }

  #noteUnreadable(item: FollowItem): void {
    if (item.type === 'unreadable') this.#unreadable.set(pathOf(item.key), item.value)
    else if (this.#unreadable.size > 0) {
      this.#unreadable.delete(pathOf(item.type === 'put' ? item.stored.key : item.key))
    }
  }

  #reach(changes: readonly WatchItem[], version: Version): void {
    const { memory, history, fanOut } = this.#options
    memory.reach(version)
    history.append(changes, version)
    fanOut.changed()
    this.progress.reached(version, this.verified)
  }

  #heard(): void {
    this.#heardAtMs = this.#options.clock.now()
  }
}

function pathOf({ namespace, name }: EventKey): string {
  return `${namespace}/${name}`
}

/** Nothing remembered here, or by any client, can be trusted: versions will be given out again. */
export function wentBack(known: Version, newest: Version): Error {
  return new OtherHistoryError(
    `the store went back from revision ${revisionOf(known)} to ${revisionOf(newest)}: was it restored from a snapshot?`,
  )
}

function interrupted(): StorageError {
  return new StorageError({
    kind: 'compacted',
    message: 'another connection was made while everything was read: it may be to another history',
  })
}

function versionOf(item: FollowItem): Version {
  return item.type === 'put' ? item.stored.version : item.version
}

/** The history outlives what it would otherwise keep a whole slab alive for. */
function copied(stored: StoredEvent): StoredEvent {
  const { key, versionOffset, version, writtenAtMs } = stored
  const body = Buffer.from(stored.body)
  return new StoredBody({ key, body, versionOffset, version, writtenAtMs })
}
