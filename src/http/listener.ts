import type { IncomingMessage, ServerResponse } from 'node:http'
import http from 'node:http'
import type {
  Http2SecureServer,
  Http2Session,
  IncomingHttpHeaders,
  ServerHttp2Stream,
} from 'node:http2'
import http2 from 'node:http2'
import type { AddressInfo, Socket } from 'node:net'
import net from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { TLSSocket } from 'node:tls'
import { within } from '../lib/abort.ts'
import type { Clock } from '../lib/clock.ts'
import type { ConnectionAccount } from '../lib/holding.ts'
import { MemoryLedger, NO_LEDGER_LIMITS } from '../lib/ledger.ts'
import { Arrivals } from './arrivals.ts'
import type { ConversationContext } from './conversation.ts'
import { Conversation } from './conversation.ts'
import type { Handler, Peer, Request, Response } from './exchange.ts'
import { headerValues } from './exchange.ts'
import { AUTHORITY_BYTES_MAX, type HttpLimits } from './limits.ts'
import { belowTls, peerOf } from './peer.ts'
import { answerPlainHttp } from './plain-on-tls.ts'
import { ProxiedConnections, type ProxySettings } from './proxied-connections.ts'
import { refuse } from './refuse.ts'
import { type ServingCertificate, secureContext, type TlsSettings } from './secure-context.ts'
import { connectionOptions, SWEEP_INTERVAL_MS, secureOptions } from './server-options.ts'
import { Sessions } from './sessions.ts'
import { refuseConnection, unreadableBody } from './unreadable.ts'
import type { SentHeaders } from './wire.ts'
import { Http1Wire, Http2Wire } from './wire.ts'

/** What a client may cost that has not acknowledged our settings: as much as fits in between. */
const UNSETTLED_INTERVAL_MS = 100
/** How many long requests are ended in one go at shutdown, so that clients do not return as one. */
const END_SLICE = 100
const END_SLICE_INTERVAL_MS = 50

export type { ServingCertificate, TlsSettings } from './secure-context.ts'

export interface ListenerOptions {
  readonly host: string
  /** 0 lets the kernel choose. */
  readonly port: number
  /** Without it the listener speaks plain HTTP/1.1. */
  readonly tls: TlsSettings | undefined
  readonly limits: HttpLimits
  readonly clock: Clock
  /** Shared with other listeners of the server; without it, nothing is limited. */
  readonly ledger?: MemoryLedger | undefined
  readonly handler: Handler
  /** What a client gets when the handler has not answered within the request timeout. */
  readonly lateResponse: (request: Request) => Response
  readonly onBug: (error: unknown, request: Request) => void
  /** A client did not get through its handshake, for any reason. */
  readonly onHandshakeError?: ((code: string) => void) | undefined
  /** A response was cut because its client did not read it. */
  readonly onStalled?: (() => void) | undefined
  /** Proxies whose connections start with a header that names the caller. */
  readonly proxies?: ProxySettings | undefined
}

/**
 * One listening socket: HTTP/2 and HTTP/1.1 side by side, chosen by ALPN. It turns what arrives
 * into conversations and knows how to stop without hurting those under way.
 */
export class Listener {
  readonly #options: ListenerOptions
  readonly #server: Http2SecureServer | http.Server
  readonly #sessions: Sessions
  readonly #sockets = new Set<Socket>()
  readonly #peers = new WeakMap<object, Peer>()
  readonly #ledger: MemoryLedger
  readonly #accounts = new WeakMap<object, ConnectionAccount>()
  /** Requests under way on an HTTP/1.1 connection: more than one if the client does not wait. */
  readonly #underWay = new WeakMap<Socket, number>()
  /** The last request with a body in chunks: any other body can be read whatever is in it. */
  readonly #chunked = new WeakMap<Socket, Http1Wire>()
  readonly #context: ConversationContext
  readonly #proxied: ProxiedConnections | undefined
  readonly #arrivals: Arrivals | undefined
  #tls: TlsSettings | undefined
  #sweepers: readonly NodeJS.Timeout[] = []
  #sweptAt: number
  /** For how long this process ran: what clients did not take while it was stopped is not their fault. */
  #awakeMs = 0

