import type { ConnectionAccount } from '../lib/client-memory/connection-account.ts'
import type { Holding, Revocable } from '../lib/client-memory/holding.ts'
import { Latch } from '../lib/latch.ts'
import type { Placed, PlacedSet } from '../lib/placed-set.ts'
import type { Lane } from '../lib/run-queue.ts'
import type { Span } from '../lib/tracing/span.ts'
import { type ReadBody, readBody } from './body.ts'
import { BodyWriter } from './body-writer.ts'
import type { Chunk, Handler, Peer, Request, RequestHeaders, Response } from './exchange.ts'
import { abandon, ExchangeError, HANDLER_HEADERS, isStream } from './exchange.ts'
import {
  HANDLER_HEADER_BYTES_MAX,
  type HttpLimits,
  PATH_BYTES_MAX,
  QUERY_BYTES_MAX,
  QUERY_PAIRS_MAX,
} from './limits.ts'
import { affordable, handlerHeaderBytes, headerMemory, waitingMemory } from './memory-charges.ts'
import { refuse, refuseForMemory } from './refuse.ts'
import { isLongQuery, splitTarget, type Target } from './target.ts'
import type { ConnectionAction, Wire } from './wire.ts'

/** What all requests of a listener share. */
export interface RequestContext {
  readonly handler: Handler
  /** The response when the handler has not returned one within the time limit. */
  readonly lateResponse: (request: Request) => Response
  readonly limits: HttpLimits
  readonly onBug: (error: unknown, request: Request) => void
  /** Requests that shutdown waits for; those in `longRunning` are ended instead. */
  readonly ordinary: PlacedSet<RequestLifecycle>
  readonly longRunning: PlacedSet<RequestLifecycle>
  /** Set when shutdown begins to close connections. */
  isDraining: boolean
}

/**
 * One request from its headers to the end of its response: calls the handler, sends the response
 * with backpressure, and aborts both when the time limit is reached.
 */
export class RequestLifecycle implements Request, Revocable, Placed {
  readonly method: string
  readonly path: string
  readonly peer: Peer
  readonly memory: Holding
  lane: Lane | undefined
  span: Span | undefined
  place = -1
  readonly #wire: Wire
  readonly #context: RequestContext
  readonly #deadline: NodeJS.Timeout
  #headers: RequestHeaders
  #rawHeaders: readonly string[]
  #search: string
  #query: URLSearchParams | undefined
  #controller: AbortController | undefined
  #abortReason: ExchangeError | undefined
  #body: ReadBody | undefined
  /** Time at which the body was first found incomplete. */
  #bodySince: number | undefined
  #isHandled = false
  #hasResponded = false
  #isFinished = false
  #isClosed = false
  #onEnd: Response['onEnd']
  #onIdle: Response['onIdle']
  #sentStatus = 0
  #sentBytes = 0
  #waiters: Waiters | undefined
  #bodyWriter: BodyWriter | undefined
  /** Sent part of the response at the last check, and the time since which no more was sent. */
  #progress = 0
  #stalledSince: number | undefined

  /**
   * Starts a request, or refuses it at once when its target is invalid or too long. A request whose
   * client has already disconnected is ignored: its output emits no more 'close' event, so the
   * request would stay in flight forever.
   */
  static start(wire: Wire, context: RequestContext, account: ConnectionAccount): void {
    if (wire.output.destroyed || account.isCut) return
    const target = splitTarget(wire.target)
    const headerBytes = headerMemory(wire.rawHeaders, wire.target)
    if (target === undefined) {
      refuse(wire, 400, 'the request target is not a valid path\n')
    } else if (target === 'too-long') {
      refuse(wire, 414, `the path exceeds ${PATH_BYTES_MAX} bytes\n`)
    } else if (isLongQuery(target.search)) {
      const limits = `${QUERY_BYTES_MAX} bytes or ${QUERY_PAIRS_MAX} parameters`
      refuse(wire, 414, `the query exceeds ${limits}\n`)
    } else if (
      headerBytes > HANDLER_HEADER_BYTES_MAX &&
      handlerHeaderBytes(wire.headers) > HANDLER_HEADER_BYTES_MAX
    ) {
      const names = HANDLER_HEADERS.filter((name) => wire.headers[name] !== undefined)
      const limit = `${HANDLER_HEADER_BYTES_MAX} bytes in total`
      refuse(wire, 431, `headers exceed ${limit}: ${names.join(', ')}\n`)
    } else {
      const memory = account.open(headerBytes)
      if (memory.exceededLimit() === undefined) {
        void new RequestLifecycle(wire, context, { target, memory }).#run()
      } else {
        memory[Symbol.dispose]()
        // Other clients may share a connection on which a user has authenticated.
        if (account.isIdentified) refuseForMemory(wire)
        else account.cut()
      }
    }
  }

