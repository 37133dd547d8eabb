/**
 * Checks the access of running watches again: each at least once per interval, and all of them soon
 * after a file that decides about access has changed.
 *
 * Checks are spread out: they run in slices of the run queue, and at most half as many
 * in flight as a webhook client sends requests at once. Users are served round-robin with a few
 * checks in flight each, so that many or slow checks of one user do not delay those of others.
 * While a check fails (a webhook is down), the watch continues for a grace period, since an outage
 * of a webhook must not end all watches; then it ends.
 */
import { StatusError, unavailable } from '../api/status.ts'
import { type Clock, monotonicClock } from '../lib/clock.ts'
import type { Log } from '../lib/log/log.ts'
import { type Lane, RunQueue, sliceMs } from '../lib/run-queue.ts'

/** Twice a minute, so that a slow check is still done within a minute. */
const INTERVAL_MS = 30_000
/** As long as an allowing decision of a webhook is cached by default. */
const GRACE_MS = 300_000
const POLL_EVERY_MS = 500
const IN_FLIGHT_MAX = 16
const IN_FLIGHT_PER_USER_MAX = 2
/** Longer than a webhook may take. A check that takes longer continues, but frees its worker. */
const SLOW_MS = 12_000
const RETRY_SECONDS = 5

/** Rejects with 401 or 403 when the access is lost, and with 503 when it cannot be checked. */
export interface AccessCheck {
  (): Promise<void>
  /** Overrides the grace period; equal for all checks of a user. */
  readonly graceMs?: number
}

export interface AccessChecksOptions {
  readonly log: Log
  readonly onEnded?: ((reason: string) => void) | undefined
  readonly clock?: Clock | undefined
  /** Default: one of its own. */
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
  sureAt: number
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

/** A worker that waits for its check. */
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
  /** Workers share slices; one whose check ends later waits for the next slice. */
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

  /** Number of watches that are checked. */
  get size(): number {
    return this.#size
  }

  /** Number of users with such watches. */
  get users(): number {
    return this.#owners.size
  }

  /**
   * Calls `check` again and again until the result is disposed of. When the access is lost, `end`
   * is called once with the reason. `user` is the user to whom the checks are charged.
   */
  add(check: AccessCheck, end: (why: StatusError) => void, user = ''): Disposable {
    const now = this.#clock.now()
    const owner = this.#ownerOf(user)
    const entry: Entry = { owner, check, end, dueAt: now + this.#intervalMs, sureAt: now }
    owner.entries.add(entry)
    this.#size += 1
    return { [Symbol.dispose]: () => void this.#delete(entry) }
  }

  /** A file that decides about access has changed: all watches are checked now. */
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
      const [first, iterator] = [undefined, undefined]
      owner = { name, entries: new Set(), first, iterator, inFlight: 0, isQueued: false }
      this.#owners.set(name, owner)
    }
    return owner
  }

  /** False when it was deleted before. */
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

  /** Ends watches without a check in time: their user has too many slow checks. */
  #endOverdue({ entries }: Owner): void {
    for (const entry of entries) {
      if (!this.#isOverdue(entry)) return
      this.#end(entry, this.#unsure(entry))
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

  /** A worker: runs due checks, one after another. */
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

  /** The queue measures the slice itself: the wait for a webhook takes no CPU time. */
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
      entry.sureAt = this.#clock.now()
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
    return this.#isOverdue(entry) ? this.#unsure(entry, error) : undefined
  }

  #isOverdue({ sureAt, check }: Entry): boolean {
    return this.#clock.now() - sureAt >= this.#intervalMs + (check.graceMs ?? this.#graceMs)
  }

  #unsure({ check }: Entry, cause?: unknown): StatusError {
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

/** Keeps one iterator: a new one would have to skip all deleted entries again. */
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