  constructor(options: ListenerOptions) {
    this.#options = options
    this.#tls = options.tls
    this.#sweptAt = options.clock.now()
    this.#ledger = options.ledger ?? new MemoryLedger(NO_LEDGER_LIMITS)
    this.#sessions = new Sessions(options.limits, options.clock)
    this.#context = {
      handler: options.handler,
      lateResponse: options.lateResponse,
      limits: options.limits,
      onBug: options.onBug,
      ordinary: new Set(),
      longRunning: new Set(),
      isDraining: false,
    }
    this.#server = options.tls === undefined ? this.#plainServer() : this.#tlsServer(options.tls)
    this.#server.maxConnections = options.limits.connectionsMax
    if (options.proxies !== undefined) {
      this.#proxied = new ProxiedConnections(options.proxies, options.limits.handshakeTimeoutMs)
      this.#proxied.attach(this.#server)
    }
    if (options.tls !== undefined) {
      this.#arrivals = new Arrivals({
        ledger: this.#ledger,
        clock: options.clock,
        waitMsMax: options.limits.handshakeTimeoutMs,
        onBegin: (socket) => this.#openAccount(socket),
      })
      this.#arrivals.attach(this.#server)
    }
    this.#server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket)
      socket.once('close', () => this.#sockets.delete(socket))
    })
  }

  async listen(): Promise<AddressInfo> {
    const { host, port } = this.#options
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen({ host, port, backlog: 1024 }, () => {
        this.#server.off('error', reject)
        resolve()
      })
    })
    this.#sweepers = [
      setInterval(() => this.#sweep(), SWEEP_INTERVAL_MS).unref(),
      setInterval(() => this.#sweepOften(), UNSETTLED_INTERVAL_MS).unref(),
    ]
    return this.#server.address() as AddressInfo
  }

  #sweep(): void {
    const now = this.#options.clock.now()
    this.#awakeMs += Math.min(now - this.#sweptAt, 2 * SWEEP_INTERVAL_MS)
    this.#sweptAt = now
    for (const conversations of [this.#context.ordinary, this.#context.longRunning]) {
      for (const conversation of conversations) {
        if (!conversation.cutIfStalled(this.#awakeMs)) continue
        this.#options.onStalled?.()
        this.#sessions.stalled(conversation.connection as Http2Session)
      }
    }
    this.#sessions.sweep()
    this.#ledger.sweep()
  }

  #sweepOften(): void {
    this.#sessions.sweepUnsettled()
    this.#arrivals?.sweep()
    this.#arrivals?.beginNext()
  }

  get connectionCount(): number {
    return this.#sockets.size
  }

  /** Connections of which nothing is read yet, since too many others have not shown who they are. */
  get waitingCount(): number {
    return this.#arrivals?.waiting ?? 0
  }

  /** Handshakes from now on use this certificate; connections that exist are not touched. */
  renewCertificate(certificate: ServingCertificate): void {
    this.#renew({ certificate })
  }

  /** Handshakes from now on ask for a certificate of these authorities, if they asked for one. */
  renewClientCa(clientCa: string): void {
    this.#renew({ clientCa })
  }

  #renew(changed: Partial<TlsSettings>): void {
    if (this.#tls === undefined) return
    this.#tls = { ...this.#tls, ...changed }
    const server = this.#server as Http2SecureServer
    server.setSecureContext(secureContext(this.#tls))
  }

  /**
   * Takes no new connections and lets clients know, with GOAWAY or `Connection: close`, that
   * these are about to go. Requests that arrive all the same are served on HTTP/1.1; on HTTP/2
   * they are left to be sent elsewhere, which GOAWAY tells the client.
   */
  stopAccepting(): void {
    // The close() of the http classes would also drop connections at once; only the listening
    // socket is meant here.
    net.Server.prototype.close.call(this.#server)
    this.#context.isDraining = true
    this.#sessions.announceEnd()
  }

  /** Closes connections without a request under way, and the others after their last one. */
  closeIdle(): void {
    ;(this.#server as http.Server).closeIdleConnections()
    this.#sessions.close()
  }

  /** Resolves when no request is under way, long ones not counted. */
  async quiet(): Promise<void> {
    while (this.#context.ordinary.size > 0) {
      await Promise.all([...this.#context.ordinary].map((conversation) => conversation.left))
    }
  }

  /** Ends long requests a slice at a time and waits, within bounds, for their answers to end. */
  async endLongRequests(waitMsMax: number): Promise<void> {
    const all = [...this.#context.longRunning]
    for (let start = 0; start < all.length; start += END_SLICE) {
      for (const conversation of all.slice(start, start + END_SLICE)) conversation.end()
      await sleep(END_SLICE_INTERVAL_MS)
    }
    await within(waitMsMax, Promise.all(all.map((conversation) => conversation.closed)))
  }

  /** Ends whatever is left. */
  async close(): Promise<void> {
    for (const sweeper of this.#sweepers) clearInterval(sweeper)
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }

  #tlsServer(tls: TlsSettings): Http2SecureServer {
    const server = http2.createSecureServer(secureOptions(tls, this.#options.limits))
    // Ahead of Node's own listener, which makes the session and reports it before it returns.
    let arriving: TLSSocket | undefined
    server.prependListener('secureConnection', (socket) => {
      arriving = socket
      this.#openAccount(socket)
    })
    server.on('session', (session) => {
      if (arriving === undefined) return
      this.#accounts.set(session, this.#openAccount(arriving))
      this.#sessions.add(session, arriving)
    })
    server.on('tlsClientError', (error: NodeJS.ErrnoException, socket) => {
      this.#options.onHandshakeError?.(error.code ?? '')
      answerPlainHttp(error, socket)
    })
    this.#acceptHttp1(server)
    // Listening for HTTP/1.1 requests brings along Node's imitation of them on HTTP/2, which
    // costs more than the streams themselves.
    server.removeAllListeners('stream')
    const accept = (
      stream: ServerHttp2Stream,
      headers: IncomingHttpHeaders,
      _flags: number,
      rawHeaders: string[],
    ): void => this.#acceptHttp2(stream, { headers, rawHeaders })
    server.on('stream', accept)
    return server
  }

  #plainServer(): http.Server {
    const server = http.createServer(connectionOptions(this.#options.limits))
    this.#acceptHttp1(server)
    return server
  }

  #acceptHttp1(server: Http2SecureServer | http.Server): void {
    const accept = (request: IncomingMessage, response: ServerResponse): void => {
      const { socket } = request
      if (!this.#hasRoom(socket, response)) return
      const wire = new Http1Wire(request, response, this.#peer(socket, socket))
      if (request.headers['transfer-encoding'] !== undefined) this.#chunked.set(socket, wire)
      // Which of them was meant, we and a proxy in between might not agree on.
      if (headerValues(wire, 'host').length > 1) refuse(wire, 400, 'too many Host headers\n')
      else Conversation.start(wire, this.#context, this.#openAccount(socket))
    }
    const http1 = server as http.Server
    http1.maxHeadersCount = this.#options.limits.headerCountMax
    http1.on('request', accept)
    http1.on('checkContinue', accept)
    const refused = new WeakSet<object>()
    http1.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
      // The rest of what it sends is no better, and comes here piece by piece.
      if (refused.has(socket)) return
      refused.add(socket)
      // Errors of the connection itself come here too, and cannot be answered.
      const isHttp = /^(HPE_|ERR_HTTP_)/.test(error.code ?? '')
      const isBusy = (this.#underWay.get(socket) ?? 0) > 0
      if (isHttp && socket.writable && !isBusy) refuseConnection(socket, error.code)
      else if (!this.#breakOff(socket, error.code ?? '')) socket.destroy()
    })
    // Left alone, Node would close without a word. The target of a CONNECT is no path.
    http1.on('connect', (_request, socket: Socket) => {
      if ((this.#underWay.get(socket) ?? 0) > 0) socket.destroy()
      else refuseConnection(socket, undefined)
    })
  }

  /** Leaves it to the request whose body is no HTTP to say so; false when it cannot. */
  #breakOff(socket: Socket, code: string): boolean {
    // With the second nothing is wrong but that its client has left.
    if (!code.startsWith('HPE_') || code === 'HPE_INVALID_EOF_STATE') return false
    if (this.#chunked.get(socket)?.breakOff(unreadableBody(code)) !== true) return false
    // Node does not tell of the end of what it cannot read.
    socket.once('end', () => socket.destroy())
    return true
  }

  /** Node starts requests that are sent ahead all at once, without a limit of its own. */
  #hasRoom(socket: Socket, response: ServerResponse): boolean {
    const underWay = this.#underWay.get(socket) ?? 0
    if (underWay >= this.#options.limits.streamsMax) {
      socket.destroy()
      return false
    }
    this.#underWay.set(socket, underWay + 1)
    response.once('close', () => {
      this.#underWay.set(socket, (this.#underWay.get(socket) ?? 1) - 1)
    })
    return true
  }

  #acceptHttp2(stream: ServerHttp2Stream, sent: SentHeaders): void {
    const { session } = stream
    // A stream that fails is a client that is gone, which its 'close' tells us.
    stream.on('error', (error) => stream.destroy(error))
    // Node keeps a stream that was reset for as long as part of its body is unread.
    stream.once('aborted', () => process.nextTick(() => stream.destroy()))
    if (session === undefined) return
    if (!this.#sessions.streamOpened(session, stream.id ?? 0)) {
      stream.close(http2.constants.NGHTTP2_REFUSED_STREAM)
      return
    }
    stream.once('close', () => this.#sessions.streamClosed(session))
    const account = this.#accounts.get(session)
    if (account === undefined) return
    const wire = new Http2Wire(stream, sent, this.#peer(session, session.socket))
    const authority = sent.headers[':authority'] ?? sent.headers.host ?? ''
    const scheme = sent.headers[':scheme'] ?? ''
    // Nobody has held its headers to the limit so far.
    if (
      session.pendingSettingsAck &&
      lengthOf(sent.rawHeaders) > this.#options.limits.headerBytesMax
    )
      refuse(wire, 431, 'the headers are longer than any that could be meant\n')
    else if (authority.length + scheme.length > AUTHORITY_BYTES_MAX)
      refuse(wire, 431, 'the host is longer than any that could be meant\n')
    else Conversation.start(wire, this.#context, account)
  }

  /** Of a connection, made with the first call; TLS runs on a socket of its own. */
  #openAccount(socket: Socket): ConnectionAccount {
    let account = this.#accounts.get(socket) ?? this.#accounts.get(belowTls(socket))
    if (account === undefined) {
      const onKnown = (): void => this.#arrivals?.beginNext()
      const address = socket.remoteAddress ?? ''
      const opened = this.#ledger.connection(() => socket.destroy(), { address, onKnown })
      this.#accounts.set(socket, opened)
      socket.once('close', () => opened.close())
      account = opened
    }
    return account
  }

  #peer(connection: object, socket: Socket | TLSSocket): Peer {
    let peer = this.#peers.get(connection)
    if (peer === undefined) {
      peer = peerOf(socket, this.#proxied?.callerOf(socket))
      this.#peers.set(connection, peer)
    }
    return peer
  }
}

function lengthOf(texts: readonly string[]): number {
  let length = 0
  for (const text of texts) length += text.length
  return length
}

/** As it is written in URLs. */
export function addressText({ address, family, port }: AddressInfo): string {
  return family === 'IPv6' ? `[${address}]:${port}` : `${address}:${port}`
}