  private constructor(
    wire: Wire,
    context: RequestContext,
    { target, memory }: { readonly target: Target; readonly memory: Holding },
  ) {
    this.method = wire.method
    this.path = target.path
    this.#headers = wire.headers
    this.#rawHeaders = wire.rawHeaders
    this.peer = wire.peer
    this.memory = memory
    this.#search = target.search
    this.#wire = wire
    this.#context = context
    this.#deadline = setTimeout(() => this.#expire(), context.limits.requestTimeoutMs)
    context.ordinary.add(this)
    memory.onRevoked = this
    wire.onClose = () => this.#close()
  }

  get headers(): RequestHeaders {
    return this.#headers
  }

  get rawHeaders(): readonly string[] {
    return this.#rawHeaders
  }

  narrow(): void {
    // Short headers are retained and stay charged: copying some of them costs more than it frees.
    if (this.memory.headerBytes <= FEW_HEADER_BYTES) return
    const retained: Record<string, string> = {}
    for (const name of HANDLER_HEADERS) {
      const value = this.#headers[name]
      if (value !== undefined) retained[name] = value
    }
    this.#headers = retained
    this.#rawHeaders = NO_HEADERS
    this.#wire.releaseHeaders()
    this.memory.set('headers', waitingMemory(retained, this.#search))
  }

  get query(): URLSearchParams {
    if (this.#search === '') return NO_QUERY
    this.#query ??= new URLSearchParams(this.#search)
    return this.#query
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#abortReason !== undefined) this.#controller.abort(this.#abortReason)
    }
    return this.#controller.signal
  }

  body(bytesMax: number = Number.POSITIVE_INFINITY): Promise<Buffer> {
    if (this.#body === undefined && this.#abortReason !== undefined) {
      return Promise.reject(this.#abortReason)
    }
    this.#body ??= readBody(this.#wire, {
      bytesMax: Math.min(bytesMax, this.#context.limits.bodyBytesMax),
      headers: this.#headers,
      memory: this.memory,
    })
    return this.#body.bytes
  }

  received(bytesMax?: number): Promise<unknown> | undefined {
    if (this.#wire.announcedBytes === 0) return undefined
    return this.body(bytesMax).then(COMPLETE, FAILED)
  }

  /** The HTTP/2 session, or the HTTP/1.1 socket, that carries the request. */
  get connection(): object {
    return this.#wire.connection
  }

  /** Resolves when shutdown need not wait for this request: it is closed, or long-running. */
  get drained(): Promise<void> {
    return this.#isClosed ? Promise.resolve() : this.#waitersForShutdown().drained.opened
  }

  get closed(): Promise<void> {
    return this.#isClosed ? Promise.resolve() : this.#waitersForShutdown().closed.opened
  }

  /** Ends a long-running request: aborts its signal, so that its handler finishes the response. */
  end(): void {
    this.#abort(new ExchangeError('shutdown', 'the server is shutting down'))
  }

  /** Called when this unauthenticated request must end because others need its memory. */
  revoked(): void {
    this.#wire.cut()
  }

  async #run(): Promise<void> {
    let response: Response
    try {
      response = await this.#context.handler(this)
    } catch (error) {
      this.#context.onBug(error, this)
      response = INTERNAL_ERROR
    }
    this.#isHandled = true
    this.#releaseRequest()
    if (this.#isClosed) this.memory[Symbol.dispose]()
    this.#onEnd = response.onEnd
    this.#onIdle = response.onIdle
    if (this.#hasResponded || this.#isClosed || this.#abortReason?.kind === 'gone') {
      abandon(response.body)
      this.#reportEnd()
    } else this.#respond(response)
  }

  /** Frees what only the handler needed: sending the response may take long. */
  #releaseRequest(): void {
    this.#wire.releaseHeaders()
    this.#headers = {}
    this.#rawHeaders = NO_HEADERS
    this.#search = ''
    this.#query = undefined
    // A handler that the client's own timeout left behind may still wait for the rest of it.
    this.#body?.abort(GONE)
    this.#body = undefined
    this.memory.forgetRequest()
  }

  /**
   * Must be called about once a second. Refuses a body that arrives too slowly, notices that the
   * response only waits for its client, and returns true when it has aborted a stalled response.
   */
  sweep(now: number): boolean {
    if (this.#isClosed) return false
    if (!this.#hasResponded) {
      this.#refuseSlowBody(now)
      return false
    }
    const waitedMs = this.#bodyWriter?.waitedMs(performance.now()) ?? 0
    if (waitedMs >= IDLE_MS_MIN) this.#becomeIdle()
    return this.#cutIfStalled(now)
  }

  /**
   * Aborts the response, and returns true, when there is something to send and the client has read
   * nothing for too long. Charges a watch for its unsent bytes and for what is retained for it
   * alone. Also aborts a watch when its user has reached a memory limit and the watch has read
   * nothing since the last call, or reads so slowly that old changes are retained for it.
   */
  #cutIfStalled(now: number): boolean {
    const { unsentBytes, sentPieces } = this.#wire
    const progress = sentPieces + (this.#bodyWriter?.bytes ?? 0) - unsentBytes
    const heldBytes = this.#bodyWriter?.heldBytes ?? 0
    if (this.memory.isWatch) this.memory.set('response', unsentBytes + heldBytes)
    const hasStopped = this.#stalledSince !== undefined && progress === this.#progress
    this.#progress = progress
    if (unsentBytes === 0) this.#stalledSince = undefined
    else if (!hasStopped) this.#stalledSince = now
    const stalledMs = now - (this.#stalledSince ?? now)
    const isSlow = this.memory.isWatch && ((hasStopped && unsentBytes > 0) || heldBytes > 0)
    if (
      stalledMs < this.#context.limits.stalledTimeoutMs &&
      !(isSlow && this.memory.exceededLimit() !== undefined)
    ) {
      return false
    }
    this.#wire.cut()
    return true
  }

  /** A body is not read in return for a slot, but it takes memory, and a stream of its connection. */
  #refuseSlowBody(now: number): void {
    const receivedBytes = this.#body?.receivedBytes
    if (receivedBytes === undefined) return
    const { bodyGraceMs, bodyBytesPerSecondMin } = this.#context.limits
    this.#bodySince ??= now
    const ms = now - this.#bodySince
    if (ms < bodyGraceMs || receivedBytes >= (ms / 1000) * bodyBytesPerSecondMin) return
    this.#body?.abort(
      new ExchangeError(
        'too-slow',
        `the request body arrives too slowly: ${receivedBytes} bytes in ${Math.round(ms / 1000)} s, at least ${bodyBytesPerSecondMin} a second are required`,
      ),
    )
  }

  #becomeIdle(): void {
    const onIdle = this.#onIdle
    this.#onIdle = undefined
    onIdle?.()
  }

  #respond(intended: Response): void {
    this.#hasResponded = true
    const response = this.#begin(affordable(intended, this))
    const { body } = response
    if (response.longRunning === true) this.#becomeLongRunning(response.settled)
    if (this.method === 'HEAD' || isBodiless(response.status)) {
      abandon(body)
      this.#finish(undefined)
    } else if (isStream(body)) this.#sendStream(body, response.lendsChunks === true)
    else this.#finish(body)
  }

