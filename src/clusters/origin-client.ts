import { once } from 'node:events'
import http, { type ClientRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import https from 'node:https'
import { urlToHttpOptions } from 'node:url'
import { AbortListener, LinkedAbort } from '../lib/abort.ts'
import { isLoopbackHttp, type KubeconfigServer } from './kubeconfig.ts'

const SOCKETS_MAX = 128
const IDLE_SOCKETS_MAX = 8
/** An unused connection is closed after this time. */
const UNUSED_MS = 60_000

export interface OriginClientOptions {
  /** Sent as User-Agent, such as `tidings/1.2.3`. */
  readonly userAgent?: string | undefined
  /** Requests in flight, watches included; others wait. */
  readonly socketsMax?: number | undefined
}

export interface OriginRequest {
  readonly method: 'GET' | 'POST'
  /** Relative to the path of the server's URL, with the query; '' is that URL itself. */
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Buffer
  /** Aborts the request, or the response while its body is being read. */
  readonly signal: AbortSignal
  /** Limits the time from the start of the request, including connecting, to its headers. */
  readonly headersTimeoutMs: number
  /** How long the reader of the body waits for the next bytes. Default: forever. */
  readonly idleTimeoutMs?: number
}

export interface OriginResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /**
   * Can be iterated once, with backpressure. Rejects with an OriginClientError when the connection
   * breaks or is idle for too long, and with the signal's reason when that was aborted. Leaving the
   * iteration early disposes of the response.
   */
  readonly body: AsyncIterable<Buffer>
  /** Must be called unless the body was read to its end; otherwise the connection stays in use. */
  dispose(): void
}

/** A request got no response, or only a part of it. The message contains no credentials. */
export class OriginClientError extends Error {
  override readonly name = 'OriginClientError'
}

/**
 * An HTTP/1.1 client for one server of a kubeconfig, with keep-alive connections. `source` is called
 * for each request, so that the next request uses a renewed token or certificate; requests in flight
 * keep their connections. Redirects are not followed. A request that the server dropped together with
 * an idle connection is sent again, so only requests that change nothing are allowed (reads and
 * reviews).
 */
export class OriginClient {
  readonly #source: () => KubeconfigServer
  readonly #options: OriginClientOptions
  #connections: Connections | undefined
  readonly #closed = new AbortController()

  constructor(source: () => KubeconfigServer, options: OriginClientOptions = {}) {
    this.#source = source
    this.#options = options
  }

  /**
   * Resolves when the response headers have arrived, with any status. Rejects with an
   * OriginClientError when there is no response, and with the reason of the signal when that is
   * aborted.
   */
  async request(wanted: OriginRequest): Promise<OriginResponse> {
    const { signal, headersTimeoutMs } = wanted
    signal.throwIfAborted()
    if (this.#closed.signal.aborted) throw new OriginClientError('the client is closed')
    const server = this.#source()
    using ended = new LinkedAbort(signal, this.#closed.signal)
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      ended.abort()
    }, headersTimeoutMs)
    try {
      return responseOf(await this.#send(server, wanted, ended.signal), wanted)
    } catch (cause) {
      signal.throwIfAborted()
      const why = isLate ? `no response within ${headersTimeoutMs} ms` : textOf(cause)
      throw new OriginClientError(`${server.url.origin}: ${why}`, { cause })
    } finally {
      clearTimeout(timer)
    }
  }

  /** Closes all connections; bodies being read reject. */
  close(): void {
    this.#closed.abort()
    this.#connections?.agent.destroy()
  }

  async #send(
    server: KubeconfigServer,
    wanted: OriginRequest,
    ended: AbortSignal,
  ): Promise<IncomingMessage> {
    const request = this.#start(server, wanted)
    try {
      return await headersOf(request, ended)
    } catch (error) {
      // The server may have just closed an idle connection.
      if (ended.aborted || !request.reusedSocket || !isReset(error)) throw error
      return await headersOf(this.#start(server, wanted), ended)
    }
  }

  #start(server: KubeconfigServer, wanted: OriginRequest): ClientRequest {
    const { method, path, headers, body } = wanted
    const { url, token } = server
    const { agent, start } = this.#connectionsTo(server)
    const below = path === '' ? url.pathname + url.search : url.pathname.replace(/\/$/, '') + path
    const request = start({
      ...urlToHttpOptions(url),
      path: below,
      method,
      agent,
      headers: {
        'user-agent': this.#options.userAgent ?? 'tidings',
        ...headers,
        ...(body === undefined ? {} : { 'content-length': body.length }),
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      },
    })
    request.end(body)
    return request
  }

