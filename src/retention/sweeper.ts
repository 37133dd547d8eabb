import { pause } from '../lib/abort.ts'
import { Backoff } from '../lib/backoff.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { isUnreadable, StorageError, type StorageErrorKind } from '../storage/errors.ts'
import { isAfter, type Version } from '../storage/resource-version.ts'
import type { EventKey, EventStorage, Guard, StoredEvent } from '../storage/storage.ts'
import type { DueFeed, DueTime } from './due-feed.ts'
import { type DueEvent, DueQueue } from './due-queue.ts'
import type { Term } from './leadership.ts'
import { nextTurn } from './next-turn.ts'

const sweepEveryMs = 1_000
/**
 * Deletes under way at a time: five transactions, so that there is always one to follow the two
 * that are on their way to etcd, and writes of clients wait for a few of ours at most.
 */
const atOnceMax = 500
const atOnceMin = 10
/** Begun in one turn of the event loop: a few milliseconds even where each has to read first. */
const perTurn = 50
/** Looked at in one turn. */
const damagedPerTurn = 1_000

export interface SweeperOptions {
  readonly storage: Pick<EventStorage, 'get' | 'delete'>
  /**
   * What memory believes to be there: saves the storage the question whether an event was changed.
   * It may be out of date, and nothing is deleted on its word.
   */
  readonly recall?: ((key: EventKey) => StoredEvent | undefined) | undefined
  /** Events that cannot be read, which the feed does not know of. Mostly there are none. */
  readonly damaged?: (() => Iterable<StoredEvent>) | undefined
  readonly feed: DueFeed
  readonly dueTime: DueTime
  /**
   * Whether what is due was learned from the history that etcd is in: in another one the same version
   * may be that of another change. Default true.
   */
  readonly isVerified?: (() => boolean) | undefined
  readonly clock: Clock
  readonly log: Log
}

/** What became of one event. */
type Ending =
  | 'swept'
  /** Somebody else has deleted it. */
  | 'gone'
  | { readonly changed: StoredEvent }
  | { readonly failed: StorageError }

/** Keeps the guard's word and the state it was about apart from failures of the storage. */
class Changed extends Error {
  override readonly name = 'Changed'
  readonly current: StoredEvent

  constructor(current: StoredEvent) {
    super('the event was changed after it was found to be due')
    this.current = current
  }
}

/**
 * Deletes what is due: once a second, in the order of due times, each event only if it is still at
 * the version that was found to be due. A change gives an event a new version and a new time, so it
 * cannot be taken for the old one, however late a delete comes.
 */
export class Sweeper {
  readonly #options: SweeperOptions
  #queue = new DueQueue()
  /** Those of damaged events that are in the queue, or were. */
  #damagedVersions: ReadonlySet<Version> = new Set()
  #sweptCount = 0
  #atOnce = atOnceMax
  /** Ends the rest between two sweeps. */
  #wake = () => {}

  constructor(options: SweeperOptions) {
    this.#options = options
  }

  /** How many events this replica has deleted. */
  get sweptCount(): number {
    return this.#sweptCount
  }

  /** How many are waiting to be due, as far as this replica knows. */
  get waitingCount(): number {
    return this.#queue.size
  }

  /** For how long the first of them should have been gone; 0 when it is not due yet. */
  get lagMs(): number {
    const { firstDueAt } = this.#queue
    return firstDueAt === undefined ? 0 : Math.max(0, this.#options.clock.now() - firstDueAt)
  }

  /** Sweeps until the term is over. Rejects on a bug only. */
  async run(term: Term): Promise<void> {
    const queue = new DueQueue()
    this.#queue = queue
    this.#damagedVersions = new Set()
    this.#atOnce = atOnceMax
    const ending = new AbortController()
    const end = () => ending.abort()
    term.signal.addEventListener('abort', end)
    if (term.signal.aborted) end()
    try {
      await Promise.all([
        this.#options.feed
          // Whoever has just come to lead may not have a second to wait.
          .run(queue, { signal: ending.signal, onFilled: () => this.#filled() })
          .finally(end),
        this.#sweepOn(queue, term, ending.signal).finally(end),
      ])
    } finally {
      term.signal.removeEventListener('abort', end)
      queue.clear()
    }
  }

  async #sweepOn(queue: DueQueue, term: Term, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options
    const backoff = new Backoff({ firstMs: 250, mostMs: 4_000 })
    while (!signal.aborted && term.isHeld()) {
      const begunAt = clock.now()
      const failure = await this.#sweepOnce(queue, term, signal)
      if (failure === undefined) {
        backoff.reset()
        await this.#rest(begunAt + sweepEveryMs - clock.now(), signal)
      } else {
        const waitMs = Math.max(backoff.next(), failure.retryAfterMs ?? 0)
        this.#options.log.warn('Cannot sweep now', { err: failure, waitMs: Math.round(waitMs) })
        await pause(waitMs, signal)
      }
    }
  }

  /** The queue was cleared before, if it had been in use. */
  #filled(): void {
    this.#damagedVersions = new Set()
    this.#wake()
  }

  async #rest(ms: number, signal: AbortSignal): Promise<void> {
    const resting = new AbortController()
    const wake = () => resting.abort()
    this.#wake = wake
    signal.addEventListener('abort', wake)
    if (signal.aborted) wake()
    await pause(Math.max(0, ms), resting.signal)
    signal.removeEventListener('abort', wake)
  }

