/**
 * Logs and counts requests refused with 401 or 403, for operators. The reason for a 401 is never
 * sent to the client, except that its token was not forwarded to a cluster.
 */
import { StatusError, unauthorized } from '../api/status.ts'
import type { PresentedCertificate, Request } from '../http/exchange.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log/log.ts'
import { truncate } from '../lib/text/truncate.ts'

/** These are label values of a metric. */
export const REFUSALS = [
  'no-credentials',
  'bad-token',
  'expired-token',
  'foreign-token',
  'bad-certificate',
  'expired-certificate',
  'bad-proxy-headers',
  'webhook-failed',
  'origin-failed',
] as const

export type Refusal = (typeof REFUSALS)[number]

/** A request cannot be authenticated. */
export class NotIdentified extends StatusError {
  readonly refusal: Refusal

  /** The client gets `status`, which is the same for all mistakes of clients. */
  constructor(refusal: Refusal, status: StatusError) {
    super(status.reason, status.message, { details: status.details, cause: status.cause })
    this.refusal = refusal
  }
}

/** Created once: any client can cause them, and most of the cost of an error is its stack trace. */
const NOT_IDENTIFIED = Object.fromEntries(
  REFUSALS.map((refusal) => [refusal, Object.freeze(new NotIdentified(refusal, unauthorized()))]),
) as Record<Refusal, NotIdentified>

/** Returns a 401 without the reason in its message. Requests refused for one reason share it. */
export function notIdentified(refusal: Refusal): NotIdentified {
  return NOT_IDENTIFIED[refusal]
}

/** Returns the 401 for a certificate that has expired or that no authority has issued. */
export function certificateRefused({ leaf }: PresentedCertificate, nowMs: number): NotIdentified {
  const isExpired = leaf.validToDate.getTime() < nowMs
  return notIdentified(isExpired ? 'expired-certificate' : 'bad-certificate')
}

/** A server that refuses a thousand requests a second must not log a thousand lines. */
const LINE_EVERY_MS = 60_000
/** Users with a line of their own each minute. All others share one. */
const USERS_MAX = 100
const FORBIDDEN = 'Request forbidden'
const FORBIDDEN_TO_MANY = `Request forbidden, as are requests of more than ${USERS_MAX} other users`

/** The time of the last line, and the number of refusals since then that were not logged. */
interface LineState {
  atMs: number
  unlogged: number
}

export interface RefusalLogOptions {
  readonly log: Log
  readonly clock: Clock
  /** Called for each request that cannot be authenticated. */
  readonly onRefused: (refusal: Refusal) => void
}

/** The first refusal of a key is always logged. */
function stateOf<K>(all: Map<K, LineState>, key: K): LineState {
  const known = all.get(key)
  if (known !== undefined) return known
  const state = { atMs: Number.NEGATIVE_INFINITY, unlogged: 0 }
  all.set(key, state)
  return state
}

/** Counts refused requests, and logs one a minute per reason (401) and per user (403). */
export class RefusalLog {
  readonly #options: RefusalLogOptions
  readonly #reasons = new Map<Refusal, LineState>()
  /** Ordered by last line. */
  readonly #users = new Map<string, LineState>()
  readonly #others: LineState = { atMs: Number.NEGATIVE_INFINITY, unlogged: 0 }

  constructor(options: RefusalLogOptions) {
    this.#options = options
  }

  /** Ignores errors that are not refusals. */
  refused(error: StatusError, request: Request): void {
    if (error instanceof NotIdentified) this.#notIdentified(error.refusal, request)
    else if (error.reason === 'Forbidden') this.#notPermitted(error, request)
  }

  #notIdentified(reason: Refusal, { method, path, peer }: Request): void {
    const { log, onRefused } = this.#options
    onRefused(reason)
    const unlogged = this.#takeLine(stateOf(this.#reasons, reason))
    if (unlogged === undefined) return
    const fields = { reason, peer: peer.address, method, path, unlogged }
    log.info('Request without valid credentials refused', fields)
  }

  #notPermitted({ user: name = '', message }: StatusError, { peer }: Request): void {
    const user = truncate(name)
    const state = this.#stateOf(user)
    const unlogged = this.#takeLine(state)
    if (unlogged === undefined) return
    if (state !== this.#others) {
      this.#users.delete(user)
      this.#users.set(user, state)
    }
    const msg = state === this.#others ? FORBIDDEN_TO_MANY : FORBIDDEN
    this.#options.log.info(msg, { user, peer: peer.address, message, unlogged })
  }

  /**
   * Evicts users whose line is due when there are too many. Users without an entry share `#others`.
   */
  #stateOf(user: string): LineState {
    const known = this.#users.get(user)
    if (known !== undefined) return known
    for (const [name, state] of this.#users) {
      if (this.#users.size < USERS_MAX || !this.#isLineDue(state)) break
      this.#users.delete(name)
      this.#others.unlogged += state.unlogged
    }
    return this.#users.size < USERS_MAX ? stateOf(this.#users, user) : this.#others
  }

  /** Returns the number of refusals not logged since the last line, or undefined if none is due. */
  #takeLine(state: LineState): number | undefined {
    if (!this.#isLineDue(state)) {
      state.unlogged += 1
      return undefined
    }
    const { unlogged } = state
    state.atMs = this.#options.clock.now()
    state.unlogged = 0
    return unlogged
  }

  #isLineDue({ atMs }: LineState): boolean {
    return this.#options.clock.now() - atMs >= LINE_EVERY_MS
  }
}
