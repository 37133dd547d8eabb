import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

/**
 * One address in front of several servers. A new connection goes to the next server in rotation;
 * existing connections stay where they are, as with any balancer below HTTP.
 */
export class Balancer implements AsyncDisposable {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  #ports: readonly number[]
  #next = 0

  static async start(ports: readonly number[]): Promise<Balancer> {
    const balancer = new Balancer(ports)
    balancer.#server.listen(0, '127.0.0.1')
    await once(balancer.#server, 'listening')
    return balancer
  }

  private constructor(ports: readonly number[]) {
    this.#ports = ports
    this.#server = createServer((client) => this.#accept(client))
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** Directs new connections to these ports. */
  rotate(ports: readonly number[]): void {
    this.#ports = ports
  }

  #accept(client: Socket): void {
    const port = this.#ports[this.#next++ % this.#ports.length]
    if (port === undefined) {
      client.resetAndDestroy()
      return
    }
    const server = connect({ host: '127.0.0.1', port })
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(from)
      from.pipe(to)
      from.on('error', () => to.destroy())
      from.on('close', () => {
        this.#sockets.delete(from)
        to.destroy()
      })
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}