  /** The agent for these credentials. Connections of an earlier agent close once they are free. */
  #connectionsTo(server: KubeconfigServer): Connections {
    const known = this.#connections
    if (known !== undefined && isSamePeer(known.server, server)) return known
    if (known !== undefined) retire(known.agent)
    const made = connectionsTo(server, this.#options.socketsMax ?? SOCKETS_MAX)
    this.#connections = made
    return made
  }
}

interface Connections {
  readonly server: KubeconfigServer
  readonly agent: http.Agent
  readonly start: (options: https.RequestOptions) => ClientRequest
}

function connectionsTo(server: KubeconfigServer, socketsMax: number): Connections {
  const { url, ca, clientCertificate, serverName } = server
  const pool = {
    keepAlive: true,
    maxSockets: socketsMax,
    maxFreeSockets: IDLE_SOCKETS_MAX,
    timeout: UNUSED_MS,
  }
  if (url.protocol !== 'https:') {
    // The kubeconfig was checked; a token must not cross the network if a caller forgot to.
    if (!isLoopbackHttp(url)) throw new Error(`${url.origin} must use https`)
    return { server, agent: new http.Agent(pool), start: (options) => http.request(options) }
  }
  const agent = new https.Agent({
    ...pool,
    minVersion: 'TLSv1.2',
    ...(ca === undefined ? {} : { ca }),
    ...(serverName === undefined ? {} : { servername: serverName }),
    ...clientCertificate,
  })
  return { server, agent, start: (options) => https.request(options) }
}

/** Whether connections made for one can be used for the other. Tokens are sent per request. */
function isSamePeer(one: KubeconfigServer, other: KubeconfigServer): boolean {
  return (
    one === other ||
    (one.url.origin === other.url.origin &&
      one.ca === other.ca &&
      one.serverName === other.serverName &&
      one.clientCertificate?.cert === other.clientCertificate?.cert &&
      one.clientCertificate?.key === other.clientCertificate?.key)
  )
}

/** Connections in use close when their requests end. */
function retire(agent: http.Agent): void {
  agent.maxFreeSockets = 0
  for (const sockets of Object.values(agent.freeSockets)) {
    for (const socket of sockets ?? []) socket.destroy()
  }
}

async function headersOf(request: ClientRequest, ended: AbortSignal): Promise<IncomingMessage> {
  try {
    const [response] = (await once(request, 'response', { signal: ended })) as [IncomingMessage]
    // The reader of the body gets connection errors; without a listener they would end the process.
    request.on('error', () => {})
    return response
  } catch (error) {
    // Later errors have no other listener.
    request.on('error', () => {}).destroy()
    throw error
  }
}

function responseOf(
  message: IncomingMessage,
  { signal, idleTimeoutMs }: OriginRequest,
): OriginResponse {
  const abort = (): void => void message.destroy()
  const listener = new AbortListener(signal, abort)
  message.once('close', () => listener[Symbol.dispose]())
  // A reader gets connection errors; without one they must not become uncaught exceptions.
  message.on('error', () => {})
  return {
    status: message.statusCode ?? 0,
    headers: message.headers,
    body: bytesOf(message, signal, idleTimeoutMs),
    dispose: abort,
  }
}

async function* bytesOf(
  message: IncomingMessage,
  signal: AbortSignal,
  idleTimeoutMs: number | undefined,
): AsyncGenerator<Buffer, void, undefined> {
  // Runs only while the reader waits: the time in which it is busy does not count.
  let timer: NodeJS.Timeout | undefined
  let isIdle = false
  const startTimer = (): void => {
    if (idleTimeoutMs === undefined) return
    timer = setTimeout(() => {
      isIdle = true
      message.destroy()
    }, idleTimeoutMs)
  }
  try {
    startTimer()
    for await (const chunk of message as AsyncIterable<Buffer>) {
      clearTimeout(timer)
      yield chunk
      startTimer()
    }
  } catch (cause) {
    signal.throwIfAborted()
    const why = isIdle ? `no bytes for ${idleTimeoutMs} ms` : textOf(cause)
    throw new OriginClientError(`the response broke off: ${why}`, { cause })
  } finally {
    clearTimeout(timer)
    message.destroy()
  }
}

function isReset(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return code === 'ECONNRESET' || code === 'EPIPE'
}

function textOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return 'code' in error && error.code !== 'ERR_STREAM_PREMATURE_CLOSE'
    ? `${error.message} (${String(error.code)})`
    : error.message
}
