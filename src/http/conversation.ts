import { Latch } from '../lib/latch.ts'
import { type ReadBody, readBody } from './body.ts'
import type { Chunk, Handler, Peer, Request, RequestHeaders, Response } from './exchange.ts'
import { abandon, ExchangeError, isStream } from './exchange.ts'
import { type HttpLimits, PATH_BYTES_MAX, QUERY_BYTES_MAX, QUERY_PAIRS_MAX } from './limits.ts'
import { Outflow } from './outflow.ts'
import type { ConnectionFate, Wire } from './wire.ts'

/** What all conversations of a listener share. */
export interface ConversationContext {
  readonly handler: Handler
  /** The answer when a handler has not given one in time. */
  readonly lateResponse: (request: Request) => Response
  readonly limits: HttpLimits
  readonly onBug: (error: unknown, request: Request) => void
  /** Requests to be waited for at shutdown, and those to be ended. */
  readonly ordinary: Set<Conversation>
  readonly longRunning: Set<Conversation>
  /** Set once the server wants its connections to go away. */
  isDraining: boolean
}

/**
 * The life of one request on its connection: the handler is asked, its answer is sent at the
 * client's pace, and everything is over, one way or the other, when the time limit says so.
 */
export class Conversation implements Request {
  readonly method: string
  readonly path: string
  readonly headers: RequestHeaders
  readonly rawHeaders: readonly string[]
  readonly peer: Peer
  readonly unreadBytesMax: number
  readonly #wire: Wire
  readonly #context: ConversationContext
  readonly #search: string
  readonly #deadline: NodeJS.Timeout
  #query: URLSearchParams | undefined
  #controller: AbortController | undefined
  #abortReason: ExchangeError | undefined
  #body: ReadBody | undefined
  #isAnswered = false
  #isFinished = false
  #isClosed = false
  #onEnd: Response['onEnd']
  #sentStatus = 0
  #sentBytes = 0
  #waiters: Waiters | undefined
  #outflow: Outflow | undefined

  /**
   * A target that cannot be a path, or one beyond all measure, is refused here and now. Of a client
   * that is gone already nobody would hear again: its request would be under way for ever.
   */
  static start(wire: Wire, context: ConversationContext): void {
    if (wire.output.destroyed) return
    const target = splitTarget(wire.target)
    if (target === undefined) {
      refuse(wire, 400, 'the request target is not a valid path\n')
    } else if (target === 'too-long') {
      refuse(wire, 414, 'the path is longer than any that could be meant\n')
    } else if (isTooMuch(target.search)) {
      refuse(wire, 414, 'the query is longer than any that could be meant\n')
    } else {
      void new Conversation(wire, context, target).#run()
    }
  }

  private constructor(wire: Wire, context: ConversationContext, target: Target) {
    this.method = wire.method
    this.path = target.path
    this.headers = wire.headers
    this.rawHeaders = wire.rawHeaders
    this.peer = wire.peer
    this.unreadBytesMax = Math.min(wire.announcedBytes, context.limits.streamWindowBytes)
    this.#search = target.search
    this.#wire = wire
    this.#context = context
    this.#deadline = setTimeout(() => this.#expire(), context.limits.requestTimeoutMs)
    context.ordinary.add(this)
    wire.output.once('close', () => this.#close())
  }

  get query(): URLSearchParams {
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

  body(): Promise<Buffer> {
    if (this.#body === undefined && this.#abortReason !== undefined) {
      return Promise.reject(this.#abortReason)
    }
    this.#body ??= readBody(this.#wire, this.#context.limits.bodyBytesMax)
    return this.#body.bytes
  }

  /** Resolves when the shutdown need not wait for this request: it is over, or a long one. */
  get left(): Promise<void> {
    return this.#isClosed ? Promise.resolve() : this.#whenOver().left.opened
  }

  /** Resolves when it is over. */
  get closed(): Promise<void> {
    return this.#isClosed ? Promise.resolve() : this.#whenOver().closed.opened
  }

  /** Ends a long request from our side; its handler sees the signal and finishes the answer. */
  end(): void {
    this.#abort(new ExchangeError('shutdown', 'the server is shutting down'))
  }

  async #run(): Promise<void> {
    let response: Response
    try {
      response = await this.#context.handler(this)
    } catch (error) {
      this.#context.onBug(error, this)
      response = INTERNAL_ERROR
    }
    this.#onEnd = response.onEnd
    if (this.#isAnswered || this.#isClosed || this.#abortReason?.kind === 'gone') {
      abandon(response.body)
      this.#tellEnd()
    } else this.#answer(response)
  }

  #answer(wanted: Response): void {
    this.#isAnswered = true
    const response = this.#begin(wanted)
    const { body } = response
    if (response.longRunning === true) this.#becomeLong(response.settled)
    if (this.method === 'HEAD' || isBodiless(response.status)) {
      abandon(body)
      this.#finish(undefined)
    } else if (isStream(body)) this.#sendPieces(body, response.lendsChunks === true)
    else this.#finish(body)
  }

  /** Headers that no protocol can carry are a bug of this one request, and answered as such. */
  #begin(response: Response): Response {
    const { body, status } = response
    const headers = { ...response.headers }
    if (!isStream(body) && !isBodiless(status)) {
      const length = Buffer.byteLength(body)
      headers['content-length'] = String(length)
      if (this.method !== 'HEAD') this.#sentBytes = length
    }
    try {
      this.#wire.begin(status, headers, this.#connectionFate(response))
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
    this.#wire.finish(last)
  }

  #connectionFate(response: Response): ConnectionFate {
    if (response.closeConnection === true) return 'close'
    return this.#context.isDraining ? 'leave' : 'keep'
  }