  /** Invalid header values are a bug in the handler of this request: the client gets a 500. */
  #begin(response: Response): Response {
    const { body, status } = response
    const headers = { ...response.headers }
    if (!isStream(body) && !isBodiless(status)) {
      const length = Buffer.byteLength(body)
      headers['content-length'] = String(length)
      if (this.method !== 'HEAD') this.#sentBytes = length
    }
    try {
      this.#wire.begin(status, headers, this.#connectionAction(response))
      this.#sentStatus = status
      return response
    } catch (error) {
      if (response === INTERNAL_ERROR) throw error
      this.#context.onBug(error, this)
      abandon(body)
      return this.#begin(INTERNAL_ERROR)
    }
  }

  #finish(last: Chunk | undefined): void {
    this.#isFinished = true
    this.#becomeIdle()
    this.#wire.finish(last)
  }

  #connectionAction(response: Response): ConnectionAction {
    if (response.closeConnection === true) return 'close'
    return this.#context.isDraining ? 'drain' : 'keep'
  }

  #sendStream(chunks: AsyncIterable<Chunk>, isLent: boolean): void {
    this.#bodyWriter = new BodyWriter(this.#wire, (failure) => {
      if (failure === undefined) {
        this.#finish(undefined)
        return
      }
      if (this.#abortReason?.kind !== 'gone') this.#context.onBug(failure.thrown, this)
      this.#wire.cut()
    })
    this.#bodyWriter.send(chunks, isLent)
  }

  /**
   * The time limit still applies to the initial part of a long-running response: a client that does
   * not read it in time is disconnected.
   */
  #becomeLongRunning(settled: Promise<void> | undefined): void {
    const settle = (): void => {
      clearTimeout(this.#deadline)
      this.memory.becomeWatch()
    }
    if (settled === undefined) settle()
    else void settled.then(settle)
    this.#context.ordinary.delete(this)
    this.#context.longRunning.add(this)
    this.#waiters?.drained.open()
    if (this.#context.isDraining) this.end()
  }

  #expire(): void {
    this.#abort(new ExchangeError('timeout', 'the request exceeded its time limit'))
    if (this.#hasResponded) {
      this.#wire.cut()
    } else {
      this.#respond(this.#lateResponse())
    }
  }

  #lateResponse(): Response {
    try {
      return this.#context.lateResponse(this)
    } catch (error) {
      this.#context.onBug(error, this)
      return INTERNAL_ERROR
    }
  }

  #close(): void {
    clearTimeout(this.#deadline)
    // A response that was written to the stream completely is not aborted. Whether the client got
    // it is unknown: an HTTP/2 stream may close before it reports that its last bytes were written.
    if (!this.#isFinished) this.#abort(GONE)
    this.#context.ordinary.delete(this)
    this.#context.longRunning.delete(this)
    this.#isClosed = true
    // A handler that is still running keeps the request in memory, so it stays charged.
    if (this.#isHandled) this.memory[Symbol.dispose]()
    this.#bodyWriter?.close()
    this.#reportEnd()
    this.#waiters?.drained.open()
    this.#waiters?.closed.open()
  }

  /**
   * Calls `onEnd` once. If the client disconnects while the handler is still running, that is when
   * the handler returns.
   */
  #reportEnd(): void {
    const onEnd = this.#onEnd
    this.#onEnd = undefined
    onEnd?.({ status: this.#sentStatus, bytes: this.#sentBytes + (this.#bodyWriter?.bytes ?? 0) })
  }

  #waitersForShutdown(): Waiters {
    this.#waiters ??= { drained: new Latch(), closed: new Latch() }
    return this.#waiters
  }

  #abort(reason: ExchangeError): void {
    this.#abortReason ??= reason
    this.#body?.abort(reason)
    this.#controller?.abort(reason)
  }
}

/** Created once: thousands of clients may disconnect together, and the stack trace is useless. */
const GONE = new ExchangeError('gone', 'the client disconnected')

const INTERNAL_ERROR: Response = {
  status: 500,
  headers: { 'content-type': 'text/plain' },
  body: 'internal error\n',
}

/** Created only at shutdown, when something waits for requests. */
interface Waiters {
  readonly drained: Latch
  readonly closed: Latch
}

const NO_HEADERS: readonly string[] = []
const COMPLETE = (): undefined => undefined
const FAILED = (error: unknown): unknown => error
/**
 * A response that has waited for its client for this long in total is limited by the client, and
 * needs no slot.
 */
const IDLE_MS_MIN = 1000
/** Shared by all requests without a query; nobody changes a query. */
const NO_QUERY = new URLSearchParams()
/** The usual headers of a client: a token, `User-Agent` and `Accept`. */
const FEW_HEADER_BYTES = 2048

/** Responses with these statuses have no body and must not have a `Content-Length`. */
function isBodiless(status: number): boolean {
  return status === 204 || status === 304
}
