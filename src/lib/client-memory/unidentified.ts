/** Limits the connections on which no client has authenticated, and decides which are closed. */

/** A younger connection is not closed, so that its client can send a request; see LARGE_PART. */
const MS_MIN = 2000
/** An address with a smaller share of the limit may displace a connection of a large one. */
const SMALL_PART = 1 / 8
/** An address with a larger share of the limit loses connections, even young ones. */
const LARGE_PART = 1 / 2

export interface Unidentified {
  readonly since: number
  /** The client's address. */
  readonly address: string
  cut(): void
}

export class UnidentifiedConnections {
  readonly #max: number
  readonly #onCut: () => void
  /** Oldest first. */
  readonly #all = new Set<Unidentified>()
  readonly #byAddress = new Map<string, number>()

  /** Calls `onCut` for each connection that is closed because there are too many. */
  constructor(max: number, onCut: () => void) {
    this.#max = max
    this.#onCut = onCut
  }

  get size(): number {
    return this.#all.size
  }

  add(connection: Unidentified): void {
    this.#all.add(connection)
    this.#count(connection.address, 1)
  }

  delete(connection: Unidentified): void {
    if (this.#all.delete(connection)) this.#count(connection.address, -1)
  }

  /**
   * Whether one more connection may be accepted. At the limit, an old connection is closed for it, or
   * one of an address that holds most of them, so that neither silent connections nor a burst from one
   * address can lock out other clients.
   */
  canAccept(address: string, now: number): boolean {
    if (this.#all.size < this.#max) return true
    const [oldest] = this.#all
    const isOld = oldest !== undefined && now - oldest.since >= MS_MIN
    const evicted = isOld ? oldest : this.#ofLargest(address)
    if (evicted === undefined) return false
    this.#cut(evicted)
    return true
  }

  /** Closes the oldest connections beyond the limit, except young ones. */
  cutOld(now: number): void {
    for (const oldest of this.#all) {
      if (this.#all.size <= this.#max || now - oldest.since < MS_MIN) return
      this.#cut(oldest)
    }
  }

  #cut(connection: Unidentified): void {
    this.delete(connection)
    this.#onCut()
    connection.cut()
  }

  /** The oldest connection of an address with a large share, if the newcomer's share is small. */
  #ofLargest(newcomer: string): Unidentified | undefined {
    if ((this.#byAddress.get(newcomer) ?? 0) >= this.#max * SMALL_PART) return undefined
    for (const [address, count] of this.#byAddress) {
      if (count <= this.#max * LARGE_PART) continue
      for (const connection of this.#all) if (connection.address === address) return connection
    }
    return undefined
  }

  #count(address: string, change: 1 | -1): void {
    const count = (this.#byAddress.get(address) ?? 0) + change
    if (count === 0) this.#byAddress.delete(address)
    else this.#byAddress.set(address, count)
  }
}
