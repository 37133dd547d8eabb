/**
 * Rechecks the access of running watches: each at least once per interval, and all of them soon
 * after a change of a file that access depends on.
 *
 * Checks are spread out: they run in slices of the run queue, and at most half as many are in
 * flight as a webhook client sends requests at once. Users are served round-robin with a few checks
 * in flight each, so that many or slow checks of one user do not delay those of others. While a
 * check fails because a webhook is down, the watch continues for a grace period: an outage of a
 * webhook must not end all watches at once.
 */
import { StatusError, unavailable } from '../api/status.ts'
import { type Clock, monotonicClock } from '../lib/clock.ts'
import type { Log } from '../lib/log/log.ts'
import { type Lane, RunQueue, sliceMs } from '../lib/run-queue.ts'

/** Twice a minute, so that a slow check is still done within a minute. */
const INTERVAL_MS = 30_000
/** Equal to the default time for which a permission from a webhook is cached. */
const GRACE_MS = 300_000
const POLL_EVERY_MS = 500
const IN_FLIGHT_MAX = 16
const IN_FLIGHT_PER_USER_MAX = 2
/** Longer than the timeout of a webhook. A slower check continues, but frees its worker. */
const SLOW_MS = 12_000
const RETRY_SECONDS = 5

/** Rejects with 401 or 403 when access is lost, and with 503 when it cannot be checked. */
export interface AccessCheck {
  (): Promise<void>
  /** Overrides the grace period. Must be the same for all checks of a user. */
  readonly graceMs?: number
}

export interface AccessChecksOptions {
  readonly log: Log
  readonly onEnded?: ((reason: string) => void) | undefined
  readonly clock?: Clock | undefined
  /** A separate queue by default. */
  readonly runQueue?: RunQueue | undefined
  readonly intervalMs?: number | undefined
  readonly graceMs?: number | undefined
}

interface Entry {
  readonly owner: Owner
  readonly check: AccessCheck
  readonly end: (why: StatusError) => void
  dueAt: number
  /** Time of the last successful check. */
  checkedAt: number
}

/** A user with its watches. */
interface Owner {
  readonly name: string
  /** Ordered by due time. */
  readonly entries: Set<Entry>
  /** The first entry, cached, and the iterator that finds the next one. */
  first: Entry | undefined
  iterator: SetIterator<Entry> | undefined
  inFlight: number
  /** Whether it is in `#queue`. */
  isQueued: boolean
}

/** A worker whose check is in flight. */
interface Waiting {
  readonly giveUpAt: number
  readonly resolve: () => void
}

export class AccessChecks {
  readonly #options: AccessChecksOptions
  readonly #clock: Clock
  readonly #intervalMs: number
  readonly #graceMs: number
  readonly #owners = new Map<string, Owner>()
  /** Owners with due entries, in round-robin order. */
  readonly #queue: Owner[] = []
  #size = 0
  readonly #timer: NodeJS.Timeout
  #workers = 0
  #hasChanged = false
  #ended = 0
  readonly #waiting = new Set<Waiting>()
  readonly #lane: Lane
  /** All workers share a slice. One whose check ends after it waits for the next slice. */
  #sliceEndsAt = 0

