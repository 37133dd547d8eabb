import { addHeld, type HeldBytes, type HeldKind } from './held-kinds.ts'

export const HELD_LIMITS = [
  'connection',
  'unauthenticated',
  'unauthenticated-connections',
  'user',
  'user-connections',
  'total',
] as const
export type HeldLimit = (typeof HELD_LIMITS)[number]

/** Size of the objects of a request in progress, measured on HTTP/2. */
const REQUEST_BYTES = 16 * 1024
/** Size of the objects of a watch that waits for changes. */
const WATCH_BYTES = 32 * 1024

export interface User {
  readonly name: string
  bytes: number
  holdings: number
  /** Number of connections on which this user was the first to authenticate. */
  connections: number
}

/** Sums over all holdings, updated by each holding. */
export interface Sums {
  readonly held: HeldBytes
  /** Bytes of all limited kinds. */
  total: number
  /** The part of `total` held for unauthenticated requests. */
  unauthenticated: number
  /** Head of the linked list of unauthenticated requests that hold memory. */
  unidentified: Holding | undefined
}

/** The connection that a request came on. */
export interface Account {
  /** Bytes held for its unauthenticated requests. */
  bytes: number
  readonly bytesMax: number
  /** Whether a client has authenticated on the connection. */
  readonly isIdentified: boolean
  identified(user: User): HeldLimit | undefined
  cut(): void
}

export interface HoldingLedger {
  readonly sums: Sums
  userOf(name: string): User
  forgetIdle(user: User): void
  /** The limit that is currently exceeded, if any; counted as a refusal. */
  exceededLimit(account: Account, user: User | undefined): HeldLimit | undefined
  isOverLimit(user: User): boolean
}

/** The memory charged to one request until it is disposed of; see `ledger.ts`. */
export class Holding implements Disposable {
  readonly account: Account
  /** Neighbours in the linked list of unauthenticated requests. */
  next: Holding | undefined
  #previous: Holding | undefined
  readonly #ledger: HoldingLedger
  readonly #sums: Sums
  readonly #held: HeldBytes
  /** Bytes of all limited kinds. */
  #bytes = 0
  #user: User | undefined
  #onRevoked: Revocable | undefined
  #isReleased = false

  constructor(ledger: HoldingLedger, account: Account, headerBytes: number) {
    this.#ledger = ledger
    this.#sums = ledger.sums
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

  /** Notified when the request is cancelled to free memory. */
  set onRevoked(revocable: Revocable) {
    this.#onRevoked = revocable
  }

  /** The limit that is already exceeded, if any. */
  exceededLimit(): HeldLimit | undefined {
    const limit = this.#ledger.exceededLimit(this.account, this.#user)
    // To free memory, the ledger may have cancelled the requests of this very connection.
    return limit === undefined && this.#isReleased ? 'unauthenticated' : limit
  }

  /** Whether the request has a user and that user exceeds a limit. */
  get isUserOverLimit(): boolean {
    return this.#user !== undefined && this.#ledger.isOverLimit(this.#user)
  }

  /** Charges more bytes. If that exceeds a limit, charges nothing and returns the limit. */
  hold(kind: HeldKind, bytes: number): HeldLimit | undefined {
    if (this.#isReleased) return undefined
    this.#add(kind, bytes)
    const limit = this.exceededLimit()
    if (limit !== undefined) this.#add(kind, -bytes)
    return limit
  }

  /** Replaces the bytes charged for a kind without checking the limits. */
  set(kind: HeldKind, bytes: number): void {
    this.#add(kind, bytes - this.#held[kind])
  }

  /** Releases the headers and the body, which are no longer needed. */
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

  /** Charges the request to this user. Returns the limit that the user exceeds by that, if any. */
  own(name: string): HeldLimit | undefined {
    if (this.#isReleased) return undefined
    const user = this.#ledger.userOf(name)
    const connectionLimit = this.account.identified(user)
    const bytes = this.#bytes
    this.#count(-bytes)
    user.holdings += 1
    this.#user = user
    this.#count(bytes)
    return connectionLimit ?? this.#ledger.exceededLimit(this.account, user)
  }

  /** Marks the request as a waiting watch, for which no response is being encoded or sent. */
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
    this.#ledger.forgetIdle(this.#user)
  }

  /** Releases everything. A closed connection needs no notification. */
  revoke(shouldNotify: boolean): void {
    this[Symbol.dispose]()
    if (shouldNotify) this.#onRevoked?.revoked()
  }

  #add(kind: HeldKind, bytes: number): void {
    if (bytes === 0 || this.#isReleased) return
    addHeld(this.#held, kind, bytes)
    addHeld(this.#sums.held, kind, bytes)
    if (kind !== 'watch') this.#count(bytes)
  }

  /** Adds to the limited bytes of this holding and of its user, or of its connection without one. */
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

/** A request that can be cancelled to free memory. */
export interface Revocable {
  revoked(): void
}
