import type { Entry } from '../gate/limits/admitted-request.ts'
import type { Entrant, Limits } from '../gate/limits/limits.ts'
import { accountOf, type User } from '../gate/user.ts'
import type { Peer, Response } from '../http/exchange.ts'
import { networkOf } from '../lib/network.ts'
import { HandlerStillRuns } from './request/timeout.ts'

/**
 * The concurrency slot of a request: acquired once its user is known, released when the whole
 * response has been sent, whatever its status. The response to a request that got no slot takes one
 * of the slots for refused requests: a client that does not read cannot pile up responses here.
 */
export class RequestSlot {
  readonly #limits: Limits
  #user: string | undefined
  #entry: Entry | undefined
  #refusal: Disposable | undefined
  #work: Promise<void> | undefined

  constructor(limits: Limits) {
    this.#limits = limits
  }

  /** A refusal from here on is counted for this user. */
  setUser(user: User): void {
    this.#user = accountOf(user)
  }

  /** Throws or rejects with 429. Undefined when a slot is free at once, as nearly always. */
  acquire(entrant: Entrant): Promise<void> | undefined {
    const entry = this.#limits.enter(entrant)
    if (entry instanceof Promise) {
      return entry.then((late) => {
        this.#entry = late
      })
    }
    this.#entry = entry
    return undefined
  }

  /** A handler that still runs after an error (the client's own timeout) keeps the slot. */
  onError(error: unknown): void {
    if (error instanceof HandlerStillRuns) this.#work = error.ended
  }

  /**
   * Called before the response is sent. Returns the response to send: another one when too many
   * refusals are unread. The connection of an authenticated user stays open, since it may carry
   * watches whose client does read.
   */
  beforeSend(response: Response, peer: Peer): Response {
    if (this.#entry === undefined) {
      this.#refusal = this.#limits.enterRefused(this.#user ?? networkOf(peer.address))
      if (this.#refusal !== undefined) return response
      return this.#user === undefined ? DROPPED : BARE_REFUSAL
    }
    // A watch needs its slot only for its initial events.
    if (response.longRunning === true) {
      const entry = this.#entry
      if (response.settled === undefined) entry.settle()
      else void response.settled.then(() => entry.settle())
    }
    return response
  }

  /** Called when nothing more will be sent. */
  release(): void {
    this.#refusal?.[Symbol.dispose]()
    const entry = this.#entry
    if (entry === undefined) return
    if (this.#work === undefined) entry[Symbol.dispose]()
    else void this.#work.then(() => entry[Symbol.dispose]())
  }
}

/** Has no body, since a client that does not read would keep the body in memory here. */
const BARE_REFUSAL: Response = { status: 429, headers: { 'retry-after': '10' }, body: '' }
/** For an unauthenticated client that does not read its responses. */
const DROPPED: Response = { status: 429, headers: {}, body: '', dropsConnection: true }
