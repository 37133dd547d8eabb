import type { Server, Socket } from 'node:net'
import type { Clock } from '../lib/clock.ts'
import type { MemoryLedger } from '../lib/ledger.ts'

/** If so many addresses have no room, it is because they have most of it, or there is none at all. */
const ADDRESSES_ASKED_MAX = 8

type Accept = (socket: Socket) => void

export interface ArrivalsOptions {
  readonly ledger: Pick<MemoryLedger, 'hasRoom' | 'refusedConnection'>
  readonly clock: Clock
  /** One that has waited for so long is closed. */
  readonly waitMsMax: number
  /** Called before anything is read of it. */
  readonly onBegin: (socket: Socket) => void
}

/**
 * New connections, of which only so many may be between their first byte and their first request. A
 * TLS handshake takes some 50 KiB and a millisecond of processor time, which anybody can ask for. The
 * others wait, unread: as plain sockets they take little. So a crowd that comes back after a restart
 * is let in as fast as the processor allows, and none of it is cut. Addresses take turns.
 */
export class Arrivals {
  readonly #options: ArrivalsOptions
  /** By address, in the order in which they came, with when that was. */
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

  /** Puts itself before everything that listens for connections of the server now. */
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

  /** To be called when there may be room, and from time to time. */
  beginNext(): void {
    // To make room one is cut, which is told here again.
    if (this.#isBeginning || this.#size === 0) return
    this.#isBeginning = true
    let asked = 0
    for (const [address, sockets] of this.#waiting) {
      if (asked === ADDRESSES_ASKED_MAX) break
      if (!this.#options.ledger.hasRoom(address)) {
        asked += 1
        continue
      }
      const [socket] = sockets.keys()
      // To the end, if more of it wait: the next turn is that of another address.
      this.#waiting.delete(address)
      if (sockets.size > 1) this.#waiting.set(address, sockets)
      if (socket !== undefined) this.#begin(socket, sockets)
    }
    this.#isBeginning = false
  }

  /** Closes those that have waited too long. */
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
