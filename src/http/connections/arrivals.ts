import type { Server, Socket } from 'node:net'
import type { MemoryLedger } from '../../lib/client-memory/ledger.ts'
import type { Clock } from '../../lib/clock.ts'

/**
 * The search for an address with headroom stops after this many without: then these addresses use
 * most of it, or there is none at all.
 */
const ADDRESSES_ASKED_MAX = 8

type Accept = (socket: Socket) => void

export interface ArrivalsOptions {
  readonly ledger: Pick<MemoryLedger, 'canAccept' | 'refusedConnection'>
  readonly clock: Clock
  /** A connection that has waited this long is closed. */
  readonly waitMsMax: number
  /** Called before the connection is read. */
  readonly onBegin: (socket: Socket) => void
}

/**
 * The queue of new connections. It limits how many unauthenticated connections are read at the same
 * time, because a TLS handshake takes about 50 KiB and a millisecond of CPU, and any client can
 * start one. The other connections wait unread: a plain socket takes little memory. So when all
 * clients reconnect after a restart, they are accepted as fast as the CPU allows and none is
 * dropped. Addresses are served round-robin.
 */
export class Arrivals {
  readonly #options: ArrivalsOptions
  /** Sockets and their times of arrival, FIFO, keyed by address. */
  readonly #waiting = new Map<string, Map<Socket, number>>()
  #size = 0
  #accept: Accept = () => {}
  #isBeginning = false

  constructor(options: ArrivalsOptions) {
    this.#options = options
  }

  get waiting(): number {
    return this.#size
  }

  /** Intercepts the server's 'connection' events: the present listeners run when it accepts one. */
  attach(server: Server): void {
    const inner = server.listeners('connection') as Accept[]
    server.removeAllListeners('connection')
    this.#accept = (socket) => {
      for (const listener of inner) listener.call(server, socket)
    }
    server.on('connection', (socket: Socket) => {
      this.#add(socket)
      this.beginNext()
    })
  }

  /** Must be called when there may be headroom, and periodically. */
  beginNext(): void {
    // Prevents reentry: `canAccept` may drop another connection, which calls this again.
    if (this.#isBeginning || this.#size === 0) return
    this.#isBeginning = true
    let withoutHeadroom = 0
    for (const [address, sockets] of this.#waiting) {
      if (withoutHeadroom === ADDRESSES_ASKED_MAX) break
      if (!this.#options.ledger.canAccept(address)) {
        withoutHeadroom += 1
        continue
      }
      const [socket] = sockets.keys()
      // An address with more waiting connections moves to the end of the queue.
      this.#waiting.delete(address)
      if (sockets.size > 1) this.#waiting.set(address, sockets)
      if (socket !== undefined) this.#begin(socket, sockets)
    }
    this.#isBeginning = false
  }

  /** Closes connections that have waited too long. */
  sweep(): void {
    const { clock, waitMsMax, ledger } = this.#options
    for (const [address, sockets] of this.#waiting) {
      for (const [socket, since] of sockets) {
        if (clock.now() - since < waitMsMax) break
        sockets.delete(socket)
        this.#size -= 1
        ledger.refusedConnection()
        socket.destroy()
      }
      if (sockets.size === 0) this.#waiting.delete(address)
    }
  }

  #add(socket: Socket): void {
    const address = socket.remoteAddress ?? ''
    const sockets = this.#waiting.get(address) ?? new Map<Socket, number>()
    sockets.set(socket, this.#options.clock.now())
    this.#waiting.set(address, sockets)
    this.#size += 1
  }

  #begin(socket: Socket, sockets: Map<Socket, number>): void {
    sockets.delete(socket)
    this.#size -= 1
    if (socket.destroyed) return
    this.#options.onBegin(socket)
    this.#accept(socket)
  }
}
