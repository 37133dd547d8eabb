import http from 'node:http'
import type { Http2SecureServer, Http2Session } from 'node:http2'
import http2 from 'node:http2'
import type { AddressInfo, Socket } from 'node:net'
import net from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { TLSSocket } from 'node:tls'
import { within } from '../lib/abort.ts'
import type { ConnectionAccount } from '../lib/client-memory/connection-account.ts'
import { MemoryLedger, NO_LEDGER_LIMITS } from '../lib/client-memory/ledger.ts'
import type { Clock } from '../lib/clock.ts'
import { PlacedSet } from '../lib/placed-set.ts'
import { Arrivals } from './connections/arrivals.ts'
import { peerOf } from './connections/peer.ts'
import { ProxiedConnections, type ProxySettings } from './connections/proxied-connections.ts'
import { Sessions } from './connections/sessions.ts'
import { TcpSockets } from './connections/tcp-sockets.ts'
import type { Handler, Peer, Request, Response } from './exchange.ts'
import type { HttpLimits } from './limits.ts'
import { Http1Requests } from './protocols/http1-requests.ts'
import { Http2Requests } from './protocols/http2-requests.ts'
import type { RequestContext } from './request-lifecycle.ts'
import { connectionOptions, SWEEP_INTERVAL_MS, secureOptions } from './server-options.ts'
import { refusePlainHttp } from './tls/plain-on-tls.ts'
import { type ServingCertificate, secureContext, type TlsSettings } from './tls/secure-context.ts'

/**
 * How often connections that have not acknowledged our settings are checked. What such a client can
 * cost is bounded by what it can send in one interval.
 */
const UNSETTLED_INTERVAL_MS = 100
/** Long-running requests ended per batch at shutdown: clients must not reconnect all at once. */
const END_BATCH = 100
const END_BATCH_INTERVAL_MS = 50
/** How long clients may take at shutdown to receive what was sent, and to close their side. */
const SHUTDOWN_GRACE_MS = 1_000

export interface ListenerOptions {
  readonly host: string
  /** 0: the kernel chooses. */
  readonly port: number
  /** Undefined: the listener serves plain HTTP/1.1. */
  readonly tls: TlsSettings | undefined
  readonly limits: HttpLimits
  readonly clock: Clock
  /** Shared with the other listeners of the server. Undefined: memory is not limited. */
  readonly ledger?: MemoryLedger | undefined
  readonly handler: Handler
  /** The response when the handler has not returned one within the request timeout. */
  readonly lateResponse: (request: Request) => Response
  readonly onBug: (error: unknown, request: Request) => void
  /** Called when a TLS handshake fails, for any reason. */
  readonly onHandshakeError?: ((code: string) => void) | undefined
  /** Called when a response was aborted because its client did not read it. */
  readonly onStalled?: (() => void) | undefined
  /** Proxies whose connections start with a PROXY protocol header that names the client. */
  readonly proxies?: ProxySettings | undefined
}

/**
 * One listening socket that serves HTTP/2 and HTTP/1.1, chosen by ALPN. Starts a RequestLifecycle
 * for each request, and stops gracefully: requests in flight are finished first.
 */
export class Listener {
  readonly #options: ListenerOptions
  readonly #server: Http2SecureServer | http.Server
  readonly #sessions: Sessions
  readonly #sockets = new TcpSockets()
  /** TCP sockets whose TLS handshake is complete. */
  readonly #secured = new WeakSet<Socket>()
  /** Keyed by HTTP/2 session, or by the socket of HTTP/1.1. */
  readonly #peers = new WeakMap<object, Peer>()
  readonly #ledger: MemoryLedger
  /** Keyed by HTTP/2 session, TLS socket and TCP socket, which share one account. */
  readonly #accounts = new WeakMap<object, ConnectionAccount>()
  readonly #context: RequestContext
  readonly #proxied: ProxiedConnections | undefined
  readonly #arrivals: Arrivals | undefined
  #tls: TlsSettings | undefined
  #sweepers: readonly NodeJS.Timeout[] = []
  #sweptAt: number
  /**
   * How long this process ran, measured by its sweeps. Time in which the process was suspended does
   * not count, so that no client counts as stalled because of it.
   */
  #awakeMs = 0

