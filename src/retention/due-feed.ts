/**
 * How the sweeper learns what will be due.
 *
 * Everything is listed once and followed from there. Each event is in the queue once, from its
 * creation on, whatever changes it: when its turn comes, the sweeper finds out that it was changed
 * and gives it a new place. An event that is updated every second costs one look per lifetime that
 * way, and nobody has to find things in the queue.
 *
 * The price is that events which others delete stay in the queue until they would have been due.
 * Should those become more than the living ones, everything is listed anew.
 */
import { pause } from '../lib/abort.ts'
import { Backoff } from '../lib/backoff.ts'
import type { Log } from '../lib/log.ts'
import { StorageError } from '../storage/errors.ts'
import type { Version } from '../storage/resource-version.ts'
import type { EventKey, EventStorage, StoredEvent, WatchItem } from '../storage/storage.ts'
import type { DueQueue } from './due-queue.ts'
import { nextTurn } from './next-turn.ts'
import type { RetentionPolicy } from './policy.ts'
import type { Timeline } from './timeline.ts'

/** Fills a queue with what will be due. */
export interface DueFeed {
  /**
   * Until aborted. `onFilled` is told when everything that was there is in the queue, again after
   * each time of starting over. A storage that fails is waited for; rejects on a bug only.
   */
  run(queue: DueQueue, options: FeedOptions): Promise<void>
}

export interface FeedOptions {
  readonly signal: AbortSignal
  readonly onFilled: () => void
}

/** When an event is due, in the words of the queue. */
export type DueTime = (stored: StoredEvent) => number | 'never'

/** Puts together when something was written and how long it is kept. */
export function dueTime(policy: RetentionPolicy, timeline: Timeline): DueTime {
  return (stored) => {
    const lifetime = policy.lifetimeOf(stored)
    return lifetime === 'never' ? 'never' : timeline.writtenAt(stored) + lifetime
  }
}

/** etcd counts all that follows for every page it is asked for, so pages had better be large. */
const pageMax = 2_000
/** Handled in a few milliseconds; then the rest of the process has its turn. */
const perTurn = 500
const deadToleratedMin = 100_000

export interface StorageFeedOptions {
  /** Best one that reads from memory. */
  readonly storage: Pick<EventStorage, 'list' | 'watch'>
  readonly dueTime: DueTime
  /** Whether a change never brings the end of an event nearer. */
  readonly isUniform: boolean
  readonly log: Log
  /** How many dead entries are put up with besides as many as live; a default for tests to lower. */
  readonly deadToleratedMin?: number | undefined
}

/** The feed that any storage can give: its list, then its watch. */
export class StorageFeed implements DueFeed {
  readonly #options: StorageFeedOptions

  constructor(options: StorageFeedOptions) {
    this.#options = options
  }

  async run(queue: DueQueue, options: FeedOptions): Promise<void> {
    const { signal, onFilled } = options
    const backoff = new Backoff({ firstMs: 100, mostMs: 2_000 })
    while (!signal.aborted) {
      try {
        queue.clear()
        const listed = await this.#list(queue, signal)
        backoff.reset()
        if (listed === undefined) return
        onFilled()
        await this.#follow(queue, listed, signal)
      } catch (error) {
        if (!(error instanceof StorageError)) throw error
        if (signal.aborted) return
        this.#options.log.warn('Starting over with what is to be swept', { err: error })
        await pause(backoff.next(), signal)
      }
    }
  }

  /** Undefined when aborted. */
  async #list(
    queue: DueQueue,
    signal: AbortSignal,
  ): Promise<{ readonly version: Version; readonly count: number } | undefined> {
    let count = 0
    let at: Version | undefined
    let after: EventKey | undefined
    while (!signal.aborted) {
      const page = await this.#options.storage.list(
        { namespace: undefined },
        { at, after, limit: pageMax, signal },
      )
      await inTurns(page.items, (stored) => this.#push(queue, stored))
      count += page.items.length
      after = page.items.at(-1)?.key
      at = page.version
      if (!page.more || after === undefined) return { version: at, count }
    }
    return undefined
  }

  async #follow(
    queue: DueQueue,
    from: { readonly version: Version; readonly count: number },
    signal: AbortSignal,
  ): Promise<void> {
    let living = from.count
    const deadMin = this.#options.deadToleratedMin ?? deadToleratedMin
    const scope = { namespace: undefined }
    for await (const { items } of this.#options.storage.watch(scope, {
      from: from.version,
      signal,
    })) {
      await inTurns(items, (item) => {
        living += this.#take(queue, item)
      })
      if (queue.size > 2 * living + deadMin) return
    }
  }

  /** Answers by how many the living have become more. */
  #take(queue: DueQueue, item: WatchItem): number {
    if (item.type === 'delete') return -1
    const { stored, previous } = item
    if (previous === undefined) {
      this.#push(queue, stored)
      return 1
    }
    // It has its place already, unless the change makes it due before that comes.
    if (!this.#options.isUniform && this.#isNearer(stored, previous)) this.#push(queue, stored)
    return 0
  }

  #isNearer(stored: StoredEvent, previous: StoredEvent): boolean {
    const before = this.#options.dueTime(previous)
    const now = this.#options.dueTime(stored)
    return now !== 'never' && (before === 'never' || now < before)
  }

  #push(queue: DueQueue, stored: StoredEvent): void {
    const dueAt = this.#options.dueTime(stored)
    if (dueAt !== 'never') queue.push({ key: stored.key, version: stored.version, dueAt })
  }
}

/** Never many at a time. Ends in a turn of its own. */
async function inTurns<T>(items: readonly T[], take: (item: T) => void): Promise<void> {
  for (let at = 0; at < items.length; at += perTurn) {
    for (const item of items.slice(at, at + perTurn)) take(item)
    await nextTurn()
  }
}
