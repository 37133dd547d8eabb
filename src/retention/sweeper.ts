/**
 * Deletes expired events: once a second, in the order of due times, each only if it still has the
 * version that was found to be due, and is still due. A change gives an event a new version and a
 * new due time, so even a delayed delete cannot remove the changed event. A changed policy gives
 * events new due times as well: an event that it keeps longer is not deleted.
 */

import type { Term } from '../election/term.ts'
import { LinkedAbort, pause } from '../lib/abort.ts'
import { Backoff } from '../lib/backoff.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log/log.ts'
import { yieldToEventLoop } from '../lib/yield.ts'
import { isUnreadable, StorageError } from '../storage/errors.ts'
import { isAfter, type Version } from '../storage/resource-version.ts'
import type { EventKey, EventStorage, StoredEvent } from '../storage/storage.ts'
import type { DueFeed, DueTime } from './due-feed.ts'
import { type DueEvent, ExpiryQueue } from './expiry-queue.ts'
import { deleteUnchanged, isRetryable, type Outcome } from './guarded-delete.ts'

const sweepEveryMs = 1_000
/**
 * Concurrent deletes: five transactions, so that one is always ready to follow the two that are in
 * flight to etcd, and writes of clients wait for at most a few transactions of the sweeper.
 */
const batchMax = 500
const batchMin = 10
/** Deletes started between two yields: a few milliseconds, even if each has to read first. */
const deletesPerSlice = 50
/** Damaged events checked between two yields. */
const damagedPerSlice = 1_000

export interface SweeperOptions {
  readonly storage: Pick<EventStorage, 'get' | 'delete'>
  /**
   * The event as memory has it: saves a read to find out whether an event was changed. It may be
   * out of date, so nothing is deleted because of it.
   */
  readonly recall?: ((key: EventKey) => StoredEvent | undefined) | undefined
  /** Events that cannot be read; the feed does not have them. Usually there are none. */
  readonly damaged?: (() => Iterable<StoredEvent>) | undefined
  readonly feed: DueFeed
  readonly dueTime: DueTime
  /**
   * Whether etcd is in the history that the queue was filled from: in another history the same
   * version may belong to another change. Default true.
   */
  readonly isVerified?: (() => boolean) | undefined
  /** Called when a delete is decided; what it returns is called when the event was deleted. */
  readonly onDue: (due: StoredEvent) => () => void
  /** All events have been looked at in this run, and those that were due are deleted. */
  readonly onCaughtUp?: (() => void) | undefined
  /** The most events that are deleted at once. */
  readonly batchMax?: number | undefined
  readonly clock: Clock
  readonly log: Log
}

export class Sweeper {
  readonly #options: SweeperOptions
  #queue = new ExpiryQueue()
  /** Versions of the damaged events that are, or were, in the queue. */
  #damagedVersions: ReadonlySet<Version> = new Set()
  readonly #batchMax: number
  #batchSize: number
  /** In this run. */
  #isFilled = false
  /** Ends the pause between two sweeps. */
  #wake = () => {}

  constructor(options: SweeperOptions) {
    this.#options = options
    this.#batchMax = options.batchMax ?? batchMax
    this.#batchSize = this.#batchMax
  }

  /** Number of entries in the queue. */
  get waitingCount(): number {
    return this.#queue.size
  }

  /** How long the first entry has been due; 0 when it is not due yet. */
  get lagMs(): number {
    const { firstDueAt } = this.#queue
    return firstDueAt === undefined ? 0 : Math.max(0, this.#options.clock.now() - firstDueAt)
  }

  /** Sweeps until the term is over. Rejects on a bug only. */
  async run(term: Term): Promise<void> {
    const queue = new ExpiryQueue()
    this.#queue = queue
    this.#damagedVersions = new Set()
    this.#batchSize = this.#batchMax
    this.#isFilled = false
    using ending = new LinkedAbort(term.signal)
    try {
      await Promise.all([
        this.#options.feed
          // `onFilled` starts a sweep at once: after an election events may be overdue already.
          .run(queue, { signal: ending.signal, onFilled: () => this.#filled() })
          .finally(ending.abort),
        this.#sweepLoop(queue, term, ending.signal).finally(ending.abort),
      ])
    } finally {
      queue.clear()
    }
  }

  async #sweepLoop(queue: ExpiryQueue, term: Term, signal: AbortSignal): Promise<void> {
    const { clock, onCaughtUp } = this.#options
    const backoff = new Backoff({ firstMs: 250, mostMs: 4_000 })
    while (!signal.aborted && term.isHeld()) {
      const beganAt = clock.now()
      const wasFilled = this.#isFilled
      const failure = await this.#sweepOnce(queue, term, signal)
      if (failure === undefined) {
        backoff.reset()
        if (wasFilled && !signal.aborted) onCaughtUp?.()
        await this.#pauseOrWake(beganAt + sweepEveryMs - clock.now(), signal)
      } else {
        const waitMs = Math.max(backoff.next(), failure.retryAfterMs ?? 0)
        this.#options.log.warn('Sweep failed; will retry', {
          err: failure,
          waitMs: Math.round(waitMs),
        })
        await pause(waitMs, signal)
      }
    }
  }

