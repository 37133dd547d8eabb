/**
 * Asks again, while watches run, whether their callers may go on: each at least once in an interval,
 * and all of them soon after a file that decides about access has changed.
 *
 * Checks are spread out: a few milliseconds of them in each turn of the event loop, and no more under
 * way at once than half of what a webhook can be asked. Users take turns, and each has a few under way
 * only, so that one whose checks are many or slow does not delay those of others. Where nobody can
 * say, a watch goes on for a while, since an outage of a webhook must not end all watches; then it ends
 * as well.
 */
import { setImmediate } from 'node:timers/promises'
import { StatusError, unavailable } from '../api/status.ts'
import { type Clock, monotonicClock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'

/** Twice a minute, so that what takes long is still done within one. */
const INTERVAL_MS = 30_000
/** As long as an allowing answer of a webhook is kept by default. */
const GRACE_MS = 300_000
const LOOK_EVERY_MS = 500
const TURN_MS = 5
const UNDER_WAY_MAX = 16
const UNDER_WAY_PER_USER_MAX = 2
/** A check that takes longer than a webhook may take goes on, but no longer among those under way. */
const SLOW_MS = 12_000
const RETRY_SECONDS = 5

/** Rejects with 401 or 403 when access is over, and with 503 when that cannot be found out. */
export type AccessCheck = () => Promise<void>

export interface AccessChecksOptions {
  readonly log: Log
  readonly onEnded?: ((reason: string) => void) | undefined
  readonly clock?: Clock | undefined
  readonly intervalMs?: number | undefined
  readonly graceMs?: number | undefined
}

interface Entry {
  readonly owner: Owner
  readonly check: AccessCheck
  readonly end: (why: StatusError) => void
  dueAt: number
  /** When it was last known that it may go on. */
  sureAt: number
}

/** A user, with what is checked for it. */
interface Owner {
  readonly name: string
  /** In the order in which they are due. */
  readonly entries: Set<Entry>
  /** The first of them, once it has been looked for, and where to look for the next. */
  first: Entry | undefined
  iterator: SetIterator<Entry> | undefined
  underWay: number
  /** Whether it is in the queue of those that have something due. */
  isQueued: boolean
}

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
  /** Owners with something due, in the order of their turns. */
  readonly #queue: Owner[] = []
  #size = 0
  readonly #timer: NodeJS.Timeout
  #underWay = 0
  #hasChanged = false
  #ended = 0
  /** Who waits for a check, and until when. */
  readonly #waiting = new Set<Waiting>()
  #turnStartedAt = 0
  #nextTurn: Promise<void> | undefined

  constructor(options: AccessChecksOptions) {
    this.#options = options
    this.#clock = options.clock ?? monotonicClock
    this.#intervalMs = options.intervalMs ?? INTERVAL_MS
    this.#graceMs = options.graceMs ?? GRACE_MS
    const lookEveryMs = Math.min(LOOK_EVERY_MS, this.#intervalMs / 4)
    this.#timer = setInterval(() => this.#look(), lookEveryMs)
    this.#timer.unref()
  }

  /** How many are checked from time to time. */
  get size(): number {
    return this.#size
  }

  /** How many users there are to whom these belong. */
  get users(): number {
    return this.#owners.size
  }

  /**
   * Until it is disposed of, `check` is asked; `end` is called once, with what it rejected with. `user`
   * is who pays for the checks.
   */
  add(check: AccessCheck, end: (why: StatusError) => void, user = ''): Disposable {
    const now = this.#clock.now()
    const owner = this.#ownerOf(user)
    const entry: Entry = { owner, check, end, dueAt: now + this.#intervalMs, sureAt: now }
    owner.entries.add(entry)
    this.#size += 1
    return { [Symbol.dispose]: () => void this.#delete(entry) }
  }

  /** What decides about access has changed: all are checked now. */
  readonly changed = (): void => {
    this.#hasChanged = true
    this.#look()
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
      owner = { name, entries: new Set(), first, iterator, underWay: 0, isQueued: false }
      this.#owners.set(name, owner)
    }
    return owner
  }

  /** False when it has been before. */
  #delete(entry: Entry): boolean {
    const { owner } = entry
    if (!owner.entries.delete(entry)) return false
    if (owner.first === entry) owner.first = undefined
    this.#size -= 1
    if (owner.entries.size === 0) this.#owners.delete(owner.name)
    return true
  }

  #look(): void {
    for (const owner of this.#owners.values()) {
      if (this.#hasChanged) {
        for (const entry of owner.entries) entry.dueAt = Number.NEGATIVE_INFINITY
      }
      this.#endOverdue(owner)
      this.#enqueue(owner)
    }
    this.#hasChanged = false
    for (const { giveUpAt, resolve } of this.#waiting) if (giveUpAt <= this.#clock.now()) resolve()
    this.#tell()
    this.#fill()
  }

  /** Checks of these have not even been begun: too many of their user take too long. */
  #endOverdue({ entries }: Owner): void {
    for (const entry of entries) {
      if (!this.#isOverdue(entry)) return
      this.#end(entry, this.#unsure())
    }
  }

  #enqueue(owner: Owner): void {
    if (owner.isQueued || owner.underWay >= UNDER_WAY_PER_USER_MAX) return
    const next = firstOf(owner)
    if (next === undefined || next.dueAt > this.#clock.now()) return
    owner.isQueued = true
    this.#queue.push(owner)
  }

  #fill(): void {
    this.#turnStartedAt = this.#clock.now()
    for (let idle = UNDER_WAY_MAX - this.#underWay; idle > 0 && this.#queue.length > 0; idle--) {
      this.#underWay += 1
      void this.#work().finally(() => {
        this.#underWay -= 1
      })
    }
  }

  /** Checks what is due, one after another. */
  async #work(): Promise<void> {
    for (let entry = this.#nextDue(); entry !== undefined; entry = this.#nextDue()) {
      const { owner } = entry
      // To the end, as due an interval from now: whoever else works here takes the next.
      owner.first = undefined
      owner.entries.delete(entry)
      entry.dueAt = this.#clock.now() + this.#intervalMs
      owner.entries.add(entry)
      owner.underWay += 1
      const checked = this.#check(entry).finally(() => {
        owner.underWay -= 1
        this.#enqueue(owner)
      })
      this.#enqueue(owner)
      await this.#patiently(checked)
      if (this.#clock.now() - this.#turnStartedAt >= TURN_MS) await this.#turn()
    }
  }

  /** Resolves with it, or when it takes too long to be waited for. */
  #patiently(checked: Promise<void>): Promise<void> {
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

  /** All who work here wait for the same turn of the event loop, so that they share its time. */
  #turn(): Promise<void> {
    this.#nextTurn ??= setImmediate().then(() => {
      this.#nextTurn = undefined
      this.#turnStartedAt = this.#clock.now()
    })
    return this.#nextTurn
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
    // It may have ended meanwhile.
    if (!this.#delete(entry)) return
    this.#ended += 1
    this.#options.onEnded?.(why.reason)
    entry.end(why)
  }

  #reasonToEnd(entry: Entry, error: unknown): StatusError | undefined {
    if (error instanceof StatusError) {
      if (error.reason === 'Unauthorized' || error.reason === 'Forbidden') return error
    }
    return this.#isOverdue(entry) ? this.#unsure(error) : undefined
  }

  #isOverdue({ sureAt }: Entry): boolean {
    return this.#clock.now() - sureAt >= this.#intervalMs + this.#graceMs
  }

  #unsure(cause?: unknown): StatusError {
    const seconds = Math.round(this.#graceMs / 1000)
    const message = `whether this watch may go on could not be found out for ${seconds} s`
    return unavailable(message, RETRY_SECONDS, cause)
  }

  /** Of the user whose turn it is. */
  #nextDue(): Entry | undefined {
    for (let owner = this.#queue.shift(); owner !== undefined; owner = this.#queue.shift()) {
      owner.isQueued = false
      const next = firstOf(owner)
      if (next !== undefined && next.dueAt <= this.#clock.now()) return next
    }
    return undefined
  }

  #tell(): void {
    if (this.#ended === 0) return
    this.#options.log.info('Watches ended, since their access did', { count: this.#ended })
    this.#ended = 0
  }
}

/** One iterator goes on where it was: a new one would have to pass over all that have moved. */
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
