import type { ConnectionAccount, Holding, Revocable } from '../lib/holding.ts'
import { Latch } from '../lib/latch.ts'
import { affordable } from './affordable.ts'
import { type ReadBody, readBody } from './body.ts'
import type { Chunk, Handler, Peer, Request, RequestHeaders, Response } from './exchange.ts'
import { abandon, ExchangeError, HANDLER_HEADERS, isStream } from './exchange.ts'
import { handlerHeaderBytes, headerMemory, waitingMemory } from './held-bytes.ts'
import { HANDLER_HEADER_BYTES_MAX, type HttpLimits } from './limits.ts'
import { Outflow } from './outflow.ts'
import { refuse, refuseForMemory } from './refuse.ts'
import { isLongQuery, splitTarget, type Target } from './target.ts'
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
export class Conversation implements Request, Revocable {
  readonly method: string
  readonly path: string
  readonly peer: Peer
  readonly memory: Holding
  readonly unreadBytesMax: number
  readonly #wire: Wire
  readonly #context: ConversationContext
  readonly #deadline: NodeJS.Timeout
  #headers: RequestHeaders
  #rawHeaders: readonly string[]
  #search: string
  #query: URLSearchParams | undefined
  #controller: AbortController | undefined
  #abortReason: ExchangeError | undefined
  #body: ReadBody | undefined
  #isHandled = false
  #isAnswered = false
  #isFinished = false
  #isClosed = false
  #onEnd: Response['onEnd']
  #sentStatus = 0
  #sentBytes = 0
  #waiters: Waiters | undefined
  #outflow: Outflow | undefined
  /** Of the response: what had been sent when it was last looked at, and since when no more has. */
  #progress = 0
  #stalledSince: number | undefined

  /**
   * A target that cannot be a path, or one beyond all measure, is refused here and now. Of a client
   * that is gone already nobody would hear again: its request would be under way for ever.
   */
  static start(wire: Wire, context: ConversationContext, account: ConnectionAccount): void {
    if (wire.output.destroyed || account.isCut) return
    const target = splitTarget(wire.target)
    const headerBytes = headerMemory(wire.rawHeaders, wire.target)
    if (target === undefined) {
      refuse(wire, 400, 'the request target is not a valid path\n')
    } else if (target === 'too-long') {
      refuse(wire, 414, 'the path is longer than any that could be meant\n')
    } else if (isLongQuery(target.search)) {
      refuse(wire, 414, 'the query is longer than any that could be meant\n')
    } else if (
      headerBytes > HANDLER_HEADER_BYTES_MAX &&
      handlerHeaderBytes(wire.headers) > HANDLER_HEADER_BYTES_MAX
    ) {
      const names = HANDLER_HEADERS.filter((name) => wire.headers[name] !== undefined)
      refuse(wire, 431, `${names.join(', ')}: more than ${HANDLER_HEADER_BYTES_MAX} bytes\n`)
    } else {
      const memory = account.open(headerBytes)
      if (memory.passed() === undefined) {
        void new Conversation(wire, context, { target, memory }).#run()
      } else {
        memory[Symbol.dispose]()
        // Others may share a connection on which somebody has shown who they are.
        if (account.isIdentified) refuseForMemory(wire)
        else account.cut()
      }
    }
  }

