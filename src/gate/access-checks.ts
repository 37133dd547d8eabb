/**
 * Asks again, while watches run, whether their callers may go on: each at least once in an interval,
 * and all of them soon after a file that decides about access has changed.
 *
 * Checks are spread out: a few milliseconds of them in each turn of the event loop, and no more under
 * way at once than a webhook can be asked. Where nobody can say, a watch goes on for a while, since
 * an outage of a webhook must not end all watches; then it ends as well.
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
const UNDER_WAY_MAX = 8
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
  readonly check: AccessCheck
  readonly end: (why: StatusError) => void
  dueAt: number
  /** Since when nobody can say. */
  unsureSince: number | undefined
}

export class AccessChecks {
  readonly #options: AccessChecksOptions
  readonly #clock: Clock
  readonly #intervalMs: number
  readonly #graceMs: number
  /** The one that is due next comes first. */
  readonly #entries = new Set<Entry>()
  #iterator: SetIterator<Entry> | undefined
  readonly #timer: NodeJS.Timeout
  #underWay = 0
  #hasChanged = false
  #ended = 0

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
    return this.#entries.size
  }

  /** Until it is disposed of, `check` is asked; `end` is called once, with what it rejected with. */
  add(check: AccessCheck, end: (why: StatusError) => void): Disposable {
    const dueAt = this.#clock.now() + this.#intervalMs
    const entry: Entry = { check, end, dueAt, unsureSince: undefined }
    this.#entries.add(entry)
    return { [Symbol.dispose]: () => void this.#entries.delete(entry) }
  }

  /** What decides about access has changed: all are checked now. */
  readonly changed = (): void => {
    this.#hasChanged = true
    this.#look()
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#entries.clear()
  }

  #look(): void {
    if (this.#hasChanged) {
      this.#hasChanged = false
      this.#iterator = undefined
      for (const entry of this.#entries) entry.dueAt = Number.NEGATIVE_INFINITY
    }
    this.#tell()
    for (let idle = UNDER_WAY_MAX - this.#underWay; idle > 0; idle--) {
      this.#underWay += 1
      void this.#work().finally(() => {
        this.#underWay -= 1
      })
    }
  }

  /** Checks what is due, one after another. */
  async #work(): Promise<void> {
    let startedAt = this.#clock.now()
    for (let entry = this.#nextDue(); entry !== undefined; entry = this.#nextDue()) {
      // To the end, as due an interval from now: whoever else works here takes the next.
      this.#entries.delete(entry)
      entry.dueAt = this.#clock.now() + this.#intervalMs
      this.#entries.add(entry)
      await this.#check(entry)
      if (this.#clock.now() - startedAt < TURN_MS) continue
      await setImmediate()
      startedAt = this.#clock.now()
    }
  }

  async #check(entry: Entry): Promise<void> {
    try {
      await entry.check()
      entry.unsureSince = undefined
    } catch (error) {
      const why = this.#reasonToEnd(entry, error)
      // It may have ended meanwhile.
      if (why === undefined || !this.#entries.delete(entry)) return
      this.#ended += 1
      this.#options.onEnded?.(why.reason)
      entry.end(why)
    }
  }

  #reasonToEnd(entry: Entry, error: unknown): StatusError | undefined {
    if (error instanceof StatusError) {
      if (error.reason === 'Unauthorized' || error.reason === 'Forbidden') return error
    }
    entry.unsureSince ??= this.#clock.now()
    if (this.#clock.now() - entry.unsureSince < this.#graceMs) return undefined
    const seconds = Math.round(this.#graceMs / 1000)
    return unavailable(
      `whether this watch may go on could not be found out for ${seconds} s`,
      RETRY_SECONDS,
      error,
    )
  }

  /** One iterator goes on where it was: a new one would have to pass over all that have moved. */
  #nextDue(): Entry | undefined {
    this.#iterator ??= this.#entries.values()
    const { value: next } = this.#iterator.next()
    if (next !== undefined && next.dueAt <= this.#clock.now()) return next
    this.#iterator = undefined
    return undefined
  }

  #tell(): void {
    if (this.#ended === 0) return
    this.#options.log.info('Watches ended, since their access did', { count: this.#ended })
    this.#ended = 0
  }
}