  #sendPieces(pieces: AsyncIterable<Chunk>, isLent: boolean): void {
    this.#outflow = new Outflow(this.#wire, (failure) => {
      if (failure === undefined) {
        this.#finish(undefined)
        return
      }
      if (this.#abortReason?.kind !== 'gone') this.#context.onBug(failure.thrown, this)
      this.#wire.cut()
    })
    this.#outflow.send(pieces, isLent)
  }

  /** Its beginning has no more time than any other answer: one who does not take it is cut off. */
  #becomeLong(settled: Promise<void> | undefined): void {
    if (settled === undefined) clearTimeout(this.#deadline)
    else void settled.then(() => clearTimeout(this.#deadline))
    this.#context.ordinary.delete(this)
    this.#context.longRunning.add(this)
    this.#waiters?.left.open()
    if (this.#context.isDraining) this.end()
  }

  #expire(): void {
    this.#abort(new ExchangeError('timeout', 'the request took longer than it may'))
    if (this.#isAnswered) {
      this.#wire.cut()
    } else {
      this.#answer(this.#lateResponse())
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
    // What has been handed over whole is nobody's business any more. Whether it was taken the stream
    // does not tell: on HTTP/2 it may close before it knows that its last bytes were written.
    if (!this.#isFinished) this.#abort(GONE)
    this.#context.ordinary.delete(this)
    this.#context.longRunning.delete(this)
    this.#isClosed = true
    this.#outflow?.close()
    this.#tellEnd()
    this.#waiters?.left.open()
    this.#waiters?.closed.open()
  }

  /** A handler still at work when the client leaves is told when it answers. */
  #tellEnd(): void {
    const onEnd = this.#onEnd
    this.#onEnd = undefined
    onEnd?.({ status: this.#sentStatus, bytes: this.#sentBytes + (this.#outflow?.bytes ?? 0) })
  }

  #whenOver(): Waiters {
    this.#waiters ??= { left: new Latch(), closed: new Latch() }
    return this.#waiters
  }

  #abort(reason: ExchangeError): void {
    this.#abortReason ??= reason
    this.#body?.abort(reason)
    this.#controller?.abort(reason)
  }
}

/** Made once: clients may leave by the thousand, and the stack trace of that is worth nothing. */
const GONE = new ExchangeError('gone', 'the client is gone')

const INTERNAL_ERROR: Response = {
  status: 500,
  headers: { 'content-type': 'text/plain' },
  body: 'internal error\n',
}

/** Made only when somebody waits, which is at shutdown. */
interface Waiters {
  readonly left: Latch
  readonly closed: Latch
}

interface Target {
  readonly path: string
  readonly search: string
}

/** Splits and decodes; a proxy-style absolute target (`http://host/path`) counts as its path. */
function splitTarget(target: string): Target | 'too-long' | undefined {
  let rest = target
  if (!rest.startsWith('/')) {
    const absolute = /^https?:\/\/[^/?]*/i.exec(rest)
    if (absolute === null) return undefined
    rest = rest.slice(absolute[0].length)
    if (!rest.startsWith('/')) rest = `/${rest}`
  }
  const mark = rest.indexOf('?')
  const path = mark === -1 ? rest : rest.slice(0, mark)
  const search = mark === -1 ? '' : rest.slice(mark + 1)
  // Before anybody looks at it: strangers may send one.
  if (path.length > PATH_BYTES_MAX) return 'too-long'
  if (!path.includes('%')) return { path, search }
  try {
    return { path: decodeURIComponent(path), search }
  } catch {
    // A stray % or bytes that are no UTF-8: there is no path to speak of.
    return undefined
  }
}

/** Parsing a query takes more than its share of time as it grows, and strangers may send one. */
function isTooMuch(search: string): boolean {
  if (search.length > QUERY_BYTES_MAX) return true
  let pairs = 1
  for (let at = search.indexOf('&'); at !== -1; at = search.indexOf('&', at + 1)) pairs += 1
  return pairs > QUERY_PAIRS_MAX
}

/** Answers a request without asking anybody, and is done with its client. */
export function refuse(wire: Wire, status: number, message: string): void {
  wire.begin(
    status,
    { 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff' },
    'close',
  )
  wire.finish(wire.method === 'HEAD' ? undefined : message)
}

/** Statuses that end with their headers, and must not even announce a length. */
function isBodiless(status: number): boolean {
  return status === 204 || status === 304
}
