import {
  type ClientHttp2Stream,
  constants,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from 'node:http2'
import {
  type CallFailure,
  connectionLost,
  deadlineExceeded,
  failureIn,
  notGrpc,
  notSendable,
  notSent,
  streamReset,
  unacceptable,
} from './call-failure.ts'
import { framed, MessageSplitter, MessageTooLarge } from './message-frames.ts'
import { status } from './status-codes.ts'

/** What a call needs of its session. */
export interface StreamOpener {
  /** Opens the stream of a call. Returns undefined when the session has ended. */
  request(headers: OutgoingHttpHeaders): ClientHttp2Stream | undefined
  /** Whether the connection is lost. */
  readonly isDestroyed: boolean
}

export interface UnaryRequest<Response> {
  readonly headers: OutgoingHttpHeaders
  readonly message: Buffer
  readonly timeoutMs: number
  /** Largest accepted response message, in bytes. */
  readonly maxBytes: number
  readonly decode: (message: Buffer) => Response
  readonly done: (failure: CallFailure | undefined, response?: Response) => void
}

/** One message there and one message back. */
export class UnaryCall<Response> {
  readonly #request: UnaryRequest<Response>
  readonly #timer: NodeJS.Timeout
  readonly #messages: MessageSplitter
  #stream: ClientHttp2Stream | undefined
  #message: Buffer | undefined
  #failure: CallFailure | undefined
  #hasStatus = false
  #hasEnded = false

  constructor(request: UnaryRequest<Response>) {
    this.#request = request
    this.#messages = new MessageSplitter(request.maxBytes)
    this.#timer = setTimeout(() => {
      this.#stream?.close(constants.NGHTTP2_CANCEL)
      this.#fail(deadlineExceeded())
    }, request.timeoutMs)
  }

  start(session: StreamOpener): void {
    const { headers, message } = this.#request
    let stream: ClientHttp2Stream | undefined
    try {
      stream = session.request(headers)
    } catch (error) {
      setImmediate(() => this.#fail(notSendable(error)))
      return
    }
    if (stream === undefined) {
      setImmediate(() => this.#fail(notSent()))
      return
    }
    this.#listen(session, stream)
    stream.end(framed(message))
  }

  /** The server goes on with a request that it has received; the response is ignored. */
  cancel(): void {
    if (this.#end()) this.#stream?.close(constants.NGHTTP2_CANCEL)
  }

  #listen(session: StreamOpener, stream: ClientHttp2Stream): void {
    this.#stream = stream
    stream.on('response', (received) => {
      this.#failure = notGrpc(received)
      this.#takeStatus(received)
    })
    stream.on('data', (chunk: Buffer) => this.#take(chunk))
    stream.on('trailers', (received) => this.#takeStatus(received))
    stream.on('end', () => {
      if (this.#hasStatus || this.#failure !== undefined) this.#complete()
    })
    const onBroken = (): void => {
      if (this.#hasEnded) return
      this.#fail(session.isDestroyed ? connectionLost() : streamReset(stream))
    }
    stream.on('error', onBroken)
    stream.on('close', onBroken)
  }

  #fail(failure: CallFailure): void {
    if (this.#end()) this.#request.done(failure)
  }

  #take(chunk: Buffer): void {
    if (this.#hasEnded) return
    try {
      for (const message of this.#messages.take(chunk)) this.#message ??= message
    } catch (error) {
      this.#stream?.close(constants.NGHTTP2_CANCEL)
      this.#fail(unreadable(error, this.#request.headers))
    }
  }

  #takeStatus(received: IncomingHttpHeaders): void {
    if (received['grpc-status'] === undefined) return
    this.#hasStatus = true
    this.#failure ??= failureIn(received)
  }

  #complete(): void {
    if (this.#failure !== undefined) {
      this.#fail(this.#failure)
      return
    }
    const message = this.#message
    if (message === undefined) {
      this.#fail(unacceptable(status.INTERNAL, 'a response without a message'))
      return
    }
    const { decode, done } = this.#request
    let response: Response
    try {
      response = decode(message)
    } catch (error) {
      this.#fail(unacceptable(status.INTERNAL, `the response cannot be decoded: ${error}`))
      return
    }
    if (this.#end()) done(undefined, response)
  }

  #end(): boolean {
    if (this.#hasEnded) return false
    this.#hasEnded = true
    clearTimeout(this.#timer)
    return true
  }
}

/** Names the server in the message, since another one may send less. */
export function unreadable(error: unknown, headers: OutgoingHttpHeaders): CallFailure {
  if (error instanceof MessageTooLarge) {
    return unacceptable(status.RESOURCE_EXHAUSTED, `${headers[':authority']} sent ${error.message}`)
  }
  return unacceptable(status.INTERNAL, `a message cannot be decoded: ${error}`)
}
