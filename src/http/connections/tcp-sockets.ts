import type { Socket } from 'node:net'

/**
 * The open TCP sockets of a listener. Finds the one under a TLS socket, for which Node has no public
 * API, by the addresses and ports of both ends: no two open connections share all four. A client may
 * reuse its port before the close of its former connection is noticed; then neither is found.
 */
export class TcpSockets {
  readonly #sockets = new Set<Socket>()
  readonly #byEnds = new Map<string, Socket>()

  get size(): number {
    return this.#sockets.size
  }

  [Symbol.iterator](): Iterator<Socket> {
    return this.#sockets.values()
  }

  add(socket: Socket): void {
    const ends = endsOf(socket)
    this.#sockets.add(socket)
    if (ends !== undefined && !this.#byEnds.delete(ends)) this.#byEnds.set(ends, socket)
    socket.once('close', () => {
      this.#sockets.delete(socket)
      if (ends !== undefined && this.#byEnds.get(ends) === socket) this.#byEnds.delete(ends)
    })
  }

  /** Undefined if the client has already disconnected, or if two sockets have the same ends. */
  below(tlsSocket: Socket): Socket | undefined {
    const ends = endsOf(tlsSocket)
    return ends === undefined ? undefined : this.#byEnds.get(ends)
  }
}

/** Undefined when the socket is not connected. */
function endsOf(socket: Socket): string | undefined {
  const { remoteAddress, remotePort, localAddress, localPort } = socket
  if (remoteAddress === undefined || localAddress === undefined) return undefined
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`
}
