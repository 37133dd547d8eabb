/**
 * Accounts for the memory held for clients, in bytes: by connection, by user and in total. Every
 * request has a holding. Its bytes count towards the total and, until the request is authenticated,
 * towards its connection and all unauthenticated clients; after that, towards its user.
 *
 * The figures are estimates: the bytes sent, and a fixed amount per request.
 */

import { ConnectionAccount } from './connection-account.ts'
import { type HeldBytes, NOTHING_HELD } from './held-kinds.ts'
import { type Account, HELD_LIMITS, type HeldLimit, type Sums, type User } from './holding.ts'
import { UnidentifiedConnections } from './unidentified.ts'

export interface LedgerLimits {
  /** Unauthenticated requests on one connection on which a client has authenticated. */
  readonly connectionBytes: number
  /** Requests on one connection on which no client has authenticated. */
  readonly unauthenticatedConnectionBytes: number
  /** All unauthenticated requests together. */
  readonly unauthenticatedBytes: number
  /** Connections on which no client has authenticated, counted from the start of the handshake. */
  readonly unauthenticatedConnections: number
  readonly userBytes: number
  /**
   * Connections on which a user has authenticated. Each takes some 80 KiB, which are not charged. A
   * user may hold at most as many as are still free, so that a few users cannot take all.
   */
  readonly connections: number
  readonly userConnections: number
  readonly totalBytes: number
}

export const DEFAULT_LEDGER_LIMITS: LedgerLimits = {
  connectionBytes: 16 * 1024 * 1024,
  unauthenticatedConnectionBytes: 1024 * 1024,
  unauthenticatedBytes: 16 * 1024 * 1024,
  unauthenticatedConnections: 300,
  userBytes: 64 * 1024 * 1024,
  connections: 20_000,
  userConnections: 2500,
  totalBytes: 192 * 1024 * 1024,
}

export interface NewConnection {
  readonly now?: number
  readonly address?: string
  readonly onKnown?: () => void
}

/** Counts without limiting. */
export const NO_LEDGER_LIMITS: LedgerLimits = {
  connectionBytes: Number.POSITIVE_INFINITY,
  unauthenticatedConnectionBytes: Number.POSITIVE_INFINITY,
  unauthenticatedBytes: Number.POSITIVE_INFINITY,
  unauthenticatedConnections: Number.POSITIVE_INFINITY,
  userBytes: Number.POSITIVE_INFINITY,
  connections: Number.POSITIVE_INFINITY,
  userConnections: Number.POSITIVE_INFINITY,
  totalBytes: Number.POSITIVE_INFINITY,
}

/** Above the total limit, users that hold less than this fraction of it are still served. */
const SMALL_USER_PART = 1 / 16
/** Above this multiple of the total limit, requests of all users are rejected. */
const TOTAL_OVERRUN = 1.25
/** With more users than this, idle users are removed immediately. */
const IDLE_USERS_MAX = 1000

/** One per replica. */
export class MemoryLedger {
  readonly limits: LedgerLimits
  /** @internal */
  readonly sums: Sums = {
    held: { ...NOTHING_HELD },
    total: 0,
    unauthenticated: 0,
    unidentified: undefined,
  }
  readonly #refused = Object.fromEntries(HELD_LIMITS.map((limit) => [limit, 0])) as Record<
    HeldLimit,
    number
  >
  /** Users that hold memory or connections, or became idle since the last sweep. */
  readonly #users = new Map<string, User>()
  readonly #unidentified: UnidentifiedConnections
  #identified = 0
  /** Called when a limit rejects a request of this user. */
  onRefused: (user: string, limit: HeldLimit) => void = () => {}

  constructor(limits: LedgerLimits = DEFAULT_LEDGER_LIMITS) {
    this.limits = limits
    const onCut = (): void => this.refusedConnection()
    this.#unidentified = new UnidentifiedConnections(limits.unauthenticatedConnections, onCut)
  }

  get held(): Readonly<HeldBytes> {
    return this.sums.held
  }

  /** How often each limit was reached. */
  get refused(): Readonly<Record<HeldLimit, number>> {
    return this.#refused
  }

  get unauthenticatedConnections(): number {
    return this.#unidentified.size
  }

  /** Bytes of all limited kinds. */
  get totalBytes(): number {
    return this.sums.total
  }

  get unauthenticatedBytes(): number {
    return this.sums.unauthenticated
  }

  get users(): number {
    return this.#users.size
  }

  /** Number of connections on which a user has authenticated. */
  get identifiedConnections(): number {
    return this.#identified
  }