  constructor(options: AccessChecksOptions) {
    this.#options = options
    this.#clock = options.clock ?? monotonicClock
    this.#intervalMs = options.intervalMs ?? INTERVAL_MS
    this.#graceMs = options.graceMs ?? GRACE_MS
    const { runQueue = new RunQueue({ clock: this.#clock }) } = options
    this.#lane = runQueue.serverLane('access checks')
    const pollEveryMs = Math.min(POLL_EVERY_MS, this.#intervalMs / 4)
    this.#timer = setInterval(() => this.#poll(), pollEveryMs)
    this.#timer.unref()
  }

  /** Number of watches. */
  get size(): number {
    return this.#size
  }

  /** Number of users with watches. */
  get users(): number {
    return this.#owners.size
  }

  /**
   * Calls `check` periodically until the result is disposed of. When access is lost, calls `end`
   * once with the reason. The checks are charged to `user`.
   */
  add(check: AccessCheck, end: (why: StatusError) => void, user = ''): Disposable {
    const now = this.#clock.now()
    const owner = this.#ownerOf(user)
    const entry: Entry = { owner, check, end, dueAt: now + this.#intervalMs, checkedAt: now }
    owner.entries.add(entry)
    this.#size += 1
    return { [Symbol.dispose]: () => void this.#delete(entry) }
  }

  /** Called when a file that access depends on has changed: all watches are checked now. */
  readonly changed = (): void => {
    this.#hasChanged = true
    this.#poll()
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#owners.clear()
    this.#queue.length = 0
    this.#size = 0
  }

  #ownerOf(name: string): Owner {
    let owner = this.#owners.get(name)
    if (owner === undefined) {
      owner = {
        name,
        entries: new Set(),
        first: undefined,
        iterator: undefined,
        inFlight: 0,
        isQueued: false,
      }
      this.#owners.set(name, owner)
    }
    return owner
  }

  /** Returns false when it was already deleted. */
  #delete(entry: Entry): boolean {
    const { owner } = entry
    if (!owner.entries.delete(entry)) return false
    if (owner.first === entry) owner.first = undefined
    this.#size -= 1
    if (owner.entries.size === 0) this.#owners.delete(owner.name)
    return true
  }

  #poll(): void {
    for (const owner of this.#owners.values()) {
      if (this.#hasChanged) {
        for (const entry of owner.entries) entry.dueAt = Number.NEGATIVE_INFINITY
      }
      this.#endOverdue(owner)
      this.#enqueue(owner)
    }
    this.#hasChanged = false
    for (const { giveUpAt, resolve } of this.#waiting) if (giveUpAt <= this.#clock.now()) resolve()
    this.#logEnded()
    this.#startWorkers()
  }

  /** Ends watches that could not be checked in time because their user has too many slow checks. */
  #endOverdue({ entries }: Owner): void {
    for (const entry of entries) {
      if (!this.#isOverdue(entry)) return
      this.#end(entry, this.#unavailable(entry))
    }
  }

  #enqueue(owner: Owner): void {
    if (owner.isQueued || owner.inFlight >= IN_FLIGHT_PER_USER_MAX) return
    const next = firstOf(owner)
    if (next === undefined || next.dueAt > this.#clock.now()) return
    owner.isQueued = true
    this.#queue.push(owner)
  }

  #startWorkers(): void {
    for (let idle = IN_FLIGHT_MAX - this.#workers; idle > 0 && this.#queue.length > 0; idle--) {
      this.#workers += 1
      void this.#work().finally(() => {
        this.#workers -= 1
      })
    }
  }

  /** Runs due checks, one after another. */
  async #work(): Promise<void> {
    await this.#nextSlice()
    for (let entry = this.#nextDue(); entry !== undefined; entry = this.#nextDue()) {
      const { owner } = entry
      // Move it to the end, due after an interval, so that another worker takes the next entry.
      owner.first = undefined
      owner.entries.delete(entry)
      entry.dueAt = this.#clock.now() + this.#intervalMs
      owner.entries.add(entry)
      owner.inFlight += 1
      const checked = this.#check(entry).finally(() => {
        owner.inFlight -= 1
        this.#enqueue(owner)
      })
      this.#enqueue(owner)
      await this.#doneOrSlow(checked)
      if (this.#clock.now() >= this.#sliceEndsAt) await this.#nextSlice()
    }
  }

  /** The run queue charges only CPU time, so the wait for a webhook costs the lane nothing. */
  async #nextSlice(): Promise<void> {
    await this.#lane.next()
    this.#sliceEndsAt = this.#clock.now() + sliceMs
  }

  /** Resolves when the check is done, or after SLOW_MS. */
  #doneOrSlow(checked: Promise<void>): Promise<void> {
    return new Promise((resolve) => {
      const giveUpAt = this.#clock.now() + SLOW_MS
      const waiting: Waiting = { giveUpAt, resolve }
      this.#waiting.add(waiting)
      void checked.finally(() => {
        this.#waiting.delete(waiting)
        resolve()
      })
    })
  }

  async #check(entry: Entry): Promise<void> {
    try {
      await entry.check()
      entry.checkedAt = this.#clock.now()
    } catch (error) {
      const why = this.#reasonToEnd(entry, error)
      if (why !== undefined) this.#end(entry, why)
    }
  }

  #end(entry: Entry, why: StatusError): void {
    // The watch may have ended during the check.
    if (!this.#delete(entry)) return
    this.#ended += 1
    this.#options.onEnded?.(why.reason)
    entry.end(why)
  }

  #reasonToEnd(entry: Entry, error: unknown): StatusError | undefined {
    if (error instanceof StatusError) {
      if (error.reason === 'Unauthorized' || error.reason === 'Forbidden') return error
    }
    return this.#isOverdue(entry) ? this.#unavailable(entry, error) : undefined
  }

  #isOverdue({ checkedAt, check }: Entry): boolean {
    return this.#clock.now() - checkedAt >= this.#intervalMs + (check.graceMs ?? this.#graceMs)
  }

  #unavailable({ check }: Entry, cause?: unknown): StatusError {
    const seconds = Math.round((check.graceMs ?? this.#graceMs) / 1000)
    const message = `the access of this watch could not be checked for ${seconds} s`
    return unavailable(message, RETRY_SECONDS, cause)
  }

  /** A due entry of the next user. */
  #nextDue(): Entry | undefined {
    for (let owner = this.#queue.shift(); owner !== undefined; owner = this.#queue.shift()) {
      owner.isQueued = false
      const next = firstOf(owner)
      if (next !== undefined && next.dueAt <= this.#clock.now()) return next
    }
    return undefined
  }

  #logEnded(): void {
    if (this.#ended === 0) return
    this.#options.log.info('Watches ended by access checks', { count: this.#ended })
    this.#ended = 0
  }
}

/** Reuses one iterator, since a new one would have to skip all deleted entries again. */
function firstOf(owner: Owner): Entry | undefined {
  if (owner.entries.size === 0) return undefined
  while (owner.first === undefined) {
    owner.iterator ??= owner.entries.values()
    const { value, done } = owner.iterator.next()
    if (done === true) owner.iterator = undefined
    else owner.first = value
  }
  return owner.first
}
