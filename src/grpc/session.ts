/**
 * One gRPC connection over node:http2, from the attempt to connect until it is closed. It never
 * reconnects: the owner opens another session.
 *
 * It has what etcd and collectors of traces need, and no more: see
 * docs/decisions/0043-grpc-over-node-http2.md.
 */
import http2, {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  type OutgoingHttpHeaders,
} from 'node:http2'
import net, { type Socket } from 'node:net'
import tls, { type SecureContext } from 'node:tls'
import type { CallFailure } from './call-failure.ts'
import { DuplexCall } from './duplex-call.ts'
import { type StreamOpener, UnaryCall } from './unary-call.ts'

export type Target =
  | {
      readonly host: string
      readonly port: number
      /** Undefined: the connection is not encrypted. */
      readonly tls?: SecureContext | undefined
    }
  | {
      /** The path of a Unix socket. */
      readonly path: string
    }

export interface SessionOptions {
  readonly target: Target
  /** The server has sent its settings: calls can be started. */
  readonly onReady: () => void
  /**
   * No more calls can be started, because the connection is closed, or because the server announced
   * with a GOAWAY that it will be: then calls in flight may still end, and the owner drains the
   * session. Called once, and not after `drain` or `destroy`.
   */
  readonly onEnd: (error: Error | undefined) => void
  /** The session ends after this many calls. */
  readonly maxCalls?: number | undefined
}

export interface CallOptions<Response> {
  readonly path: string
  readonly metadata?: Readonly<Record<string, string>> | undefined
  readonly decode: (message: Buffer) => Response
  /** A message that the server announces as longer ends the call before it is buffered. */
  readonly maxBytes: number
}

export interface DuplexOptions<Response> extends CallOptions<Response> {
  /** The number of messages that may wait to be read before the server has to wait. */
  readonly readAhead?: number | undefined
}

export interface UnaryOptions<Response> extends CallOptions<Response> {
  readonly message: Buffer
  readonly timeoutMs: number
}

/** With the default of 64 KiB, a page of events would take hundreds of round trips. */
const windowBytes = 4 * 1024 * 1024
/** A connection has 2^30 streams, one for each call, and then fails all calls. */
const defaultMaxCalls = 2 ** 29
/** Longer than any call. A server that does not close its side after a GOAWAY is cut off then. */
const drainMs = 30_000
/**
 * etcd allows a ping every 5 s while a call is in flight, and none otherwise; it responds to more
 * with GOAWAY. The margin is for pings that do not take equally long to arrive.
 */
const minPingIntervalMs = 5_500
const pingTimeoutMs = 3_000

export class Session implements StreamOpener {
  /** Whether the server has responded to any call. */
  hasResponded = false
  /** Whether the server has announced that it will close the connection. */
  isGoingAway = false
  readonly #http2: ClientHttp2Session
  readonly #socket: Socket
  readonly #headers: OutgoingHttpHeaders
  readonly #maxCalls: number
  readonly #onEnd: SessionOptions['onEnd']
  #callsStarted = 0
  #callsInFlight = 0
  #hasEnded = false
  #pingedAt = Number.NEGATIVE_INFINITY
  /** Present while a ping has no response, or until the next one may be sent. */
  #pingTimer: NodeJS.Timeout | undefined

  constructor({ target, onReady, onEnd, maxCalls }: SessionOptions) {
    this.#maxCalls = maxCalls ?? defaultMaxCalls
    this.#onEnd = onEnd
    this.#headers = {
      ':method': 'POST',
      ':authority': authorityOf(target),
      'content-type': 'application/grpc',
      te: 'trailers',
      'user-agent': 'tidings',
    }
    const isEncrypted = 'tls' in target && target.tls !== undefined
    const socket = openSocket(target)
    const opened = http2.connect(isEncrypted ? 'https://server' : 'http://server', {
      createConnection: () => socket,
      settings: { enablePush: false, initialWindowSize: windowBytes },
      maxSessionMemory: Number.MAX_SAFE_INTEGER,
    })
    this.#socket = socket
    this.#http2 = opened
    let failure: Error | undefined
    opened.on('error', (error) => {
      failure ??= error
    })
    // Node does not close a session whose server refuses our certificate after the handshake.
    socket.on('error', (error) => {
      failure = error
      this.#destroy()
    })
    socket.on('close', () => opened.destroy())
    opened.once('connect', () => opened.setLocalWindowSize(windowBytes))
    // Not at `connect`: a server that is paused accepts connections, and sends nothing.
    opened.once('remoteSettings', () => {
      if (!this.#hasEnded && !opened.destroyed) onReady()
    })
    opened.once('goaway', () => {
      this.isGoingAway = true
      this.#end(undefined)
    })
    opened.once('close', () => {
      this.#clearPingTimer()
      this.#end(failure)
    })
  }

