import {
  type ClientHttp2Stream,
  constants,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from 'node:http2'
import { Readable } from 'node:stream'
import {
  type CallFailure,
  connectionLost,
  failureIn,
  notGrpc,
  notSent,
  streamReset,
} from './call-failure.ts'
import { framed, MessageSplitter } from './message-frames.ts'
import { type StreamOpener, unreadable } from './unary-call.ts'

export interface DuplexRequest<Response> {
  readonly headers: OutgoingHttpHeaders
  readonly decode: (message: Buffer) => Response
  /** Largest accepted response message, in bytes. */
  readonly maxBytes: number
  /** The number of messages that may wait to be read before the server has to wait. */
  readonly readAhead?: number | undefined
}

const defaultReadAhead = 16

/**
 * Messages in both directions, for as long as both sides want. The server's messages are read as a
 * stream of decoded messages, with backpressure; a failure is its 'error' event, with a CallFailure.
 */
export class DuplexCall<Response> extends Readable {
  /** Counts the bytes of messages, also of those that are not complete. */
  bytesReceived = 0
  readonly #request: DuplexRequest<Response>
  readonly #messages: MessageSplitter
  #stream: ClientHttp2Stream | undefined
  #hasStatus = false

  constructor(session: StreamOpener, request: DuplexRequest<Response>) {
    super({ objectMode: true, highWaterMark: request.readAhead ?? defaultReadAhead })
    this.#request = request
    this.#messages = new MessageSplitter(request.maxBytes)
    this.#start(session)
  }

  write(message: Buffer): void {
    if (this.#stream?.writable === true) this.#stream.write(framed(message))
  }

  /** Sends the last message of this side. */
  end(message: Buffer): void {
    if (this.#stream?.writable === true) this.#stream.end(framed(message))
  }

  cancel(): void {
    this.destroy()
  }

  override _read(): void {
    this.#stream?.resume()
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    const stream = this.#stream
    if (stream !== undefined && !stream.closed) stream.close(constants.NGHTTP2_CANCEL)
    // Node retains a stream until everything that it has received is read.
    stream?.resume()
    callback(error)
  }

  #start(session: StreamOpener): void {
    const stream = session.request(this.#request.headers)
    if (stream === undefined) {
      this.#fail(notSent())
      return
    }
    this.#stream = stream
    stream.on('response', (received) => {
      const failure = notGrpc(received)
      if (failure !== undefined) this.#fail(failure)
      else this.#takeStatus(received)
    })
    stream.on('data', (chunk: Buffer) => this.#take(chunk))
    stream.on('trailers', (received) => this.#takeStatus(received))
    stream.on('end', () => {
      if (this.destroyed) return
      if (this.#hasStatus) this.push(null)
      else this.#fail(streamReset(stream))
    })
    const onBroken = (): void => {
      if (this.destroyed || this.#hasStatus) return
      this.#fail(session.isDestroyed ? connectionLost() : streamReset(stream))
    }
    stream.on('error', onBroken)
    stream.on('close', onBroken)
  }

  #fail(failure: CallFailure): void {
    this.destroy(failure)
  }

  #take(chunk: Buffer): void {
    if (this.destroyed) return
    const { decode, headers } = this.#request
    this.bytesReceived += chunk.length
    try {
      let isWritable = true
      for (const message of this.#messages.take(chunk)) isWritable = this.push(decode(message))
      if (!isWritable) this.#stream?.pause()
    } catch (error) {
      this.#fail(unreadable(error, headers))
    }
  }

  #takeStatus(received: IncomingHttpHeaders): void {
    if (received['grpc-status'] === undefined) return
    this.#hasStatus = true
    const failure = failureIn(received)
    if (failure !== undefined) this.#fail(failure)
  }
}