  /** The feed cleared the queue before it filled it: damaged events must be queued again. */
  #filled(): void {
    this.#damagedVersions = new Set()
    this.#isFilled = true
    this.#wake()
  }

  async #pauseOrWake(ms: number, signal: AbortSignal): Promise<void> {
    using pausing = new LinkedAbort(signal)
    this.#wake = pausing.abort
    await pause(Math.max(0, ms), pausing.signal)
  }

  /** Deletes everything that is due now, batch by batch; stops at the first failure. */
  async #sweepOnce(
    queue: ExpiryQueue,
    term: Term,
    signal: AbortSignal,
  ): Promise<StorageError | undefined> {
    const { clock } = this.#options
    const { lateMs } = term
    const isLeaderless = lateMs !== undefined
    await this.#queueDamaged(queue)
    while (!signal.aborted && term.isHeld()) {
      const batch = queue.takeDue(clock.now() - (lateMs ?? 0), this.#batchSize)
      if (batch.length === 0) return undefined
      const left = isLeaderless ? await this.#stillThere(queue, batch, signal) : batch
      if (left instanceof StorageError) return left
      const failure = await this.#sweepBatch(queue, left)
      if (failure !== undefined) {
        this.#batchSize = Math.max(batchMin, Math.floor(this.#batchSize / 2))
        return failure
      }
      this.#batchSize = Math.min(this.#batchMax, this.#batchSize + batchMin)
    }
    return undefined
  }

  /** Queues each damaged event once, when it is first seen. A failed delete stays queued. */
  async #queueDamaged(queue: ExpiryQueue): Promise<void> {
    const { damaged, dueTime } = this.#options
    const known = this.#damagedVersions
    const versions = new Set<Version>()
    for (const event of damaged?.() ?? []) {
      const { key, version } = event
      versions.add(version)
      if (versions.size % damagedPerSlice === 0) await yieldToEventLoop()
      if (known.has(version)) continue
      const dueAt = dueTime(event)
      if (dueAt !== 'never') queue.push({ key, version, dueAt })
    }
    // Unless the queue was refilled meanwhile: then each has to be queued again.
    if (known === this.#damagedVersions) this.#damagedVersions = versions
  }

  /**
   * The batch without the events that another replica has already deleted. Memory has those
   * deletes, and serves all these reads after one revision read from etcd.
   */
  async #stillThere(
    queue: ExpiryQueue,
    batch: readonly DueEvent[],
    signal: AbortSignal,
  ): Promise<readonly DueEvent[] | StorageError> {
    try {
      const isThere = await Promise.all(batch.map(({ key }) => this.#isThere(key, signal)))
      return batch.filter((_, at) => isThere[at])
    } catch (error) {
      if (!(error instanceof StorageError)) throw error
      for (const event of batch) queue.push(event)
      return error
    }
  }

  async #isThere(key: EventKey, signal: AbortSignal): Promise<boolean> {
    if (this.#options.recall?.(key) !== undefined) return true
    try {
      await this.#options.storage.get(key, { signal })
      return true
    } catch (error) {
      if (error instanceof StorageError && error.kind === 'missing') return false
      // The delete decides: it removes damaged events, and fails on foreign values.
      if (isUnreadable(error)) return true
      throw error
    }
  }

  async #sweepBatch(
    queue: ExpiryQueue,
    batch: readonly DueEvent[],
  ): Promise<StorageError | undefined> {
    const deletes: Promise<StorageError | undefined>[] = []
    for (let at = 0; at < batch.length; at += deletesPerSlice) {
      if (at > 0) await yieldToEventLoop()
      for (const event of batch.slice(at, at + deletesPerSlice))
        deletes.push(this.#sweep(queue, event))
    }
    const failures = await Promise.all(deletes)
    return failures.find((failure) => failure !== undefined)
  }

  /** Returns the failure if the delete is to be retried. */
  async #sweep(queue: ExpiryQueue, event: DueEvent): Promise<StorageError | undefined> {
    const outcome = await this.#delete(event)
    if (outcome === 'gone' || 'deleted' in outcome) return undefined
    if ('changed' in outcome) {
      this.#requeue(queue, outcome.changed)
      return undefined
    }
    const { failed } = outcome
    if (isRetryable(failed)) {
      queue.push(event)
      return failed
    }
    const { cluster, namespace, name } = event.key
    this.#options.log.warn('Cannot delete an expired event; it is skipped', {
      cluster,
      namespace,
      name,
      err: failed,
    })
    return undefined
  }

  async #delete(event: DueEvent): Promise<Outcome> {
    const { storage, recall, onDue, isVerified = () => true } = this.#options
    const known = recall?.(event.key)
    if (known !== undefined && isAfter(known.version, event.version)) {
      return { changed: known }
    }
    let onDeleted = () => {}
    const isWanted = (current: StoredEvent) => {
      if (!this.#isDue(current)) return false
      // Now: the policy may change until the delete is done.
      onDeleted = onDue(current)
      return true
    }
    const outcome = await deleteUnchanged(event, { storage, isVerified, isWanted })
    if (outcome !== 'gone' && 'deleted' in outcome) onDeleted()
    return outcome
  }

  /** By the policy of now, which may be another one than when the event was queued. */
  #isDue(current: StoredEvent): boolean {
    const { clock, dueTime } = this.#options
    const dueAt = dueTime(current)
    return dueAt !== 'never' && dueAt <= clock.now()
  }

  #requeue(queue: ExpiryQueue, current: StoredEvent): void {
    const { key, version } = current
    const dueAt = this.#options.dueTime(current)
    if (dueAt !== 'never') queue.push({ key, version, dueAt })
  }
}