  heldBy(user: string): number {
    return this.#users.get(user)?.bytes ?? 0
  }

  /** Whether a connection from this address may be accepted; may close another one for it. */
  canAccept(address: string, now: number = performance.now()): boolean {
    return this.#unidentified.canAccept(address, now)
  }

  /** Counts a connection that was closed because it waited too long to be accepted. */
  refusedConnection(): void {
    this.#refused['unauthenticated-connections'] += 1
  }

  /**
   * The account of a new connection. `cut` closes the connection immediately; `onKnown` is called when
   * a client authenticates on it, and when it is closed.
   */
  connection(
    cut: () => void,
    { now = performance.now(), address = '', onKnown }: NewConnection = {},
  ): ConnectionAccount {
    const account = new ConnectionAccount(this, {
      cut,
      onKnown,
      address,
      since: now,
      bytesMax: this.limits.unauthenticatedConnectionBytes,
      identifiedBytesMax: this.limits.connectionBytes,
    })
    this.#unidentified.add(account)
    this.#unidentified.cutOld(now)
    return account
  }

  /**
   * Must be called about once a second. Closes old unauthenticated connections beyond the limit and
   * removes idle users.
   */
  sweep(now: number = performance.now()): void {
    this.#unidentified.cutOld(now)
    for (const user of this.#users.values()) {
      if (isIdle(user)) this.#users.delete(user.name)
    }
  }

  /** @internal */
  removeUnauthenticated(account: ConnectionAccount): void {
    this.#unidentified.delete(account)
  }

  /** @internal */
  userOf(name: string): User {
    let user = this.#users.get(name)
    if (user === undefined) {
      user = { name, bytes: 0, holdings: 0, connections: 0 }
      this.#users.set(name, user)
    }
    return user
  }

  /**
   * @internal Idle users usually stay until the sweep, since most return soon, and deleting and adding
   * an entry would be most of the cost of a request here.
   */
  forgetIdle(user: User): void {
    if (isIdle(user) && this.#users.size > IDLE_USERS_MAX) this.#users.delete(user.name)
  }

  /** @internal */
  addConnection(user: User): HeldLimit | undefined {
    user.connections += 1
    this.#identified += 1
    const { connections, userConnections } = this.limits
    const free = connections - this.#identified
    // The first connection of a user may be the last free one.
    const isFree = free >= 0 && user.connections <= Math.max(1, free)
    if (isFree && user.connections <= userConnections) return undefined
    this.#refused['user-connections'] += 1
    this.onRefused(user.name, 'user-connections')
    return 'user-connections'
  }

  /** @internal */
  removeConnection(user: User): void {
    user.connections -= 1
    this.#identified -= 1
    this.forgetIdle(user)
  }

  /** @internal */
  exceededLimit(account: Account, user: User | undefined): HeldLimit | undefined {
    const limit =
      user === undefined ? this.#exceededUnauthenticated(account) : this.#exceededBy(user)
    if (limit === undefined) return undefined
    this.#refused[limit] += 1
    if (user !== undefined) this.onRefused(user.name, limit)
    return limit
  }

  /** @internal */
  isOverLimit(user: User): boolean {
    return this.#exceededBy(user) !== undefined
  }

  #exceededBy(user: User): HeldLimit | undefined {
    const { limits, sums } = this
    if (user.bytes > limits.userBytes) return 'user'
    if (sums.total <= limits.totalBytes) return undefined
    const isSmall = user.bytes <= limits.totalBytes * SMALL_USER_PART
    return isSmall && sums.total <= limits.totalBytes * TOTAL_OVERRUN ? undefined : 'total'
  }

  /** Ignores the total, since the request may turn out to be from a user that holds little. */
  #exceededUnauthenticated(account: Account): HeldLimit | undefined {
    if (account.bytes > account.bytesMax) return 'connection'
    while (this.sums.unauthenticated > this.limits.unauthenticatedBytes) {
      if (!this.#cutHeaviest()) break
    }
    return undefined
  }

  /**
   * Closes the connection that holds most. Rejecting the newest request instead would hit the next
   * client rather than the cause. The limit bounds the length of the list, and each scan removes one
   * account.
   */
  #cutHeaviest(): boolean {
    let heaviest: Account | undefined
    for (let at = this.sums.unidentified; at !== undefined; at = at.next) {
      if (at.account.bytes > (heaviest?.bytes ?? 0)) heaviest = at.account
    }
    if (heaviest === undefined) return false
    this.#refused.unauthenticated += 1
    heaviest.cut()
    return true
  }
}

function isIdle({ holdings, connections }: User): boolean {
  return holdings === 0 && connections === 0
}
