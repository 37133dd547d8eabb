/**
 * Requests refused with 401 or 403, logged and counted for operators. The reason of a 401 is never
 * sent to the client, except that its token was not forwarded to a cluster.
 */
import { StatusError, unauthorized } from '../api/status.ts'
import type { PresentedCertificate, Request } from '../http/exchange.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log/log.ts'
import { truncate } from '../lib/text/truncate.ts'

/** The complete list: these are label values of a metric. */
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

  /** The client gets `status`, which is the same for all reasons that are the client's fault. */
  constructor(refusal: Refusal, status: StatusError) {
    super(status.reason, status.message, { details: status.details, cause: status.cause })
    this.refusal = refusal
  }
}

/** Created once: any client can cause them, and a stack trace is most of the cost of an error. */
const NOT_IDENTIFIED: Readonly<Record<Refusal, NotIdentified>> = {
  'no-credentials': refusedFor('no-credentials'),
  'bad-token': refusedFor('bad-token'),
  'expired-token': refusedFor('expired-token'),
  'foreign-token': refusedFor('foreign-token'),
  'bad-certificate': refusedFor('bad-certificate'),
  'expired-certificate': refusedFor('expired-certificate'),
  'bad-proxy-headers': refusedFor('bad-proxy-headers'),
  'webhook-failed': refusedFor('webhook-failed'),
  'origin-failed': refusedFor('origin-failed'),
}

function refusedFor(refusal: Refusal): NotIdentified {
  const made = new NotIdentified(refusal, unauthorized())
  Object.freeze(made)
  return made
}

/** A 401 without the reason in its message. All requests refused for the same reason share it. */
export function notIdentified(refusal: Refusal): NotIdentified {
  return NOT_IDENTIFIED[refusal]
}

/** The 401 for a certificate that no authority has issued, or that has expired. */
export function certificateRefused({ leaf }: PresentedCertificate, nowMs: number): NotIdentified {
  const isExpired = leaf.validToDate.getTime() < nowMs
  return notIdentified(isExpired ? 'expired-certificate' : 'bad-certificate')
}

/** A server that refuses a thousand requests a second must not log a thousand lines. */
const LINE_EVERY_MS = 60_000
/** Users with a line of their own each minute; the others share one. */
const USERS_MAX = 100
const FORBIDDEN = 'Request forbidden'
const FORBIDDEN_TO_MANY = `Request forbidden, as are requests of more than ${USERS_MAX} other users`

/** When the last line was logged, and how many refusals since then have none. */
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

/** For a new key, a line is due. */
function stateOf<K>(all: Map<K, LineState>, key: K): LineState {
  const known = all.get(key)
  if (known !== undefined) return known
  const state = { atMs: Number.NEGATIVE_INFINITY, unlogged: 0 }
  all.set(key, state)
  return state
}

/** Counts refused requests, and logs one a minute for each reason (401) and for each user (403). */
export class RefusalLog {
  readonly #options: RefusalLogOptions
  readonly #reasons = new Map<Refusal, LineState>()
  /** Ordered by last line. */
  readonly #users = new Map<string, LineState>()
  readonly #others: LineState = { atMs: Number.NEGATIVE_INFINITY, unlogged: 0 }

  constructor(options: RefusalLogOptions) {
    this.#options = options
  }

  /** The error that a request ended with; anything but a refusal is ignored. */
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

  /** When full, users whose line is due are evicted; users without an entry share `#others`. */
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

  /** How many refusals were not logged since the last line; undefined when no line is due. */
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