  constructor(options: ListenerOptions) {
    this.#options = options
    this.#tls = options.tls
    this.#sweptAt = options.clock.now()
    this.#ledger = options.ledger ?? new MemoryLedger(NO_LEDGER_LIMITS)
    this.#sessions = new Sessions(options.limits, options.clock)
    const { handler, lateResponse, limits, onBug } = options
    this.#context = {
      handler,
      lateResponse,
      limits,
      onBug,
      ordinary: new PlacedSet(),
      longRunning: new PlacedSet(),
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
        onBegin: (socket) => this.#accountOf(socket),
      })
      this.#arrivals.attach(this.#server)
    }
    this.#server.on('connection', (socket: Socket) => this.#sockets.add(socket))
  }

  /** Rejects when the port is in use; may then be called again. */
  async listen(port: number = this.#options.port): Promise<AddressInfo> {
    const { host } = this.#options
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
    for (const requests of [this.#context.ordinary, this.#context.longRunning]) {
      for (const request of requests) {
        if (!request.sweep(this.#awakeMs)) continue
        this.#options.onStalled?.()
        this.#sessions.stalled(request.connection as Http2Session)
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

  /** Connections that are not read yet, because too many others are still unauthenticated. */
  get waitingCount(): number {
    return this.#arrivals?.waiting ?? 0
  }

  /** New handshakes use this certificate; existing connections keep theirs. */
  renewCertificate(certificate: ServingCertificate): void {
    this.#renew({ certificate })
  }

  /** New handshakes verify client certificates against these authorities, if they request any. */
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
   * Stops accepting connections and announces the end of the open ones with GOAWAY or
   * `Connection: close`. A request that still arrives is served on HTTP/1.1. On HTTP/2 it is not
   * served; the client knows from the GOAWAY that it can send it to another replica.
   */
  stopAccepting(): void {
    // Closes only the listening socket: the close() of the http classes would also close idle
    // connections at once.
    net.Server.prototype.close.call(this.#server)
    this.#context.isDraining = true
    this.#sessions.announceEnd()
  }

  /** Closes idle connections now, and the others after their last request. */
  closeIdle(): void {
    ;(this.#server as http.Server).closeIdleConnections()
    this.#sessions.close()
  }

  /** Resolves when no request is in flight, except long-running ones. */
  async quiet(): Promise<void> {
    while (this.#context.ordinary.size > 0) {
      await Promise.all([...this.#context.ordinary].map((request) => request.drained))
    }
  }

  /** Ends long-running requests in batches, then waits up to `waitMsMax` for them to close. */
  async endLongRequests(waitMsMax: number): Promise<void> {
    const all = [...this.#context.longRunning]
    for (let start = 0; start < all.length; start += END_BATCH) {
      for (const request of all.slice(start, start + END_BATCH)) request.end()
      await sleep(END_BATCH_INTERVAL_MS)
    }
    await within(waitMsMax, Promise.all(all.map((request) => request.closed)))
  }

  /**
   * Destroys all connections that are left. After `closeIdle` they end by themselves: a client that
   * still sends something, such as a WINDOW_UPDATE, would get a reset from a destroyed socket, and
   * lose what it has not received yet. So they get a moment, unless the handshake is incomplete.
   */
  async close(): Promise<void> {
    for (const sweeper of this.#sweepers) clearInterval(sweeper)
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    for (const socket of this.#sockets) if (!this.#secured.has(socket)) socket.destroy()
    if (this.#context.isDraining) await within(SHUTDOWN_GRACE_MS, closed)
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }

  #tlsServer(tls: TlsSettings): Http2SecureServer {
    const server = http2.createSecureServer(secureOptions(tls, this.#options.limits))
    // Before Node's own listener, which creates the session and emits 'session' synchronously.
    let arriving: TLSSocket | undefined
    server.prependListener('secureConnection', (socket) => {
      arriving = socket
      const below = this.#sockets.below(socket)
      // The client has disconnected, and its address is unknown: none of its requests may run.
      if (below === undefined) socket.destroy()
      const tcp = below ?? socket
      this.#secured.add(tcp)
      this.#accounts.set(socket, this.#accountOf(tcp))
      this.#peers.set(socket, peerOf(socket, this.#proxied?.callerOf(tcp)))
    })
    server.on('session', (session) => {
      if (arriving === undefined) return
      this.#accounts.set(session, this.#accountOf(arriving))
      this.#peers.set(session, this.#peerOf(arriving))
      this.#sessions.add(session, arriving)
    })
    server.on('tlsClientError', (error: NodeJS.ErrnoException, socket) => {
      this.#options.onHandshakeError?.(error.code ?? '')
      refusePlainHttp(error, this.#sockets.below(socket))
    })
    this.#attachHttp1(server)
    new Http2Requests({
      context: this.#context,
      sessions: this.#sessions,
      accountOf: (session) => this.#accounts.get(session),
      peerOf: (session) => this.#peers.get(session),
    }).attach(server)
    return server
  }

  #plainServer(): http.Server {
    const server = http.createServer(connectionOptions(this.#options.limits))
    this.#attachHttp1(server)
    return server
  }

  #attachHttp1(server: Http2SecureServer | http.Server): void {
    new Http1Requests({
      context: this.#context,
      accountOf: (socket) => this.#accountOf(socket),
      peerOf: (socket) => this.#peerOf(socket),
    }).attach(server)
  }

  /** The account of a connection, opened on the first call. */
  #accountOf(socket: Socket): ConnectionAccount {
    let account = this.#accounts.get(socket)
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

  /** A connection without TLS has none before its first request. */
  #peerOf(socket: Socket): Peer {
    let peer = this.#peers.get(socket)
    if (peer === undefined) {
      peer = peerOf(socket, this.#proxied?.callerOf(socket))
      this.#peers.set(socket, peer)
    }
    return peer
  }
}
