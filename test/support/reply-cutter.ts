import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

/**
 * A TCP proxy that forwards requests and holds replies back, until the test destroys the
 * connections: a request was then applied or not, and no client knows. For `await using`.
 */
export class ReplyCutter implements AsyncDisposable {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  /** Holds replies back from now on, on new connections too. */
  isHolding = false

  static async start(target: string): Promise<ReplyCutter> {
    const { hostname, port } = new URL(target)
    const server = createServer()
    const cutter = new ReplyCutter(server)
    server.on('connection', (client) => cutter.#accept(client, connect(Number(port), hostname)))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return cutter
  }

  private constructor(server: Server) {
    this.#server = server
  }

  get endpoint(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** Destroys every connection. */
  cut(): void {
    for (const socket of [...this.#sockets]) socket.resetAndDestroy()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  #accept(client: Socket, server: Socket): void {
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(socket)
      socket.setNoDelay()
      socket.on('error', () => {})
      socket.on('close', () => {
        this.#sockets.delete(socket)
        other.destroy()
      })
    }
    client.on('data', (bytes) => server.write(bytes))
    server.on('data', (bytes) => {
      if (!this.isHolding) client.write(bytes)
    })
  }
}
