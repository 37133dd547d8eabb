import type { Entrant, Entry, Limits } from '../gate/limits/limits.ts'
import type { User } from '../gate/user.ts'
import type { Peer, Response } from '../http/exchange.ts'
import { networkOf } from '../lib/network.ts'
import { workBehind } from './timeout.ts'

/**
 * The place of a request among those under way, from when it is known who asks until the whole
 * response has been sent, whatever it says. A request that was given no place takes one of those for
 * refusals while it is answered: a client that does not read what it is told cannot pile it up here.
 */
export class Stay {
  readonly #limits: Limits
  #user: string | undefined
  #entry: Entry | undefined
  #refusal: Disposable | undefined
  #work: Promise<void> | undefined

  constructor(limits: Limits) {
    this.#limits = limits
  }

  /** Who asks is known: a refusal from here on is theirs. */
  identified(user: User): void {
    this.#user = user.name
  }

  /** Throws or rejects with 429. Undefined when it has a place at once, as nearly always. */
  begin(entrant: Entrant): Promise<void> | undefined {
    const entry = this.#limits.enter(entrant)
    if (entry instanceof Promise) return this.#wait(entry)
    this.#entry = entry
    return undefined
  }

  async #wait(entry: Promise<Entry>): Promise<void> {
    this.#entry = await entry
  }

  /** Work that goes on behind an error (a timeout of the client's) keeps the place as well. */
  failed(error: unknown): void {
    this.#work = workBehind(error)
  }

  /**
   * The response is about to be sent; tells what is sent instead when too many refusals are unread.
   * The connection of a known user may carry watches that are in order, and goes on.
   */
  answers(response: Response, peer: Peer): Response {
    if (this.#entry === undefined) {
      this.#refusal = this.#limits.enterRefused(this.#user ?? networkOf(peer.address))
      if (this.#refusal !== undefined) return response
      return this.#user === undefined ? CUT : BARE_REFUSAL
    }
    // A watch needs its place only to begin.
    if (response.longRunning === true) {
      const entry = this.#entry
      if (response.settled === undefined) entry.settle()
      else void response.settled.then(() => entry.settle())
    }
    return response
  }

  /** Nothing more will be sent. */
  end(): void {
    this.#refusal?.[Symbol.dispose]()
    const entry = this.#entry
    if (entry === undefined) return
    if (this.#work === undefined) entry[Symbol.dispose]()
    else void this.#work.then(() => entry[Symbol.dispose]())
  }
}

/** Without a body, which a client that does not read could hold back. */
const BARE_REFUSAL: Response = { status: 429, headers: { 'retry-after': '10' }, body: '' }
/** For a stranger that does not read what it is told. */
const CUT: Response = { status: 429, headers: {}, body: '', dropsConnection: true }
