/** Why callers are not let in: for the operator, never for the caller. */
import { StatusError, unauthorized } from '../api/status.ts'
import type { PresentedCertificate, Request } from '../http/exchange.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'

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
const FORBIDDEN = 'forbidden'

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

/** Counts who is not let in, and tells the log of one a minute for each reason. */
export class RefusalLog {
  readonly #options: RefusalLogOptions
  readonly #told = new Map<Refusal | typeof FORBIDDEN, Told>()

  constructor(options: RefusalLogOptions) {
    this.#options = options
  }

  /** What a request ended with; anything but a refusal is ignored. */
  refused(error: StatusError, { method, path, peer }: Request): void {
    const { log, onRefused } = this.#options
    if (error instanceof NotIdentified) {
      const { refusal: reason } = error
      onRefused(reason)
      const unlogged = this.#turn(reason)
      if (unlogged === undefined) return
      const fields = { reason, peer: peer.address, method, path, unlogged }
      log.info('Request without valid credentials refused', fields)
    } else if (error.reason === 'Forbidden') {
      const unlogged = this.#turn(FORBIDDEN)
      if (unlogged === undefined) return
      const fields = { peer: peer.address, message: error.message, unlogged }
      log.info('Request refused, it is not permitted', fields)
    }
  }

  /** How many were passed over since the last line, if it is time for one. */
  #turn(reason: Refusal | typeof FORBIDDEN): number | undefined {
    const nowMs = this.#options.clock.now()
    const told = this.#told.get(reason)
    if (told !== undefined && nowMs - told.atMs < LINE_EVERY_MS) {
      told.unlogged += 1
      return undefined
    }
    this.#told.set(reason, { atMs: nowMs, unlogged: 0 })
    return told?.unlogged ?? 0
  }
}
