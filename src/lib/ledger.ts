/**
 * What is held in memory for clients, in bytes: by connection, by user and in total. Every request
 * has a holding; what is charged to it counts for its connection, for the user it turns out to come
 * from, and in total, until it is given back. A request of a client that has not shown who it is
 * counts for all such clients together.
 *
 * The figures are estimates: what was sent, and a fixed amount for what every request takes.
 */

/** What is held. The rest of a watch is limited by number, so it is shown but not limited here. */
export const HELD_KINDS = [
  'headers',
  'body',
  'response',
  'selector',
  'credentials',
  'audit',
  'request',
  'watch',
] as const
export type HeldKind = (typeof HELD_KINDS)[number]

export const HELD_LIMITS = [
  'connection',
  'unauthenticated',
  'unauthenticated-connections',
  'user',
  'total',
] as const
/** Which limit a client has run into. */
export type HeldLimit = (typeof HELD_LIMITS)[number]

export interface LedgerLimits {
  /** Of one connection. */
  readonly connectionBytes: number
  /** Of one connection on which no client has shown who it is. */
  readonly unauthenticatedConnectionBytes: number
  /** Of all clients together that have not shown who they are. */
  readonly unauthenticatedBytes: number
  /** Connections on which no client has shown who it is. */
  readonly unauthenticatedConnections: number
  readonly userBytes: number
  readonly totalBytes: number
}

export const DEFAULT_LEDGER_LIMITS: LedgerLimits = {
  connectionBytes: 16 * 1024 * 1024,
  unauthenticatedConnectionBytes: 1024 * 1024,
  unauthenticatedBytes: 16 * 1024 * 1024,
  unauthenticatedConnections: 1000,
  userBytes: 64 * 1024 * 1024,
  totalBytes: 192 * 1024 * 1024,
}

/** Only counts. */
export const NO_LEDGER_LIMITS: LedgerLimits = {
  connectionBytes: Number.POSITIVE_INFINITY,
  unauthenticatedConnectionBytes: Number.POSITIVE_INFINITY,
  unauthenticatedBytes: Number.POSITIVE_INFINITY,
  unauthenticatedConnections: Number.POSITIVE_INFINITY,
  userBytes: Number.POSITIVE_INFINITY,
  totalBytes: Number.POSITIVE_INFINITY,
}

/** The objects of a request that is under way, measured on HTTP/2. */
const REQUEST_BYTES = 16 * 1024
/** The same of a watch that waits for changes. */
const WATCH_BYTES = 32 * 1024
/** When the total is reached, users that hold less than this part of it are served all the same. */
const SMALL_USER_PART = 1 / 16
/** Beyond the total by this factor nothing more is taken from anyone. */
const TOTAL_OVERRUN = 1.25
/** A new connection is not cut for being unauthenticated before its client could send a request. */
const UNAUTHENTICATED_MS_MIN = 5000

interface User {
  readonly name: string
  bytes: number
  holdings: number
}

/** The accounts of one replica. */
export class MemoryLedger {
  readonly limits: LedgerLimits
  readonly #held: Record<HeldKind, number> = zeros(HELD_KINDS)
  readonly #refused: Record<HeldLimit, number> = zeros(HELD_LIMITS)
  /** Users that hold anything. */
  readonly #users = new Map<string, User>()
  /** Connections on which no client has shown who it is, oldest first. */
  readonly #strangers = new Set<ConnectionAccount>()
  /** A request of this user is refused, or cut, for what is held. */
  onRefused: (user: string, limit: HeldLimit) => void = () => {}
  #total = 0
  #unauthenticated = 0

  constructor(limits: LedgerLimits = DEFAULT_LEDGER_LIMITS) {
    this.limits = limits
  }

  get held(): Readonly<Record<HeldKind, number>> {
    return this.#held
  }

  /** How often each limit was reached. */
  get refused(): Readonly<Record<HeldLimit, number>> {
    return this.#refused
  }

  get unauthenticatedConnections(): number {
    return this.#strangers.size
  }

  /** Of all that is limited here. */
  get totalBytes(): number {
    return this.#total
  }

  heldBy(user: string): number {
    return this.#users.get(user)?.bytes ?? 0
  }

