import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Http2SecureServer } from 'node:http2'
import type { Socket } from 'node:net'
import type { ConnectionAccount } from '../../lib/client-memory/connection-account.ts'
import { ExchangeError, headerValues, type Peer } from '../exchange.ts'
import { LINGER_MS } from '../limits.ts'
import { refuse } from '../refuse.ts'
import { type RequestContext, RequestLifecycle } from '../request-lifecycle.ts'
import { Http1Wire } from './http1-wire.ts'

export interface Http1RequestsOptions {
  readonly context: RequestContext
  readonly accountOf: (socket: Socket) => ConnectionAccount
  readonly peerOf: (socket: Socket) => Peer
}

/** Starts the requests of HTTP/1.1 connections, and refuses other input. */
export class Http1Requests {
  readonly #options: Http1RequestsOptions
  /** Requests in flight per connection: more than one if the client pipelines. */
  readonly #inFlight = new WeakMap<Socket, number>()
  /** The last request with a chunked body: no other body can be malformed. */
  readonly #chunked = new WeakMap<Socket, Http1Wire>()
  readonly #refused = new WeakSet<Socket>()

  constructor(options: Http1RequestsOptions) {
    this.#options = options
  }

  attach(server: Server | Http2SecureServer): void {
    const http1 = server as Server
    const accept = (request: IncomingMessage, response: ServerResponse): void =>
      this.#accept(request, response)
    http1.maxHeadersCount = this.#options.context.limits.headerCountMax
    http1.on('request', accept)
    http1.on('checkContinue', accept)
    http1.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) =>
      this.#onClientError(error, socket),
    )
    // Without a listener Node closes the connection without a response. The target of a CONNECT is
    // not a path. Node has removed its own error listener from the socket by now: a reset would end
    // the process.
    http1.on('connect', (_request, socket: Socket) => {
      socket.on('error', () => socket.destroy())
      if (this.#isBusy(socket)) socket.destroy()
      else refuseConnection(socket, undefined)
    })
  }

  #accept(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request
    if (!this.#admit(socket, response)) return
    const { context, accountOf, peerOf } = this.#options
    const wire = new Http1Wire(request, response, peerOf(socket))
    if (request.headers['transfer-encoding'] !== undefined) this.#chunked.set(socket, wire)
    // This server and a proxy in front of it might choose different ones.
    if (headerValues(wire, 'host').length > 1) refuse(wire, 400, 'too many Host headers\n')
    else RequestLifecycle.start(wire, context, accountOf(socket))
  }

  /** Limits the requests in flight on a connection: Node does not limit pipelined requests. */
  #admit(socket: Socket, response: ServerResponse): boolean {
    const inFlight = this.#inFlight.get(socket) ?? 0
    if (inFlight >= this.#options.context.limits.streamsMax) {
      socket.destroy()
      return false
    }
    this.#inFlight.set(socket, inFlight + 1)
    response.once('close', () => {
      this.#inFlight.set(socket, (this.#inFlight.get(socket) ?? 1) - 1)
    })
    return true
  }

  #isBusy(socket: Socket): boolean {
    return (this.#inFlight.get(socket) ?? 0) > 0
  }

  #onClientError(error: NodeJS.ErrnoException, socket: Socket): void {
    // Node reports the rest of the malformed input again, part by part.
    if (this.#refused.has(socket)) return
    this.#refused.add(socket)
    // Errors of the connection itself are reported here too; no response can be sent for them.
    const isHttp = /^(HPE_|ERR_HTTP_)/.test(error.code ?? '')
    if (isHttp && socket.writable && !this.#isBusy(socket)) refuseConnection(socket, error.code)
    else if (!this.#failBody(socket, error.code ?? '')) socket.destroy()
  }

  /**
   * Fails the request whose body is malformed, so that its handler can send the response. Returns
   * false when there is no such request, or it is too late.
   */
  #failBody(socket: Socket, code: string): boolean {
    // HPE_INVALID_EOF_STATE: nothing is malformed, the client has disconnected.
    if (!code.startsWith('HPE_') || code === 'HPE_INVALID_EOF_STATE') return false
    if (this.#chunked.get(socket)?.failBody(malformedBodyError(code)) !== true) return false
    // Node does not report the end of input that it cannot parse.
    socket.once('end', () => socket.destroy())
    return true
  }
}

/**
 * Sends an error response for input that cannot be parsed as a request, then closes the connection.
 * Node does the same but closes at once. If the client is still sending then, the connection is
 * reset, often before the client has read the response.
 */
function refuseConnection(socket: Socket, code: string | undefined): void {
  const status = STATUS_BY_ERROR.get(code ?? '') ?? '400 Bad Request'
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\n\r\n`)
  socket.resume()
  const timer = setTimeout(() => socket.destroy(), LINGER_MS)
  socket.once('close', () => clearTimeout(timer))
}

const STATUS_BY_ERROR: ReadonlyMap<string, string> = new Map([
  ['HPE_HEADER_OVERFLOW', '431 Request Header Fields Too Large'],
  ['ERR_HTTP_REQUEST_TIMEOUT', '408 Request Timeout'],
])

/** The error for a request body that cannot be parsed, reported while it is being read. */
function malformedBodyError(code: string): ExchangeError {
  if (code === 'HPE_CHUNK_EXTENSIONS_OVERFLOW')
    return new ExchangeError('too-large', 'a chunk extension in the request body is too long')
  return new ExchangeError('malformed', 'the request body is not valid HTTP/1.1 chunked encoding')
}
