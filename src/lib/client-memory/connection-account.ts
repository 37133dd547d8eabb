/** The memory account of one connection; see `ledger.ts`. */

import { type Account, type HeldLimit, Holding, type HoldingLedger, type User } from './holding.ts'

export interface AccountLedger extends HoldingLedger {
  /** Counts one more connection of the user. Returns the limit that this exceeds, if any. */
  addConnection(user: User): HeldLimit | undefined
  removeConnection(user: User): void
  /** Called when a client has authenticated on the connection, or when it is closed. */
  removeUnauthenticated(account: ConnectionAccount): void
}

export interface AccountOptions {
  /** Closes the connection immediately. */
  readonly cut: () => void
  /** Called when a client authenticates on the connection, and when it is closed. */
  readonly onKnown?: (() => void) | undefined
  /** When the connection was opened. */
  readonly since: number
  /** The client's address. */
  readonly address: string
  /** Byte limit of unauthenticated requests until a client authenticates. */
  readonly bytesMax: number
  /** Byte limit of unauthenticated requests after a client has authenticated. */
  readonly identifiedBytesMax: number
}

/** The memory of the unauthenticated requests on one connection. */
export class ConnectionAccount implements Account {
  readonly since: number
  readonly address: string
  readonly #ledger: AccountLedger
  readonly #options: AccountOptions
  #isIdentified = false
  #isCut = false
  #owner: User | undefined
  bytes = 0
  bytesMax: number

  constructor(ledger: AccountLedger, options: AccountOptions) {
    this.#ledger = ledger
    this.#options = options
    this.since = options.since
    this.address = options.address
    this.bytesMax = options.bytesMax
  }

  /**
   * Whether a client has authenticated on the connection. Since users behind a proxy may share it, it
   * is then not closed because of one of them.
   */
  get isIdentified(): boolean {
    return this.#isIdentified
  }

  /** Whether the connection was closed to free memory, so that its requests need no response. */
  get isCut(): boolean {
    return this.#isCut
  }

  /** The holding of a new request with this many bytes of headers. */
  open(headerBytes: number): Holding {
    return new Holding(this.#ledger, this, headerBytes)
  }

  /** Charges the connection to its first user. Returns the limit that this exceeds, if any. */
  identified(user: User): HeldLimit | undefined {
    if (this.#isIdentified) return undefined
    this.#isIdentified = true
    this.#owner = user
    this.bytesMax = this.#options.identifiedBytesMax
    this.#removeUnauthenticated()
    return this.#ledger.addConnection(user)
  }

  /**
   * Closes the connection or, when a client has authenticated on it, cancels only its unauthenticated
   * requests. Their memory is released immediately, since closing takes a while.
   */
  cut(): void {
    if (this.#isCut) return
    this.#isCut = !this.#isIdentified
    if (this.#isCut) this.#removeUnauthenticated()
    let holding = this.#ledger.sums.unidentified
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
    if (owner !== undefined) this.#ledger.removeConnection(owner)
    this.#removeUnauthenticated()
  }

  #removeUnauthenticated(): void {
    this.#ledger.removeUnauthenticated(this)
    this.#options.onKnown?.()
  }
}
