import { type ClientHttp2Stream, constants, type OutgoingHttpHeaders } from 'node:http2'
import { Readable } from 'node:stream'
import {
  brokenStream,
  CallFailure,
  connectionDropped,
  deadlineExceeded,
  failureIn,
  notGrpc,
  streamReset,
  tooLarge,
} from './call-failure.ts'
import type { Channel, OpenCall, Session } from './channel.ts'
import { status } from './codes.ts'
import { framed, MessageSplitter, MessageTooLarge } from './message-frames.ts'

export interface DuplexRequest<Response> {
  readonly headers: OutgoingHttpHeaders
  readonly decode: (message: Buffer) => Response
  /** Largest accepted response message, in bytes. */
  readonly bytesMax: number
  /** Undefined: it may last for ever. */
  readonly timeoutMs?: number | undefined
}

/** Messages in this number may wait until they are read; then the server has to wait. */
const readAhead = 16

/**
 * Messages in both directions. What the server sends is read as a stream of decoded messages, with
 * backpressure; a failure is its 'error' event, with a CallFailure.
 */
export class DuplexCall<Response> extends Readable implements OpenCall {
  readonly #channel: Channel
  readonly #decode: (message: Buffer) => Response
  readonly #headers: OutgoingHttpHeaders
  readonly #messages: MessageSplitter
  readonly #timer: NodeJS.Timeout | undefined
  /** Messages that were written before there was a connection. */
  #unsent: Buffer[] = []
  #isEnding = false
  #stream: ClientHttp2Stream | undefined
  #hasStatus = false

  constructor(channel: Channel, { headers, decode, bytesMax, timeoutMs }: DuplexRequest<Response>) {
    super({ objectMode: true, highWaterMark: readAhead })
    this.#channel = channel
    this.#headers = headers
    this.#decode = decode
    this.#messages = new MessageSplitter(bytesMax)
    if (timeoutMs !== undefined) {
      this.#timer = setTimeout(() => this.fail(deadlineExceeded()), timeoutMs)
    }
    // Listeners are added first, as for any stream.
    queueMicrotask(() => {
      if (!this.destroyed) this.#begin()
    })
  }

  start(session: Session): void {
    const stream = session.http2.request(this.#headers)
    this.#stream = stream
    session.calls += 1
    stream.on('response', (received) => {
      const failure = notGrpc(received)
      if (failure !== undefined) this.fail(failure)
      else this.#takeStatus(received)
    })
    stream.on('data', (chunk: Buffer) => this.#take(chunk))
    stream.on('trailers', (received) => this.#takeStatus(received))
    stream.on('end', () => this.#over())
    const onBroken = (): void => {
      if (!this.destroyed && !this.#hasStatus) this.fail(brokenStream(stream, session.http2))
    }
    stream.on('error', onBroken)
    stream.on('close', () => {
      session.calls -= 1
      onBroken()
    })
    for (const message of this.#unsent) stream.write(framed(message))
    this.#unsent = []
    if (this.#isEnding) stream.end()
  }

  fail(failure: CallFailure): void {
    this.destroy(failure)
  }

  write(message: Buffer): void {
    if (this.destroyed) return
    if (this.#stream === undefined) this.#unsent.push(message)
    else if (this.#stream.writable) this.#stream.write(framed(message))
  }

  /** No more messages will be written. */
  end(): void {
    this.#isEnding = true
    this.#stream?.end()
  }

  cancel(): void {
    this.destroy()
  }

  override _read(): void {
    this.#stream?.resume()
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    clearTimeout(this.#timer)
    this.#channel.remove(this)
    this.#unsent = []
    const stream = this.#stream
    if (stream !== undefined && !stream.closed) stream.close(constants.NGHTTP2_CANCEL)
    // Node keeps a stream until all that it has received is read.
    stream?.resume()
    callback(error)
  }

  #begin(): void {
    try {
      this.#channel.add(this)
    } catch {
      this.fail(connectionDropped())
    }
  }

  #take(chunk: Buffer): void {
    if (this.destroyed) return
    try {
      let hasRoom = true
      for (const message of this.#messages.take(chunk)) hasRoom = this.push(this.#decode(message))
      if (!hasRoom) this.#stream?.pause()
    } catch (error) {
      const failure = new CallFailure(status.INTERNAL, `a message cannot be decoded: ${error}`)
      this.fail(error instanceof MessageTooLarge ? tooLarge(this.#headers, error) : failure)
    }
  }

  #takeStatus(received: Parameters<typeof failureIn>[0]): void {
    if (received['grpc-status'] === undefined) return
    this.#hasStatus = true
    const failure = failureIn(received)
    if (failure !== undefined) this.fail(failure)
  }

  #over(): void {
    if (this.destroyed) return
    if (this.#hasStatus) this.push(null)
    else this.fail(streamReset(constants.NGHTTP2_NO_ERROR))
  }
}