  /** Everything that is due now, batch by batch; ends early with the first failure. */
  async #sweepOnce(
    queue: DueQueue,
    term: Term,
    signal: AbortSignal,
  ): Promise<StorageError | undefined> {
    const { clock } = this.#options
    const { lateMs } = term
    const isShared = lateMs !== undefined
    await this.#queueDamaged(queue)
    while (!signal.aborted && term.isHeld()) {
      const batch = queue.takeDue(clock.now() - (lateMs ?? 0), this.#atOnce)
      if (batch.length === 0) return undefined
      const left = isShared ? await this.#stillThere(queue, batch, signal) : batch
      if (left instanceof StorageError) return left
      const failure = await this.#sweepBatch(queue, left)
      if (failure !== undefined) {
        this.#atOnce = Math.max(atOnceMin, Math.floor(this.#atOnce / 2))
        return failure
      }
      this.#atOnce = Math.min(atOnceMax, this.#atOnce + atOnceMin)
    }
    return undefined
  }

  /** Each once, when it is first seen. A sweep that fails keeps its place. */
  async #queueDamaged(queue: DueQueue): Promise<void> {
    const { damaged, dueTime } = this.#options
    const known = this.#damagedVersions
    const versions = new Set<Version>()
    for (const event of damaged?.() ?? []) {
      const { key, version } = event
      versions.add(version)
      if (versions.size % damagedPerTurn === 0) await nextTurn()
      if (known.has(version)) continue
      const dueAt = dueTime(event)
      if (dueAt !== 'never') queue.push({ key, version, dueAt })
    }
    // Unless the queue was filled anew meanwhile: then each has to be put there once more.
    if (known === this.#damagedVersions) this.#damagedVersions = versions
  }

  /**
   * Without those that another replica has swept. Memory has seen them go, and answers for all of
   * them after one question to etcd.
   */
  async #stillThere(
    queue: DueQueue,
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
      // For the sweep to find out: it deletes what is damaged, and tells of what is foreign.
      if (isUnreadable(error)) return true
      throw error
    }
  }

  async #sweepBatch(
    queue: DueQueue,
    batch: readonly DueEvent[],
  ): Promise<StorageError | undefined> {
    const underWay: Promise<StorageError | undefined>[] = []
    for (let at = 0; at < batch.length; at += perTurn) {
      if (at > 0) await nextTurn()
      for (const event of batch.slice(at, at + perTurn)) underWay.push(this.#sweep(queue, event))
    }
    const failures = await Promise.all(underWay)
    return failures.find((failure) => failure !== undefined)
  }

  /** Answers with the failure if there is to be another try. */
  async #sweep(queue: DueQueue, event: DueEvent): Promise<StorageError | undefined> {
    const ending = await this.#delete(event)
    if (ending === 'gone') return undefined
    if (ending === 'swept') {
      this.#sweptCount++
      return undefined
    }
    if ('changed' in ending) {
      this.#giveNewPlace(queue, ending.changed)
      return undefined
    }
    const { failed } = ending
    if (isWorthAnotherTry(failed)) {
      queue.push(event)
      return failed
    }
    const { namespace, name } = event.key
    this.#options.log.warn('Cannot sweep this', { namespace, name, err: failed })
    return undefined
  }

  async #delete(event: DueEvent): Promise<Ending> {
    const believed = this.#options.recall?.(event.key)
    if (believed !== undefined && isAfter(believed.version, event.version)) {
      return { changed: believed }
    }
    const guard: Guard = (current) => {
      if (this.#options.isVerified?.() === false) throw unverified()
      if (current.version !== event.version) throw new Changed(current)
    }
    try {
      await this.#options.storage.delete(event.key, guard)
      return 'swept'
    } catch (error) {
      if (error instanceof Changed) return { changed: error.current }
      if (!(error instanceof StorageError)) throw error
      return error.kind === 'missing' ? 'gone' : { failed: error }
    }
  }

  #giveNewPlace(queue: DueQueue, current: StoredEvent): void {
    const { key, version } = current
    const dueAt = this.#options.dueTime(current)
    if (dueAt !== 'never') queue.push({ key, version, dueAt })
  }
}

/**
 * Of a delete whose end is not known, another is harmless: it finds nothing, or what it would have
 * found. What cannot be read as an event, though, will not be read better later.
 */
const worthAnotherTry: ReadonlySet<StorageErrorKind> = new Set<StorageErrorKind>([
  'unavailable',
  'timeout',
  'overloaded',
  'conflict',
])

function isWorthAnotherTry(error: StorageError): boolean {
  return worthAnotherTry.has(error.kind)
}

function unverified(): StorageError {
  const message = 'the connection to etcd broke, and it may have been restored'
  return new StorageError({ kind: 'unavailable', message })
}