  get isDestroyed(): boolean {
    return this.#http2.destroyed
  }

  request(headers: OutgoingHttpHeaders): ClientHttp2Stream | undefined {
    if (this.#hasEnded || this.#http2.closed || this.#http2.destroyed) return undefined
    this.#callsStarted += 1
    // Not at once: a session that is closed in the same tick loses the call.
    if (this.#callsStarted === this.#maxCalls) setImmediate(() => this.#end(undefined))
    const stream = this.#http2.request(headers)
    this.#callsInFlight += 1
    stream.once('response', () => {
      this.hasResponded = true
    })
    stream.once('close', () => {
      this.#callsInFlight -= 1
    })
    return stream
  }

  /** Returns a function that cancels the call. */
  unary<Response>(
    options: UnaryOptions<Response>,
    done: (failure: CallFailure | undefined, response?: Response) => void,
  ): () => void {
    const { message, timeoutMs, decode, maxBytes } = options
    const headers = this.#headersOf(options)
    headers['grpc-timeout'] = `${Math.max(1, Math.ceil(timeoutMs))}m`
    const call = new UnaryCall({ headers, message, timeoutMs, decode, maxBytes, done })
    call.start(this)
    return () => call.cancel()
  }

  duplex<Response>(options: DuplexOptions<Response>): DuplexCall<Response> {
    const { decode, maxBytes, readAhead } = options
    return new DuplexCall(this, { headers: this.#headersOf(options), decode, maxBytes, readAhead })
  }

  /**
   * Sends a ping, and destroys the session if nothing arrives for a while and the ping has no
   * response. Shortly after the last ping it is sent later, and without a call in flight it is not
   * sent: etcd would close the connection.
   */
  ping(): void {
    if (this.#callsInFlight === 0 || this.#http2.destroyed) return
    if (this.#pingTimer !== undefined) return
    const now = performance.now()
    const waitMs = this.#pingedAt + minPingIntervalMs - now
    if (waitMs > 0) {
      this.#pingTimer = setTimeout(() => {
        this.#pingTimer = undefined
        this.ping()
      }, waitMs)
      this.#pingTimer.unref()
      return
    }
    this.#pingedAt = now
    if (this.#http2.ping(() => this.#clearPingTimer())) this.#awaitPing()
  }

  /** Starts no more calls, and closes when those in flight have ended, or after a while. */
  drain(): void {
    this.#hasEnded = true
    if (this.#http2.destroyed) return
    this.#http2.close()
    const timer = setTimeout(() => this.#destroy(), drainMs)
    timer.unref()
    this.#http2.once('close', () => clearTimeout(timer))
  }

  /** Fails all calls in flight. */
  destroy(): void {
    this.#hasEnded = true
    this.#destroy()
  }

  /** The response to a ping may be behind megabytes of other responses: any byte is a sign of life. */
  #awaitPing(): void {
    const { bytesRead } = this.#socket
    const timer = setTimeout(() => {
      // When this process itself was stopped, what has arrived is read before this.
      setImmediate(() => {
        if (this.#pingTimer !== timer) return
        if (this.#socket.bytesRead === bytesRead) this.#destroy()
        else this.#awaitPing()
      })
    }, pingTimeoutMs)
    timer.unref()
    this.#pingTimer = timer
  }

  #clearPingTimer(): void {
    clearTimeout(this.#pingTimer)
    this.#pingTimer = undefined
  }

  /** Without a `destroy` of the socket, Node would wait for the server to close its side. */
  #destroy(): void {
    this.#http2.destroy()
    this.#socket.destroy()
  }

  #end(error: Error | undefined): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.#onEnd(error)
  }

  #headersOf({ path, metadata }: CallOptions<unknown>): OutgoingHttpHeaders {
    return { ...this.#headers, ':path': path, ...metadata }
  }
}

function authorityOf(target: Target): string {
  if ('path' in target) return 'localhost'
  const { host, port } = target
  return `${net.isIPv6(host) ? `[${host}]` : host}:${port}`
}

function openSocket(target: Target): Socket {
  if ('path' in target) return net.connect({ path: target.path })
  const { host, port, tls: secureContext } = target
  if (secureContext === undefined) return net.connect({ host, port, noDelay: true })
  return tls.connect({
    host,
    port,
    noDelay: true,
    secureContext,
    ALPNProtocols: ['h2'],
    // An address must not be sent as a name.
    ...(net.isIP(host) === 0 && { servername: host }),
    checkServerIdentity: (_name, certificate) => tls.checkServerIdentity(host, certificate),
  } as tls.ConnectionOptions)
}