  /** For a new connection; `cut` ends it at once. */
  connection(cut: () => void, now: number = performance.now()): ConnectionAccount {
    const account = new ConnectionAccount(this, cut, now)
    this.#strangers.add(account)
    if (this.#strangers.size > this.limits.unauthenticatedConnections) this.#cutOldest(now)
    return account
  }

  /** @internal */
  known(account: ConnectionAccount): void {
    this.#strangers.delete(account)
  }

  /** @internal */
  userOf(name: string): User {
    let user = this.#users.get(name)
    if (user === undefined) {
      user = { name, bytes: 0, holdings: 0 }
      this.#users.set(name, user)
    }
    return user
  }

  /** @internal */
  forget(user: User): void {
    if (user.holdings === 0) this.#users.delete(user.name)
  }

  /** @internal */
  count(kind: HeldKind, bytes: number, user: User | undefined): void {
    this.#held[kind] += bytes
    if (kind === 'watch') return
    this.#total += bytes
    if (user === undefined) this.#unauthenticated += bytes
    else user.bytes += bytes
  }

  /** @internal What was unauthenticated turns out to be this user's. */
  identify(bytes: number, user: User): void {
    this.#unauthenticated -= bytes
    user.bytes += bytes
  }

  /** @internal The limit that has been passed, if any. */
  judge(account: ConnectionAccount, user: User | undefined): HeldLimit | undefined {
    const limit = this.#passed(account, user)
    if (limit === undefined) return undefined
    this.#refused[limit] += 1
    if (user !== undefined) this.onRefused(user.name, limit)
    return limit
  }

  #passed(account: ConnectionAccount, user: User | undefined): HeldLimit | undefined {
    const { limits } = this
    if (account.bytes > account.bytesMax) return 'connection'
    if (user === undefined) {
      if (this.#unauthenticated > limits.unauthenticatedBytes) this.#cutHeaviest()
      return this.#total > limits.totalBytes * TOTAL_OVERRUN ? 'total' : undefined
    }
    if (user.bytes > limits.userBytes) return 'user'
    if (this.#total <= limits.totalBytes) return undefined
    const isSmall = user.bytes <= limits.totalBytes * SMALL_USER_PART
    return isSmall && this.#total <= limits.totalBytes * TOTAL_OVERRUN ? undefined : 'total'
  }

  /** To refuse the newest request would hurt the next client to come, and not the one to blame. */
  #cutHeaviest(): void {
    let heaviest: ConnectionAccount | undefined
    for (const account of this.#strangers) {
      if (account.bytes > (heaviest?.bytes ?? 0)) heaviest = account
    }
    if (heaviest === undefined) return
    this.#refused.unauthenticated += 1
    this.#strangers.delete(heaviest)
    heaviest.cut()
  }

  #cutOldest(now: number): void {
    const [oldest] = this.#strangers
    if (oldest === undefined || now - oldest.since < UNAUTHENTICATED_MS_MIN) return
    this.#refused['unauthenticated-connections'] += 1
    this.#strangers.delete(oldest)
    oldest.cut()
  }
}

/** What is held for one connection. */
export class ConnectionAccount {
  readonly cut: () => void
  readonly since: number
  readonly #ledger: MemoryLedger
  #isKnown = false
  bytes = 0

  constructor(ledger: MemoryLedger, cut: () => void, since: number) {
    this.#ledger = ledger
    this.cut = cut
    this.since = since
  }

  get bytesMax(): number {
    const { connectionBytes, unauthenticatedConnectionBytes } = this.#ledger.limits
    return this.#isKnown ? connectionBytes : unauthenticatedConnectionBytes
  }

  /** For a new request with so many bytes of headers. */
  open(headerBytes: number): Holding {
    return new Holding(this.#ledger, this, headerBytes)
  }

  /** A client has shown on it who it is. */
  identified(): void {
    if (this.#isKnown) return
    this.#isKnown = true
    this.#ledger.known(this)
  }

  close(): void {
    this.#ledger.known(this)
  }
}

/** What is held for one request. */
export class Holding implements Disposable {
  readonly #ledger: MemoryLedger
  readonly #account: ConnectionAccount
  readonly #bytes: Record<HeldKind, number>
  #user: User | undefined
  #isReleased = false

  constructor(ledger: MemoryLedger, account: ConnectionAccount, headerBytes: number) {
    this.#ledger = ledger
    this.#account = account
    this.#bytes = { ...NOTHING_HELD }
    this.#add('request', REQUEST_BYTES)
    this.#add('headers', headerBytes)
  }

  /** The limit that is passed with what is held already, if any. */
  passed(): HeldLimit | undefined {
    return this.#ledger.judge(this.#account, this.#user)
  }

  /** Charges more; when that passes a limit it is not charged, and the limit is returned. */
  hold(kind: HeldKind, bytes: number): HeldLimit | undefined {
    if (this.#isReleased) return undefined
    this.#add(kind, bytes)
    const limit = this.#ledger.judge(this.#account, this.#user)
    if (limit !== undefined) this.#add(kind, -bytes)
    return limit
  }

  /** Gives back all of a kind. */
  drop(kind: HeldKind): void {
    const bytes = this.#bytes[kind]
    if (bytes > 0) this.#add(kind, -bytes)
  }

  /** The request is this user's; a limit is returned when that is more than the user may hold. */
  own(name: string): HeldLimit | undefined {
    if (this.#isReleased) return undefined
    this.#account.identified()
    const user = this.#ledger.userOf(name)
    user.holdings += 1
    this.#ledger.identify(this.#limited(), user)
    this.#user = user
    return this.#ledger.judge(this.#account, user)
  }

  /** The request has become a watch, and waits. */
  becomeWatch(): void {
    if (this.#isReleased || this.#bytes.watch > 0) return
    this.drop('request')
    this.drop('response')
    this.#add('watch', WATCH_BYTES)
  }

  /** Ends the connection that the request came on. */
  cutConnection(): void {
    this.#account.cut()
  }

  [Symbol.dispose](): void {
    if (this.#isReleased) return
    for (const kind of HELD_KINDS) this.drop(kind)
    this.#isReleased = true
    if (this.#user === undefined) return
    this.#user.holdings -= 1
    this.#ledger.forget(this.#user)
  }

  #add(kind: HeldKind, bytes: number): void {
    this.#bytes[kind] += bytes
    if (kind !== 'watch') this.#account.bytes += bytes
    this.#ledger.count(kind, bytes, this.#user)
  }

  #limited(): number {
    let bytes = 0
    for (const kind of HELD_KINDS) if (kind !== 'watch') bytes += this.#bytes[kind]
    return bytes
  }
}

const NOTHING_HELD: Readonly<Record<HeldKind, number>> = {
  headers: 0,
  body: 0,
  response: 0,
  selector: 0,
  credentials: 0,
  audit: 0,
  request: 0,
  watch: 0,
}

function zeros<K extends string>(keys: readonly K[]): Record<K, number> {
  return Object.fromEntries(keys.map((key) => [key, 0])) as Record<K, number>
}
