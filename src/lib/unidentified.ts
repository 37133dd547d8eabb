/** Connections on which no client has shown who it is: how many there may be, and which give way. */

/** A new one is not cut before its client could send a request, unless its address has most of them. */
const MS_MIN = 2000
/** An address that has less than this part of them gets in at the expense of one that has most. */
const SMALL_PART = 1 / 8
/** An address that has more than this part of them gives way. */
const LARGE_PART = 1 / 2

export interface Unidentified {
  readonly since: number
  /** From where it was opened. */
  readonly address: string
  cut(): void
}

export class UnidentifiedConnections {
  readonly #max: number
  readonly #onCut: () => void
  /** Oldest first. */
  readonly #all = new Set<Unidentified>()
  readonly #byAddress = new Map<string, number>()

  /** `onCut` is told of each that is cut since there are too many. */
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
   * Whether one more connection may begin. When there are as many as may be, one that is not new any
   * more is cut in its favour, or one of an address that has most of them: neither silent connections
   * nor new ones from one place keep others out.
   */
  hasRoom(address: string, now: number): boolean {
    if (this.#all.size < this.#max) return true
    const [oldest] = this.#all
    const isOld = oldest !== undefined && now - oldest.since >= MS_MIN
    const yielding = isOld ? oldest : this.#ofLargest(address)
    if (yielding === undefined) return false
    this.#cut(yielding)
    return true
  }

  /** Cuts those that are too many and not new any more. */
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

  /** The oldest of the address that has most, in favour of another that has few. */
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