  private constructor(
    wire: Wire,
    context: ConversationContext,
    { target, memory }: { readonly target: Target; readonly memory: Holding },
  ) {
    this.method = wire.method
    this.path = target.path
    this.#headers = wire.headers
    this.#rawHeaders = wire.rawHeaders
    this.peer = wire.peer
    this.memory = memory
    this.unreadBytesMax = Math.min(wire.announcedBytes, context.limits.streamWindowBytes)
    this.#search = target.search
    this.#wire = wire
    this.#context = context
    this.#deadline = setTimeout(() => this.#expire(), context.limits.requestTimeoutMs)
    context.ordinary.add(this)
    memory.onRevoked = this
    wire.output.once('close', () => this.#close())
  }

  get headers(): RequestHeaders {
    return this.#headers
  }

  get rawHeaders(): readonly string[] {
    return this.#rawHeaders
  }

  narrow(): void {
    // Short headers stay as they are, and stay charged: copying some of them costs more than it frees.
    if (this.memory.headerBytes <= FEW_HEADER_BYTES) return
    const kept: Record<string, string> = {}
    for (const name of HANDLER_HEADERS) {
      const value = this.#headers[name]
      if (value !== undefined) kept[name] = value
    }
    this.#headers = kept
    this.#rawHeaders = NO_HEADERS
    this.#wire.forget()
    this.memory.set('headers', waitingMemory(kept, this.#search))
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
    this.#body ??= readBody(this.#wire, {
      bytesMax: this.#context.limits.bodyBytesMax,
      headers: this.#headers,
      memory: this.memory,
    })
    return this.#body.bytes
  }

  /** What it came on. */
  get connection(): object {
    return this.#wire.connection
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

  /** It is not known who asks, and others need the memory more. */
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
    this.#forget()
    if (this.#isClosed) this.memory[Symbol.dispose]()
    this.#onEnd = response.onEnd
    if (this.#isAnswered || this.#isClosed || this.#abortReason?.kind === 'gone') {
      abandon(response.body)
      this.#tellEnd()
    } else this.#answer(response)
  }

  /** What was needed to make the response and is not needed to send it, which may take long. */
  #forget(): void {
    this.#wire.forget()
    this.#headers = {}
    this.#rawHeaders = NO_HEADERS
    this.#search = ''
    this.#query = undefined
    this.#body = undefined
    this.memory.forgetRequest()
  }

  /**
   * To be called about once a second. Ends a response of which the client has taken nothing for too
   * long, although there is something to send; true when it does so. A watch is charged here for what
   * is unsent and what is kept for it alone. It ends when its user holds too much and it has taken
   * nothing since the last time, or takes so little that old changes are kept for it.
   */
  cutIfStalled(now: number): boolean {
    if (!this.#isAnswered || this.#isClosed) return false
    const { unsentBytes, sentPieces } = this.#wire
    const progress = sentPieces + (this.#outflow?.bytes ?? 0) - unsentBytes
    const keptBytes = this.#outflow?.heldBytes ?? 0
    if (this.memory.isWatch) this.memory.set('response', unsentBytes + keptBytes)
    const hasStopped = this.#stalledSince !== undefined && progress === this.#progress
    this.#progress = progress
    if (unsentBytes === 0) this.#stalledSince = undefined
    else if (!hasStopped) this.#stalledSince = now
    const stalledMs = now - (this.#stalledSince ?? now)
    const isSlow = this.memory.isWatch && ((hasStopped && unsentBytes > 0) || keptBytes > 0)
    if (
      stalledMs < this.#context.limits.stalledTimeoutMs &&
      !(isSlow && this.memory.passed() !== undefined)
    ) {
      return false
    }
    this.#wire.cut()
    return true
  }

  #answer(wanted: Response): void {
    this.#isAnswered = true
    if (wanted.dropsConnection === true && !this.memory.account.isIdentified) {
      this.memory.account.cut()
      return
    }
    const response = this.#begin(affordable(wanted, this))
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
    const settle = (): void => {
      clearTimeout(this.#deadline)
      this.memory.becomeWatch()
    }
    if (settled === undefined) settle()
    else void settled.then(settle)
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
    // A handler that is still at work has what it was sent.
    if (this.#isHandled) this.memory[Symbol.dispose]()
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

const NO_HEADERS: readonly string[] = []
/** Usual headers of a client: a token, its name and what it accepts. */
const FEW_HEADER_BYTES = 2048

/** Statuses that end with their headers, and must not even announce a length. */
function isBodiless(status: number): boolean {
  return status === 204 || status === 304
}
