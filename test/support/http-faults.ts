import { once } from 'node:events'
import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import type { KeyPair } from './certs.ts'

/**
 * What the proxy does with a request:
 * - `pass`: forwards it
 * - `lie`: reads it, and responds 200 without a body
 * - `hang`: reads it, and never responds
 * - `ignore`: does not even read it
 * - `status`: reads it, and responds with this status and body
 * - `cut`: forwards it, and destroys the connection after so many bytes of the reply's body
 * - `stall`: forwards it, and sends nothing more after so many bytes
 * - `trickle`: forwards it, and sends one byte of the reply's body every few milliseconds
 */
export type HttpFault =
  | { readonly kind: 'pass' | 'lie' | 'hang' | 'ignore' }
  | { readonly kind: 'status'; readonly status: number; readonly body: string }
  | { readonly kind: 'cut' | 'stall'; readonly afterBytes: number }
  | { readonly kind: 'trickle'; readonly everyMs: number }

/** An HTTP proxy in front of one server that fails on demand, for `await using`. */
export class HttpFaults implements AsyncDisposable {
  /** Decides each request; by default all are forwarded. */
  decide: (request: IncomingMessage) => HttpFault = () => ({ kind: 'pass' })
  /** `GET /path`, in the order of arrival. */
  readonly requests: string[] = []
  readonly #server: http.Server | https.Server
  readonly #target: URL

  /** With a certificate it is an HTTPS server; the target is not. */
  static async start(target: string, certificate?: KeyPair): Promise<HttpFaults> {
    const server =
      certificate === undefined ? http.createServer() : https.createServer({ ...certificate })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return new HttpFaults(server, new URL(target))
  }

  private constructor(server: http.Server | https.Server, target: URL) {
    this.#server = server
    this.#target = target
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      this.requests.push(`${request.method} ${request.url}`)
      request.on('error', () => {})
      this.#serve(this.decide(request), request, response)
    })
  }

  get endpoint(): string {
    const scheme = this.#server instanceof https.Server ? 'https' : 'http'
    return `${scheme}://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** The next requests get these, one after the other; those after them are forwarded. */
  inOrder(...faults: readonly HttpFault[]): void {
    const left = faults.values()
    this.decide = () => left.next().value ?? { kind: 'pass' }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }

  #serve(fault: HttpFault, request: IncomingMessage, response: ServerResponse): void {
    switch (fault.kind) {
      case 'ignore':
        request.pause()
        return
      case 'hang':
        request.resume()
        return
      case 'lie':
        request.resume().once('end', () => response.writeHead(200).end())
        return
      case 'status':
        request.resume().once('end', () => response.writeHead(fault.status).end(fault.body))
        return
      case 'pass':
      case 'cut':
      case 'stall':
      case 'trickle':
        this.#forward(fault, request, response)
        return
    }
  }

  #forward(fault: HttpFault, request: IncomingMessage, response: ServerResponse): void {
    const { method, url, headers } = request
    const { hostname, port } = this.#target
    // With its Host header, which is signed.
    const forwarded = http.request({ hostname, port, method, path: url, headers, agent: false })
    forwarded.on('error', () => response.destroy())
    forwarded.on('response', (reply) => {
      // Its reader gets the error, unless it has stopped reading.
      reply.on('error', () => {})
      response.writeHead(reply.statusCode ?? 500, reply.headers)
      this.#reply(fault, reply, response).catch(() => response.destroy())
    })
    request.pipe(forwarded)
  }

  async #reply(fault: HttpFault, reply: IncomingMessage, response: ServerResponse): Promise<void> {
    let left = 'afterBytes' in fault ? fault.afterBytes : Number.POSITIVE_INFINITY
    for await (const part of partsOf(reply, fault)) {
      await written(response, part.subarray(0, left))
      left -= part.length
      if (left <= 0) break
    }
    if (fault.kind === 'cut') response.destroy()
    else if (fault.kind !== 'stall') response.end()
  }
}

async function* partsOf(reply: AsyncIterable<Buffer>, fault: HttpFault): AsyncGenerator<Buffer> {
  for await (const piece of reply) {
    if (fault.kind !== 'trickle') {
      yield piece
      continue
    }
    for (const byte of piece) {
      await new Promise((resolve) => setTimeout(resolve, fault.everyMs))
      yield Buffer.of(byte)
    }
  }
}

/** Resolves when the bytes are sent; rejects if the client has gone. */
function written(response: ServerResponse, part: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    response.write(part, (error) => (error ? reject(error) : resolve()))
  })
}
