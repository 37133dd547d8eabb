import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

/**
 * What the proxy does with bytes and connections:
 * - `pass`: forwards
 * - `delay`: forwards after `delayMs`, both ways
 * - `blackhole`: accepts everything and forwards nothing
 * - `cut-replies`: forwards requests; the first byte of a reply destroys the connection instead
 * - `refuse`: destroys new and existing connections
 */
export type Fault = 'pass' | 'delay' | 'blackhole' | 'cut-replies' | 'refuse'

/** A TCP proxy in front of one address that fails on demand, for `await using`. */
export class FaultProxy implements AsyncDisposable {
  readonly #server: Server
  readonly #pairs = new Set<Pair>()
  #fault: Fault = 'pass'
  #delayMs = 0
  /** Connections that `cut-replies` has destroyed. */
  cutCount = 0
  /** Bytes forwarded to clients so far. */
  bytesToClient = 0
  /** Connections accepted so far. */
  acceptedCount = 0

  /** `target` is `host:port` or a URL. */
  static async start(target: string): Promise<FaultProxy> {
    const { hostname, port } = new URL(target.includes('://') ? target : `tcp://${target}`)
    const server = createServer({ allowHalfOpen: true })
    const proxy = new FaultProxy(server)
    server.on('connection', (client) =>
      proxy.#accept(client, { host: hostname, port: Number(port) }),
    )
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return proxy
  }

  private constructor(server: Server) {
    this.#server = server
  }

  /** `host:port` to connect to. */
  get address(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  get connections(): number {
    return this.#pairs.size
  }

  /** Changes the mode; it also applies to existing connections. */
  set(fault: Fault, delayMs = 0): void {
    this.#fault = fault
    this.#delayMs = delayMs
    if (fault === 'refuse') this.cut()
  }

  /** Destroys both sides of every connection; new ones are accepted as before. */
  cut(): void {
    for (const pair of [...this.#pairs]) pair.destroy()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  #accept(client: Socket, target: { readonly host: string; readonly port: number }): void {
    if (this.#fault === 'refuse') {
      client.resetAndDestroy()
      return
    }
    this.acceptedCount++
    const server = connect(target)
    const pair = new Pair(client, server, () => this.#pairs.delete(pair))
    this.#pairs.add(pair)
    client.on('data', (bytes) => this.#forward(bytes, server))
    server.on('data', (bytes) => {
      if (this.#fault === 'cut-replies') {
        this.cutCount++
        pair.destroy()
      } else {
        this.bytesToClient += bytes.length
        this.#forward(bytes, client)
        // Backpressure: reads no faster than the client.
        if (client.writableNeedDrain) {
          server.pause()
          client.once('drain', () => server.resume())
        }
      }
    })
  }

  #forward(bytes: Buffer, to: Socket): void {
    if (this.#fault === 'blackhole') return
    if (this.#fault !== 'delay') {
      to.write(bytes)
      return
    }
    setTimeout(() => to.writable && to.write(bytes), this.#delayMs).unref()
  }
}

/** The two sides of one connection: closing one closes the other. */
class Pair {
  readonly #sockets: readonly Socket[]
  readonly #onEnd: () => void

  constructor(client: Socket, server: Socket, onEnd: () => void) {
    this.#sockets = [client, server]
    this.#onEnd = onEnd
    for (const socket of this.#sockets) {
      socket.setNoDelay()
      socket.on('error', () => this.destroy())
      socket.on('end', () => this.destroy())
      socket.on('close', () => this.destroy())
    }
  }

  destroy(): void {
    for (const socket of this.#sockets) socket.destroy()
    this.#onEnd()
  }
}
