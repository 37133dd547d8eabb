/**
 * Deletes expired events once a second, in order of their due times. Each is deleted only if it still
 * has the version that was due, and is still due. A change gives an event a new version and a new due
 * time, so even a delayed delete cannot remove the changed event. A changed policy also gives events
 * new due times: an event that now lives longer is not deleted.
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
import type { ArchiveGate } from './archive-gate.ts'
import type { DueFeed, DueTime } from './due-feed.ts'
import { type DueEvent, ExpiryQueue } from './expiry-queue.ts'
import { deleteInSlices, deleteUnchanged, isRetryable, type Outcome } from './guarded-delete.ts'

const sweepEveryMs = 1_000
/**
 * Concurrent deletes. They fill five transactions: one is always ready to follow the two in flight to
 * etcd, and clients' writes wait for at most a few transactions of the sweeper.
 */
const batchMax = 500
const batchMin = 10
/** Damaged events checked between two yields. */
const damagedPerSlice = 1_000

export interface SweeperOptions {
  readonly storage: Pick<EventStorage, 'get' | 'delete'>
  /**
   * Looks an event up in the cache, which saves a read from etcd to find out whether it was
   * changed. The result may be out of date, so no delete relies on it.
   */
  readonly recall?: ((key: EventKey) => StoredEvent | undefined) | undefined
  /** Events that cannot be decoded, which the feed does not have. Usually there are none. */
  readonly damaged?: (() => Iterable<StoredEvent>) | undefined
  readonly feed: DueFeed
  readonly dueTime: DueTime
  /**
   * Whether etcd is still in the history that filled the queue. In another history, the same
   * version may belong to a different change. Default: always.
   */
  readonly isVerified?: (() => boolean) | undefined
  /** Called when a delete is decided. Returns a callback for when the event has been deleted. */
  readonly onDue: (due: StoredEvent) => () => void
  /** Events are deleted only once they are archived. Undefined: there is no archive. */
  readonly archive?: ArchiveGate | undefined
  /** Called after each sweep of this run that began with a full queue and left nothing to delete. */
  readonly onCaughtUp?: (() => void) | undefined
  /** Maximum number of concurrent deletes. */
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
  /** Whether the queue has been filled in this run. */
  #isFilled = false
  /** Whether the events that are due next are not archived yet. */
  #isWaitingForArchive = false
  /** Ends the pause between two sweeps. */
  #wake = () => {}

  constructor(options: SweeperOptions) {
    this.#options = options
    this.#batchMax = options.batchMax ?? batchMax
    this.#batchSize = this.#batchMax
  }

  get waitingCount(): number {
    return this.#queue.size
  }

  /** How long the first entry has been due; 0 when it is not due, or not archived yet. */
  get lagMs(): number {
    const { firstDueAt } = this.#queue
    if (this.#isWaitingForArchive) return 0
    return firstDueAt === undefined ? 0 : Math.max(0, this.#options.clock.now() - firstDueAt)
  }

  /** Sweeps until the term is over. Rejects only on a bug. */
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
          // Sweeps as soon as the queue is filled: after an election, events may be overdue.
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

  /** The feed cleared the queue before filling it, so damaged events must be queued again. */
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
    this.#isWaitingForArchive = false
    while (!this.#isWaitingForArchive && !signal.aborted && term.isHeld()) {
      const due = queue.takeDue(clock.now() - (lateMs ?? 0), this.#batchSize)
      if (due.length === 0) return undefined
      const batch = this.#archivedOf(due, queue)
      const left = isLeaderless ? await this.#stillStored(queue, batch, signal) : batch
      if (left instanceof StorageError) return left
      const failures = await deleteInSlices(left, (event) => this.#sweep(queue, event))
      const failure = failures.find((each) => each !== undefined)
      if (failure !== undefined) {
        this.#batchSize = Math.max(batchMin, Math.floor(this.#batchSize / 2))
        return failure
      }
      this.#batchSize = Math.min(this.#batchMax, this.#batchSize + batchMin)
    }
    return undefined
  }

  /**
   * The entries that may be deleted. The others go back into the queue, and those behind them wait as
   * well: what is due later was mostly written later.
   */
  #archivedOf(due: readonly DueEvent[], queue: ExpiryQueue): readonly DueEvent[] {
    const { archive } = this.#options
    if (archive === undefined || !archive.canWait()) return due
    const isArchived = ({ version }: DueEvent) =>
      archive.isArchived(version) || this.#damagedVersions.has(version)
    const archived = due.filter(isArchived)
    if (archived.length < due.length) {
      this.#isWaitingForArchive = true
      for (const event of due) if (!isArchived(event)) queue.push(event)
    }
    return archived
  }

  /** Queues each damaged event when it is first seen; a failed delete leaves it in the queue. */
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
    // Not if the queue was refilled in the meantime: then each has to be queued again.
    if (known === this.#damagedVersions) this.#damagedVersions = versions
  }

  /**
   * The batch without events that another replica has already deleted. The cache includes those
   * deletes and serves all these reads after reading one revision from etcd.
   */
  async #stillStored(
    queue: ExpiryQueue,
    batch: readonly DueEvent[],
    signal: AbortSignal,
  ): Promise<readonly DueEvent[] | StorageError> {
    try {
      const isStored = await Promise.all(batch.map(({ key }) => this.#isStored(key, signal)))
      return batch.filter((_, at) => isStored[at])
    } catch (error) {
      if (!(error instanceof StorageError)) throw error
      for (const event of batch) queue.push(event)
      return error
    }
  }

  async #isStored(key: EventKey, signal: AbortSignal): Promise<boolean> {
    if (this.#options.recall?.(key) !== undefined) return true
    try {
      await this.#options.storage.get(key, { signal })
      return true
    } catch (error) {
      if (error instanceof StorageError && error.kind === 'missing') return false
      // The delete decides: it removes damaged events and fails on foreign values.
      if (isUnreadable(error)) return true
      throw error
    }
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
    this.#options.log.warn('Cannot delete an expired event; skipping it', {
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
      // Before the delete: the policy may have changed by the time it is done.
      onDeleted = onDue(current)
      return true
    }
    const outcome = await deleteUnchanged(event, { storage, isVerified, isWanted })
    if (outcome !== 'gone' && 'deleted' in outcome) {
      onDeleted()
      this.#options.archive?.onDeleted(event.version, 'no-space')
    }
    return outcome
  }

  /** Uses the current policy, which may have been replaced since the event was queued. */
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
