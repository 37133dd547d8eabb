/** What is held in memory for one request and for one connection; see `ledger.ts`. */

import { addHeld, type HeldBytes, type HeldKind } from './held-kinds.ts'

export const HELD_LIMITS = [
  'connection',
  'unauthenticated',
  'unauthenticated-connections',
  'user',
  'user-connections',
  'total',
] as const
/** Which limit a client has run into. */
export type HeldLimit = (typeof HELD_LIMITS)[number]

/** The objects of a request that is under way, measured on HTTP/2. */
const REQUEST_BYTES = 16 * 1024
/** The same of a watch that waits for changes. */
const WATCH_BYTES = 32 * 1024

export interface User {
  readonly name: string
  bytes: number
  holdings: number
  /** Connections on which it was the first to show who it is. */
  connections: number
}

/** The sums over all holdings, which each holding keeps up to date. */
export interface Sums {
  /** By kind. */
  readonly held: HeldBytes
  /** Of all that is limited. */
  total: number
  /** The part of it that is held for requests of which it is not known who sent them. */
  unauthenticated: number
  /** The first of the list of these requests. Those that hold nothing are not in it. */
  unidentified: Holding | undefined
}

/** What a holding and an account need of the ledger. */
export interface Books {
  readonly sums: Sums
  userOf(name: string): User
  forget(user: User): void
  /** The limit that is passed with one more connection of this user, if any; it counts in any case. */
  connected(user: User): HeldLimit | undefined
  /** A client has shown on this connection who it is, or the connection is closed. */
  known(account: ConnectionAccount): void
  /** The limit that has been passed, if any. */
  judge(account: ConnectionAccount, user: User | undefined): HeldLimit | undefined
}

export interface AccountOptions {
  /** Ends the connection at once. */
  readonly cut: () => void
  /** A client has shown on it who it is, or it is closed. */
  readonly onKnown?: (() => void) | undefined
  readonly since: number
  /** From where it was opened. */
  readonly address: string
  /** What may be held for requests of which it is not known who sent them. */
  readonly bytesMax: number
  /** The same once a client has shown on the connection who it is. */
  readonly identifiedBytesMax: number
}

/** One connection. What is held for its requests counts here until it is known who sent them. */
export class ConnectionAccount {
  readonly since: number
  readonly address: string
  readonly #books: Books
  readonly #options: AccountOptions
  #isIdentified = false
  #isCut = false
  #owner: User | undefined
  /** Held for requests of which it is not known who sent them. */
  bytes = 0
  bytesMax: number

  constructor(books: Books, options: AccountOptions) {
    this.#books = books
    this.#options = options
    this.since = options.since
    this.address = options.address
    this.bytesMax = options.bytesMax
  }

  /** Some client has shown on it who it is. It may serve many users, who must not suffer for one. */
  get isIdentified(): boolean {
    return this.#isIdentified
  }

  /** Its requests are of no interest any more. */
  get isCut(): boolean {
    return this.#isCut
  }

