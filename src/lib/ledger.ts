/**
 * What is held in memory for clients, in bytes: by connection, by user and in total. Every request
 * has a holding; what is charged to it counts for its connection, for the user it turns out to come
 * from, and in total, until it is given back. A request of a client that has not shown who it is
 * counts for all such clients together.
 *
 * The figures are estimates: what was sent, and a fixed amount for what every request takes.
 */

import { type HeldBytes, NOTHING_HELD } from './held-kinds.ts'
import { ConnectionAccount, HELD_LIMITS, type HeldLimit, type Sums, type User } from './holding.ts'
import { UnidentifiedConnections } from './unidentified.ts'

export interface LedgerLimits {
  /** Of one connection on which a client has shown who it is, for requests of unknown senders. */
  readonly connectionBytes: number
  /** Of one connection on which no client has shown who it is. */
  readonly unauthenticatedConnectionBytes: number
  /** Of all clients together that have not shown who they are. */
  readonly unauthenticatedBytes: number
  /** Connections on which no client has shown who it is, from the start of their TLS handshake. */
  readonly unauthenticatedConnections: number
  readonly userBytes: number
  /** Connections of one user. Each takes some 80 KiB, which are not charged. */
  readonly userConnections: number
  readonly totalBytes: number
}

export const DEFAULT_LEDGER_LIMITS: LedgerLimits = {
  connectionBytes: 16 * 1024 * 1024,
  unauthenticatedConnectionBytes: 1024 * 1024,
  unauthenticatedBytes: 16 * 1024 * 1024,
  unauthenticatedConnections: 300,
  userBytes: 64 * 1024 * 1024,
  userConnections: 2500,
  totalBytes: 192 * 1024 * 1024,
}

export interface NewConnection {
  readonly now?: number
  readonly address?: string
  readonly onKnown?: () => void
}

/** Only counts. */
export const NO_LEDGER_LIMITS: LedgerLimits = {
  connectionBytes: Number.POSITIVE_INFINITY,
  unauthenticatedConnectionBytes: Number.POSITIVE_INFINITY,
  unauthenticatedBytes: Number.POSITIVE_INFINITY,
  unauthenticatedConnections: Number.POSITIVE_INFINITY,
  userBytes: Number.POSITIVE_INFINITY,
  userConnections: Number.POSITIVE_INFINITY,
  totalBytes: Number.POSITIVE_INFINITY,
}

/** When the total is reached, users that hold less than this part of it are served all the same. */
const SMALL_USER_PART = 1 / 16
/** Beyond the total by this factor nothing more is taken from anyone. */
const TOTAL_OVERRUN = 1.25
/** With more users than this, those that hold nothing are forgotten at once. */
const IDLE_USERS_MAX = 1000

/** The accounts of one replica. */
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
  /** Users that hold anything, and some that did since the last sweep. */
  readonly #users = new Map<string, User>()
  readonly #unidentified: UnidentifiedConnections
  /** A request of this user is refused, or cut, for what is held. */
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

  /** Of all that is limited here. */
  get totalBytes(): number {
    return this.sums.total
  }

  get unauthenticatedBytes(): number {
    return this.sums.unauthenticated
  }

  get users(): number {
    return this.#users.size
  }

  heldBy(user: string): number {
    return this.#users.get(user)?.bytes ?? 0
  }

  /** Whether one more connection from there may begin; another may be cut in its favour. */
  hasRoom(address: string, now: number = performance.now()): boolean {
    return this.#unidentified.hasRoom(address, now)
  }

  /** A connection was closed that waited for room until it was too late. */
  refusedConnection(): void {
    this.#refused['unauthenticated-connections'] += 1
  }

  /**
   * For a new connection; `cut` ends it at once. `onKnown` is told when a client has shown on it who it
   * is, or when it is closed.
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
   * To be called about once a second. Cuts unauthenticated connections that are too many and not new
   * any more, and forgets users that hold nothing.
   */
  sweep(now: number = performance.now()): void {
    this.#unidentified.cutOld(now)
    for (const user of this.#users.values()) {
      if (isIdle(user)) this.#users.delete(user.name)
    }
  }

  /** @internal */
  known(account: ConnectionAccount): void {
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

  /** @internal Most come back at once, and to delete and add them takes longer than all the rest. */
  forget(user: User): void {
    if (isIdle(user) && this.#users.size > IDLE_USERS_MAX) this.#users.delete(user.name)
  }

  /** @internal */
  connected(user: User): HeldLimit | undefined {
    user.connections += 1
    if (user.connections <= this.limits.userConnections) return undefined
    this.#refused['user-connections'] += 1
    this.onRefused(user.name, 'user-connections')
    return 'user-connections'
  }

  /** @internal The limit that has been passed, if any. */
  judge(account: ConnectionAccount, user: User | undefined): HeldLimit | undefined {
    const limit = user === undefined ? this.#passedByStranger(account) : this.#passedBy(user)
    if (limit === undefined) return undefined
    this.#refused[limit] += 1
    if (user !== undefined) this.onRefused(user.name, limit)
    return limit
  }

  #passedBy(user: User): HeldLimit | undefined {
    const { limits, sums } = this
    if (user.bytes > limits.userBytes) return 'user'
    if (sums.total <= limits.totalBytes) return undefined
    const isSmall = user.bytes <= limits.totalBytes * SMALL_USER_PART
    return isSmall && sums.total <= limits.totalBytes * TOTAL_OVERRUN ? undefined : 'total'
  }

  /** The total is not looked at: whether a request is one of a user that holds little is not known. */
  #passedByStranger(account: ConnectionAccount): HeldLimit | undefined {
    if (account.bytes > account.bytesMax) return 'connection'
    while (this.sums.unauthenticated > this.limits.unauthenticatedBytes) {
      if (!this.#cutHeaviest()) break
    }
    return undefined
  }

  /**
   * To refuse the newest request would hurt the next client to come, and not the one to blame. The
   * list has no more than the limit has room for, and each look at it ends with one account less.
   */
  #cutHeaviest(): boolean {
    let heaviest: ConnectionAccount | undefined
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
