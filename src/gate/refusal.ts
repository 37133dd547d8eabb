/** Why callers are not let in: for the operator, never for the caller. */
import { StatusError, unauthorized } from '../api/status.ts'
import type { PresentedCertificate, Request } from '../http/exchange.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { shown } from '../lib/shown.ts'

/** All there are: they are labels of a metric. */
export const REFUSALS = [
  'no-credentials',
  'bad-token',
  'expired-token',
  'bad-certificate',
  'expired-certificate',
  'bad-proxy-headers',
  'webhook-failed',
] as const

export type Refusal = (typeof REFUSALS)[number]

/** Nobody could be made out of what a request shows. */
export class NotIdentified extends StatusError {
  readonly refusal: Refusal

  /** The caller gets `answer`, which is the same for all that it could be blamed for. */
  constructor(refusal: Refusal, answer: StatusError) {
    super(answer.reason, answer.message, { details: answer.details, cause: answer.cause })
    this.refusal = refusal
  }
}

/** Made once: strangers ask for these, and a stack trace is most of what an error costs. */
const NOT_IDENTIFIED: Readonly<Record<Refusal, NotIdentified>> = {
  'no-credentials': refusedFor('no-credentials'),
  'bad-token': refusedFor('bad-token'),
  'expired-token': refusedFor('expired-token'),
  'bad-certificate': refusedFor('bad-certificate'),
  'expired-certificate': refusedFor('expired-certificate'),
  'bad-proxy-headers': refusedFor('bad-proxy-headers'),
  'webhook-failed': refusedFor('webhook-failed'),
}

function refusedFor(refusal: Refusal): NotIdentified {
  const made = new NotIdentified(refusal, unauthorized())
  Object.freeze(made)
  return made
}

/** The same for all who are refused for this reason: a 401 that does not tell it. */
export function notIdentified(refusal: Refusal): NotIdentified {
  return NOT_IDENTIFIED[refusal]
}

/** A certificate that nobody vouches for, or nobody any more. */
export function certificateRefused({ leaf }: PresentedCertificate, nowMs: number): NotIdentified {
  const isOver = leaf.validToDate.getTime() < nowMs
  return notIdentified(isOver ? 'expired-certificate' : 'bad-certificate')
}

/** Whoever refuses a thousand a second must not write a thousand lines about it. */
const LINE_EVERY_MS = 60_000
/** Users with lines of their own, in a minute; the others share one. */
const USERS_MAX = 100
const NOT_PERMITTED = 'Request refused, it is not permitted'
const MANY_NOT_PERMITTED = `${NOT_PERMITTED}; so are those of more than ${USERS_MAX} users`

interface Told {
  atMs: number
  unlogged: number
}

export interface RefusalLogOptions {
  readonly log: Log
  readonly clock: Clock
  /** Hears of everyone who is not identified. */
  readonly onRefused: (refusal: Refusal) => void
}

/** Of somebody new it is time to tell. */
function grown<K>(all: Map<K, Told>, key: K): Told {
  const known = all.get(key)
  if (known !== undefined) return known
  const told = { atMs: Number.NEGATIVE_INFINITY, unlogged: 0 }
  all.set(key, told)
  return told
}

/** Counts who is not let in, and tells the log of one a minute: for each reason, and of each user. */
export class RefusalLog {
  readonly #options: RefusalLogOptions
  readonly #reasons = new Map<Refusal, Told>()
  /** Who was told of last is the last. */
  readonly #users = new Map<string, Told>()
  readonly #others: Told = { atMs: Number.NEGATIVE_INFINITY, unlogged: 0 }

  constructor(options: RefusalLogOptions) {
    this.#options = options
  }

  /** What a request ended with; anything but a refusal is ignored. */
  refused(error: StatusError, request: Request): void {
    if (error instanceof NotIdentified) this.#notIdentified(error.refusal, request)
    else if (error.reason === 'Forbidden') this.#notPermitted(error, request)
  }

  #notIdentified(reason: Refusal, { method, path, peer }: Request): void {
    const { log, onRefused } = this.#options
    onRefused(reason)
    const unlogged = this.#turn(grown(this.#reasons, reason))
    if (unlogged === undefined) return
    const fields = { reason, peer: peer.address, method, path, unlogged }
    log.info('Request without valid credentials refused', fields)
  }

  #notPermitted({ user: name = '', message }: StatusError, { peer }: Request): void {
    const user = shown(name)
    const told = this.#toldOf(user)
    const unlogged = this.#turn(told)
    if (unlogged === undefined) return
    if (told !== this.#others) {
      this.#users.delete(user)
      this.#users.set(user, told)
    }
    const msg = told === this.#others ? MANY_NOT_PERMITTED : NOT_PERMITTED
    this.#options.log.info(msg, { user, peer: peer.address, message, unlogged })
  }

  /** A user for whom there is no room is one of the others. */
  #toldOf(user: string): Told {
    const known = this.#users.get(user)
    if (known !== undefined) return known
    for (const [name, told] of this.#users) {
      if (this.#users.size < USERS_MAX || !this.#isOver(told)) break
      this.#users.delete(name)
      this.#others.unlogged += told.unlogged
    }
    return this.#users.size < USERS_MAX ? grown(this.#users, user) : this.#others
  }

  /** How many were passed over since the last line, if it is time for one. */
  #turn(told: Told): number | undefined {
    if (!this.#isOver(told)) {
      told.unlogged += 1
      return undefined
    }
    const { unlogged } = told
    told.atMs = this.#options.clock.now()
    told.unlogged = 0
    return unlogged
  }

  #isOver({ atMs }: Told): boolean {
    return this.#options.clock.now() - atMs >= LINE_EVERY_MS
  }
}
