/**
 * Counts and logs requests refused with 429 by user and controller, so that operators know which
 * client to fix. Clients choose the names of controllers, so the number and the length of names are
 * limited.
 */
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log/log.ts'
import { withoutTokens } from '../../lib/log/token-scrub.ts'

const CALLERS_MAX = 200
/** A limit, so that one user cannot use up all entries with made-up controllers. */
const CONTROLLERS_PER_USER_MAX = 10
const NAME_LENGTH_MAX = 128
/** When there are too many, callers that have not been refused for this long are evicted. */
const FORGET_MS = 60 * 60 * 1000
const LINE_EVERY_MS = 60_000
/** Counts all callers without an entry of their own. */
const OTHER = 'other'

/** `controller` is that of the event that the user wrote; '' when it is unknown. */
export interface RefusedCaller {
  readonly user: string
  readonly controller: string
  readonly count: number
}

interface Caller extends RefusedCaller {
  count: number
  refusedAtMs: number
  loggedAtMs: number
  unlogged: number
}

export class RefusedCallers {
  readonly #log: Log
  readonly #clock: Clock
  /** Ordered by last refusal. */
  readonly #callers = new Map<string, Caller>()

  constructor({ log, clock }: { readonly log: Log; readonly clock: Clock }) {
    this.#log = log
    this.#clock = clock
  }

  all(): Iterable<RefusedCaller> {
    return this.#callers.values()
  }

  /** `limit` is the name of the limit, for the log. */
  refused(user: string, controller: string, limit: string): void {
    const now = this.#clock.now()
    const caller = this.#callerOf(named(user), named(controller), now)
    caller.count += 1
    caller.refusedAtMs = now
    if (now - caller.loggedAtMs < LINE_EVERY_MS) {
      caller.unlogged += 1
      return
    }
    const { unlogged } = caller
    caller.loggedAtMs = now
    caller.unlogged = 0
    this.#log.info('Request refused by a limit', {
      user: caller.user,
      controller: caller.controller,
      limit,
      unlogged,
    })
  }

  #callerOf(user: string, controller: string, now: number): Caller {
    const key = keyOf(user, controller)
    const known = this.#callers.get(key)
    if (known !== undefined) {
      this.#callers.delete(key)
      this.#callers.set(key, known)
      return known
    }
    if (controller !== OTHER && this.#controllersOf(user) >= CONTROLLERS_PER_USER_MAX) {
      return this.#callerOf(user, OTHER, now)
    }
    if (user !== OTHER && this.#isFull(now)) return this.#callerOf(OTHER, OTHER, now)
    const caller = {
      user,
      controller,
      count: 0,
      refusedAtMs: now,
      loggedAtMs: Number.NEGATIVE_INFINITY,
      unlogged: 0,
    }
    this.#callers.set(key, caller)
    return caller
  }

  #controllersOf(user: string): number {
    let count = 0
    for (const caller of this.#callers.values()) if (caller.user === user) count += 1
    return count
  }

  /** Evicts old entries before it decides. */
  #isFull(now: number): boolean {
    for (const [key, { refusedAtMs }] of this.#callers) {
      if (this.#callers.size < CALLERS_MAX || now - refusedAtMs < FORGET_MS) break
      this.#callers.delete(key)
    }
    return this.#callers.size >= CALLERS_MAX
  }
}

function named(name: string): string {
  return withoutTokens(name, NAME_LENGTH_MAX).slice(0, NAME_LENGTH_MAX)
}

function keyOf(user: string, controller: string): string {
  return JSON.stringify([user, controller])
}