  /** For a new request with so many bytes of headers. */
  open(headerBytes: number): Holding {
    return new Holding(this.#books, this, headerBytes)
  }

  /** The first to show who it is answers for the connection; a limit is returned if that is one too many. */
  identified(user: User): HeldLimit | undefined {
    if (this.#isIdentified) return undefined
    this.#isIdentified = true
    this.#owner = user
    this.bytesMax = this.#options.identifiedBytesMax
    this.#known()
    return this.#books.connected(user)
  }

  /**
   * Ends the connection or, when a client has shown on it who it is, only the requests of which that
   * is not known. What they held is given back at once: the end of a connection takes a while.
   */
  cut(): void {
    if (this.#isCut) return
    this.#isCut = !this.#isIdentified
    if (this.#isCut) this.#known()
    let holding = this.#books.sums.unidentified
    while (holding !== undefined) {
      const next = holding.next
      if (holding.account === this) holding.revoke(this.#isIdentified)
      holding = next
    }
    if (this.#isCut) this.#options.cut()
  }

  close(): void {
    const owner = this.#owner
    this.#owner = undefined
    if (owner !== undefined) {
      owner.connections -= 1
      this.#books.forget(owner)
    }
    this.#known()
  }

  #known(): void {
    this.#books.known(this)
    this.#options.onKnown?.()
  }
}

/** What is held for one request. */
export class Holding implements Disposable {
  readonly account: ConnectionAccount
  /** Neighbours in the list of requests of which it is not known who sent them. */
  next: Holding | undefined
  #previous: Holding | undefined
  readonly #books: Books
  readonly #sums: Sums
  readonly #held: HeldBytes
  /** Of all that is limited. */
  #bytes = 0
  #user: User | undefined
  #onRevoked: Revocable | undefined
  #isReleased = false

  constructor(books: Books, account: ConnectionAccount, headerBytes: number) {
    this.#books = books
    this.#sums = books.sums
    this.account = account
    this.#held = {
      headers: headerBytes,
      body: 0,
      response: 0,
      selector: 0,
      credentials: 0,
      audit: 0,
      request: REQUEST_BYTES,
      watch: 0,
    }
    this.#sums.held.headers += headerBytes
    this.#sums.held.request += REQUEST_BYTES
    this.#count(headerBytes + REQUEST_BYTES)
  }

  /** Who is told when the request must end so that others have room. */
  set onRevoked(revocable: Revocable) {
    this.#onRevoked = revocable
  }

  /** The limit that is passed with what is held already, if any. */
  passed(): HeldLimit | undefined {
    const limit = this.#books.judge(this.account, this.#user)
    // To make room, the requests of this very connection may have been given up.
    return limit === undefined && this.#isReleased ? 'unauthenticated' : limit
  }

  /** Charges more; when that passes a limit it is not charged, and the limit is returned. */
  hold(kind: HeldKind, bytes: number): HeldLimit | undefined {
    if (this.#isReleased) return undefined
    this.#add(kind, bytes)
    const limit = this.passed()
    if (limit !== undefined) this.#add(kind, -bytes)
    return limit
  }

  /** Charges so much of a kind, in place of what was charged of it, without regard to limits. */
  set(kind: HeldKind, bytes: number): void {
    this.#add(kind, bytes - this.#held[kind])
  }

  /** Headers and body are not needed any more. */
  forgetRequest(): void {
    const held = this.#held
    const bytes = held.headers + held.body
    if (bytes === 0 || this.#isReleased) return
    this.#sums.held.headers -= held.headers
    this.#sums.held.body -= held.body
    held.headers = 0
    held.body = 0
    this.#count(-bytes)
  }

  /** The request is this user's; a limit is returned when that is more than the user may hold. */
  own(name: string): HeldLimit | undefined {
    if (this.#isReleased) return undefined
    const user = this.#books.userOf(name)
    const surplus = this.account.identified(user)
    const bytes = this.#bytes
    this.#count(-bytes)
    user.holdings += 1
    this.#user = user
    this.#count(bytes)
    return surplus ?? this.#books.judge(this.account, user)
  }

  /** The request has become a watch, and waits: nothing is being made or sent. */
  becomeWatch(): void {
    if (this.#isReleased || this.isWatch) return
    this.set('request', 0)
    this.set('response', 0)
    this.#add('watch', WATCH_BYTES)
  }

  get headerBytes(): number {
    return this.#held.headers
  }

  get isWatch(): boolean {
    return this.#held.watch > 0
  }

  [Symbol.dispose](): void {
    if (this.#isReleased) return
    const { held } = this.#sums
    held.headers -= this.#held.headers
    held.body -= this.#held.body
    held.response -= this.#held.response
    held.selector -= this.#held.selector
    held.credentials -= this.#held.credentials
    held.audit -= this.#held.audit
    held.request -= this.#held.request
    held.watch -= this.#held.watch
    this.#count(-this.#bytes)
    this.#isReleased = true
    if (this.#user === undefined) return
    this.#user.holdings -= 1
    this.#books.forget(this.#user)
  }

  /** Gives all back; the request is told, unless its whole connection ends anyhow. */
  revoke(isTold: boolean): void {
    this[Symbol.dispose]()
    if (isTold) this.#onRevoked?.revoked()
  }

  #add(kind: HeldKind, bytes: number): void {
    if (bytes === 0 || this.#isReleased) return
    addHeld(this.#held, kind, bytes)
    addHeld(this.#sums.held, kind, bytes)
    if (kind !== 'watch') this.#count(bytes)
  }

  /** So much more is held of what is limited, for whomever it is held. */
  #count(bytes: number): void {
    const sums = this.#sums
    const before = this.#bytes
    this.#bytes = before + bytes
    sums.total += bytes
    if (this.#user !== undefined) {
      this.#user.bytes += bytes
      return
    }
    sums.unauthenticated += bytes
    this.account.bytes += bytes
    if (before === 0) this.#link()
    if (this.#bytes === 0) this.#unlink()
  }

  #link(): void {
    const first = this.#sums.unidentified
    this.next = first
    if (first !== undefined) first.#previous = this
    this.#sums.unidentified = this
  }

  #unlink(): void {
    if (this.#previous !== undefined) this.#previous.next = this.next
    else if (this.#sums.unidentified === this) this.#sums.unidentified = this.next
    if (this.next !== undefined) this.next.#previous = this.#previous
    this.next = undefined
    this.#previous = undefined
  }
}

/** A request that can be ended before its time. */
export interface Revocable {
  revoked(): void
}
