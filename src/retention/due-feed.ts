/**
 * Fills the expiry queue of the sweeper.
 *
 * Lists all events once and follows the changes from there. Each event gets one entry in the queue
 * when it is created, and none when it is changed: when the entry is due, the sweeper finds that the
 * event was changed and queues it again. So an event that is updated every second costs one check per
 * lifetime, and the queue needs no lookup by key.
 *
 * The price is that events deleted by clients stay in the queue until they would have been due. When
 * these dead entries reach a quarter of the live ones, everything is listed again.
 *
 * With `entriesMax`, the queue has only the entries due up to a horizon. When those are used up,
 * everything is listed again.
 */
import { LinkedAbort, pause } from '../lib/abort.ts'
import { Backoff } from '../lib/backoff.ts'
import type { Log } from '../lib/log/log.ts'
import type { Lane } from '../lib/run-queue.ts'
import { StorageError } from '../storage/errors.ts'
import { allEvents } from '../storage/event-scope.ts'
import type { Version } from '../storage/resource-version.ts'
import type { EventKey, EventStorage, StoredEvent, WatchItem } from '../storage/storage.ts'
import type { ExpiryQueue } from './expiry-queue.ts'
import type { RetentionPolicy } from './policy.ts'
import type { Timeline } from './timeline.ts'

/** Fills a queue with the events that will be due. */
export interface DueFeed {
  /**
   * Runs until aborted. Calls `onFilled` when all existing events are in the queue, and again after
   * each new list. Retries when the storage fails; rejects only on a bug.
   */
  run(queue: ExpiryQueue, options: FeedOptions): Promise<void>
}

export interface FeedOptions {
  readonly signal: AbortSignal
  readonly onFilled: () => void
}

/** When an event is due, by the sweeper's clock. */
export type DueTime = (stored: StoredEvent) => number | 'never'

/** The time when an event was written plus its lifetime under the current policy. */
export function dueTime(policy: () => RetentionPolicy, timeline: Timeline): DueTime {
  return (stored) => {
    const lifetime = policy().lifetimeOf(stored)
    return lifetime === 'never' ? 'never' : timeline.writtenAt(stored) + lifetime
  }
}

/** etcd counts all remaining keys for each page, so pages should be large. */
const pageMax = 2_000
/** Ends a page of large events early. */
const pageBytes = 4 * 1024 * 1024
/** Tolerated dead entries: this fraction of the live ones, plus `deadToleratedMin`. */
const deadPart = 1 / 4
const deadToleratedMin = 10_000
const horizonCheckMs = 1_000

export interface StorageFeedOptions {
  /** Preferably one that reads from memory. */
  readonly storage: Pick<EventStorage, 'list' | 'watch'>
  readonly dueTime: DueTime
  /** Whether a change never makes an event due earlier. */
  readonly isUniform: () => boolean
  readonly lane: Lane
  readonly log: Log
  /** Lowered by tests. */
  readonly deadToleratedMin?: number | undefined
  /** The queue is cut to this many entries when it has twice as many. Default: no limit. */
  readonly entriesMax?: number | undefined
}

export class StorageFeed implements DueFeed {
  readonly #options: StorageFeedOptions
  /** Events due later than this are not in the queue. */
  #horizon = Number.POSITIVE_INFINITY

  constructor(options: StorageFeedOptions) {
    this.#options = options
  }

  async run(queue: ExpiryQueue, options: FeedOptions): Promise<void> {
    const { signal, onFilled } = options
    const backoff = new Backoff({ firstMs: 100, mostMs: 2_000 })
    while (!signal.aborted) {
      try {
        queue.clear()
        this.#horizon = Number.POSITIVE_INFINITY
        const listed = await this.#list(queue, signal)
        backoff.reset()
        if (listed === undefined) return
        onFilled()
        await this.#followToHorizon(queue, listed, signal)
      } catch (error) {
        if (!(error instanceof StorageError)) throw error
        if (signal.aborted) return
        this.#options.log.warn(
          'Following events for the sweep was interrupted; listing all events again',
          { err: error },
        )
        await pause(backoff.next(), signal)
      }
    }
  }

  /** Undefined when aborted. */
  async #list(
    queue: ExpiryQueue,
    signal: AbortSignal,
  ): Promise<{ readonly version: Version; readonly count: number } | undefined> {
    let count = 0
    let at: Version | undefined
    let after: EventKey | undefined
    while (!signal.aborted) {
      const page = await this.#options.storage.list(allEvents, {
        at,
        after,
        limit: pageMax,
        bytesEnough: pageBytes,
        isReadOnce: true,
        signal,
        lane: this.#options.lane,
      })
      await inSlices(this.#options.lane, page.items, (stored) => this.#push(queue, stored))
      count += page.items.length
      after = page.items.at(-1)?.key
      at = page.version
      if (!page.more || after === undefined) return { version: at, count }
    }
    return undefined
  }

  async #followToHorizon(
    queue: ExpiryQueue,
    from: { readonly version: Version; readonly count: number },
    signal: AbortSignal,
  ): Promise<void> {
    using ending = new LinkedAbort(signal)
    const timer = setInterval(() => {
      const { firstDueAt = Number.POSITIVE_INFINITY } = queue
      if (firstDueAt > this.#horizon) ending.abort()
    }, horizonCheckMs)
    try {
      await this.#follow(queue, from, ending.signal)
    } finally {
      clearInterval(timer)
    }
  }

  async #follow(
    queue: ExpiryQueue,
    from: { readonly version: Version; readonly count: number },
    signal: AbortSignal,
  ): Promise<void> {
    let live = from.count
    const deadMin = this.#options.deadToleratedMin ?? deadToleratedMin
    for await (const { items } of this.#options.storage.watch(allEvents, {
      from: from.version,
      signal,
      lane: this.#options.lane,
    })) {
      await inSlices(this.#options.lane, items, (item) => {
        live += this.#apply(queue, item)
      })
      if (queue.size > live * (1 + deadPart) + deadMin) return
    }
  }

  /** Returns the change in the number of live events. */
  #apply(queue: ExpiryQueue, item: WatchItem): number {
    if (item.type === 'delete') return -1
    const { stored, previous } = item
    if (previous === undefined) {
      this.#push(queue, stored)
      return 1
    }
    // It already has an entry, and needs another only if the change makes it due earlier.
    if (!this.#options.isUniform() && this.#isDueEarlier(stored, previous)) {
      this.#push(queue, stored)
    }
    return 0
  }

  #isDueEarlier(stored: StoredEvent, previous: StoredEvent): boolean {
    const before = this.#options.dueTime(previous)
    const now = this.#options.dueTime(stored)
    return now !== 'never' && (before === 'never' || now < before)
  }

  #push(queue: ExpiryQueue, stored: StoredEvent): void {
    const dueAt = this.#options.dueTime(stored)
    if (dueAt === 'never' || dueAt > this.#horizon) return
    queue.push({ key: stored.key, version: stored.version, dueAt })
    const { entriesMax = Number.POSITIVE_INFINITY } = this.#options
    if (queue.size > 2 * entriesMax) this.#horizon = queue.keepEarliest(entriesMax)
  }
}

/** Yields after each slice, including the last. */
async function inSlices<T>(
  lane: Lane,
  items: readonly T[],
  take: (item: T) => void,
): Promise<void> {
  using slices = lane.slices()
  for (const item of items) {
    take(item)
    if (slices.isOver()) await slices.next()
  }
  await slices.next()
}
