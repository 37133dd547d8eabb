import { type ClientHttp2Stream, constants, type OutgoingHttpHeaders } from 'node:http2'
import {
  brokenStream,
  CallFailure,
  deadlineExceeded,
  failureIn,
  notGrpc,
  tooLarge,
} from './call-failure.ts'
import type { Channel, OpenCall, Session } from './channel.ts'
import { status } from './codes.ts'
import { framed, MessageSplitter, MessageTooLarge } from './message-frames.ts'

export interface UnaryRequest<Response> {
  readonly headers: OutgoingHttpHeaders
  readonly message: Buffer
  readonly timeoutMs: number
  /** Largest accepted response message, in bytes. */
  readonly bytesMax: number
  readonly decode: (message: Buffer) => Response
  readonly done: (failure: CallFailure | undefined, response?: Response) => void
}

/** One message there and one message back. */
export class UnaryCall<Response> implements OpenCall {
  readonly #channel: Channel
  readonly #request: UnaryRequest<Response>
  readonly #timer: NodeJS.Timeout
  readonly #messages: MessageSplitter
  #stream: ClientHttp2Stream | undefined
  #message: Buffer | undefined
  #failure: CallFailure | undefined
  #hasStatus = false
  #hasEnded = false

  constructor(channel: Channel, request: UnaryRequest<Response>) {
    this.#channel = channel
    this.#request = request
    this.#messages = new MessageSplitter(request.bytesMax)
    this.#timer = setTimeout(() => {
      this.#stream?.close(constants.NGHTTP2_CANCEL)
      this.fail(deadlineExceeded())
    }, request.timeoutMs)
  }

  start(session: Session): void {
    const { headers, message } = this.#request
    const stream = session.http2.request(headers)
    this.#stream = stream
    session.calls += 1
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
      if (!this.#hasEnded) this.fail(brokenStream(stream, session.http2))
    }
    stream.on('error', onBroken)
    stream.on('close', () => {
      session.calls -= 1
      onBroken()
    })
    stream.end(framed(message))
  }

  fail(failure: CallFailure): void {
    if (this.#end()) this.#request.done(failure)
  }

  /** The server goes on with a request that it has received; the response is ignored. */
  cancel(): void {
    if (this.#end()) this.#stream?.close(constants.NGHTTP2_CANCEL)
  }

  #take(chunk: Buffer): void {
    if (this.#hasEnded) return
    try {
      for (const message of this.#messages.take(chunk)) this.#message ??= message
    } catch (error) {
      this.#stream?.close(constants.NGHTTP2_CANCEL)
      const failure = new CallFailure(status.INTERNAL, String(error))
      const { headers } = this.#request
      this.fail(error instanceof MessageTooLarge ? tooLarge(headers, error) : failure)
    }
  }

  #takeStatus(received: Parameters<typeof failureIn>[0]): void {
    if (received['grpc-status'] === undefined) return
    this.#hasStatus = true
    this.#failure ??= failureIn(received)
  }

  #complete(): void {
    if (this.#failure !== undefined) {
      this.fail(this.#failure)
      return
    }
    const message = this.#message
    if (message === undefined) {
      this.fail(new CallFailure(status.INTERNAL, 'a response without a message'))
      return
    }
    const { decode, done } = this.#request
    let response: Response
    try {
      response = decode(message)
    } catch (error) {
      this.fail(new CallFailure(status.INTERNAL, `the response cannot be decoded: ${error}`))
      return
    }
    if (this.#end()) done(undefined, response)
  }

  #end(): boolean {
    if (this.#hasEnded) return false
    this.#hasEnded = true
    clearTimeout(this.#timer)
    this.#channel.remove(this)
    return true
  }
}
