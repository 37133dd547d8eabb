import type { Member } from '../etcd/contract.ts'
import type { SimulatedProcess } from '../kernel/process.ts'
import type { Direction, Link, Network } from './network.ts'

/** How long a ping may take, as in src/grpc/session.ts. */
const pingTimeoutMs = 3_000

interface Pipe {
  /** Messages that wait because the direction is blocked. */
  held: (() => void)[]
  /** No message arrives before the one sent before it. */
  lastArrival: number
}

/** One TCP connection from a replica to a member. */
export class Connection {
  readonly link: Link
  readonly #network: Network
  readonly #process: SimulatedProcess
  readonly #onReset: () => void
  readonly #pipes: Readonly<Record<Direction, Pipe>> = {
    toMember: { held: [], lastArrival: 0 },
    toReplica: { held: [], lastArrival: 0 },
  }
  /** Whether the client side is open, and whether the member knows of the end. */
  #isOpen = true
  #isOpenAtMember = true
  /** Called on the member's side when the connection ends. */
  readonly #onEndAtMember = new Set<() => void>()

  constructor(options: {
    readonly network: Network
    readonly process: SimulatedProcess
    readonly link: Link
    readonly onReset: () => void
  }) {
    this.#network = options.network
    this.#process = options.process
    this.link = options.link
    this.#onReset = options.onReset
  }

  get member(): Member {
    return this.#network.member(this.link.member)
  }

  /** Registers work for the end of the connection at the member; returns a function to undo it. */
  onEndAtMember(run: () => void): () => void {
    this.#onEndAtMember.add(run)
    return () => this.#onEndAtMember.delete(run)
  }

  /** Sends a message to the member. Lost if the connection is reset first. */
  toMember(what: string, bytes: Buffer | undefined, receive: () => void): void {
    if (!this.#isOpen) return
    this.#send('toMember', () => {
      if (!this.#isOpenAtMember || !this.member.isUp) return
      this.#network.arrived(this.link, true, what, bytes)
      receive()
    })
  }

  /** Sends a message to the client. */
  toClient(what: string, bytes: Buffer | undefined, receive: () => void): void {
    if (!this.#isOpenAtMember) return
    this.#send('toReplica', () => {
      if (!this.#isOpen) return
      this.#network.arrived(this.link, false, what, bytes)
      receive()
    })
  }

  /** Both sides end now, at the latest after the delay; what is on its way is lost. */
  reset(): void {
    this.#endAtMember()
    if (!this.#isOpen) return
    this.#process.after(this.#network.delayMs(this.link), () => this.#resetAtClient())
  }

  /** The member's process ended: its machine tells the client, if that direction is not blocked. */
  endByMember(): void {
    this.#endAtMember()
    if (this.#isOpen) this.#send('toReplica', () => this.#resetAtClient())
  }

  /** The client closes; the member learns of it later, if the direction is not blocked. */
  closeByClient(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    if (!this.#isOpenAtMember) this.#network.forget(this)
    else this.#send('toMember', () => this.#endAtMember())
  }

  flush(direction: Direction): void {
    const pipe = this.#pipes[direction]
    const { held } = pipe
    pipe.held = []
    for (const arrive of held) this.#schedule(direction, pipe, arrive)
  }

  /** Closes the connection when nothing comes back for as long as a ping may take. */
  ping(): void {
    this.#process.after(pingTimeoutMs, () => {
      const silentSince = this.#network.silentSince(this.link)
      if (!this.#isOpen || silentSince === undefined) return
      if (this.#network.scheduler.now - silentSince < pingTimeoutMs) return
      this.#send('toMember', () => this.#endAtMember())
      this.#resetAtClient()
    })
  }

  #send(direction: Direction, arrive: () => void): void {
    const pipe = this.#pipes[direction]
    if (this.link.blockedSince[direction] !== undefined) pipe.held.push(arrive)
    else this.#schedule(direction, pipe, arrive)
  }

  #schedule(direction: Direction, pipe: Pipe, arrive: () => void): void {
    const { scheduler } = this.#network
    const at = Math.max(pipe.lastArrival, scheduler.now + this.#network.delayMs(this.link))
    pipe.lastArrival = at
    if (direction === 'toMember') scheduler.at(at, arrive)
    else this.#process.at(at, arrive)
  }

  #resetAtClient(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    if (!this.#isOpenAtMember) this.#network.forget(this)
    this.#onReset()
  }

  #endAtMember(): void {
    if (!this.#isOpenAtMember) return
    this.#isOpenAtMember = false
    if (!this.#isOpen) this.#network.forget(this)
    for (const run of this.#onEndAtMember) run()
    this.#onEndAtMember.clear()
  }
}
