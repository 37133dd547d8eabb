/**
 * Replaces `@grpc/grpc-js` in the simulation: clients whose calls and streams go over the simulated
 * network. It has what src/etcd uses, with the behaviour of the real one: a channel connects only on
 * request, reconnects by itself after a refused connection, stays silent when a connection attempt
 * hangs, queues calls until it is connected, and fails them when its connection breaks.
 */
import type { SimulatedProcess } from '../kernel/process.ts'
import { type CallFailure, Channel, type OpenCall } from './channel.ts'
import type { Connection } from './connection.ts'
import { connectivityState, status } from './grpc-codes.ts'
import { Stream, type StreamOptions } from './grpc-stream.ts'

export { connectivityState, status }

export const credentials = {
  /** With the method that src/etcd wraps; the simulated network never calls it. */
  createInsecure: (): object => ({ _createSecureConnector: () => undefined }),
  createSsl: (): never => {
    throw new Error('the simulated network has no TLS')
  },
}

export class Metadata {
  readonly #values = new Map<string, string>()

  set(name: string, value: string): void {
    this.#values.set(name, value)
  }

  get needsLeader(): boolean {
    return this.#values.has('hasleader')
  }
}

const lateness: CallFailure = { code: status.DEADLINE_EXCEEDED, details: 'Deadline exceeded' }

type Decode = (message: Buffer) => unknown
type Done = (error: CallFailure | null, response?: unknown) => void

export class Client {
  readonly #channel: Channel

  constructor(target: string) {
    this.#channel = new Channel(target)
  }

  getChannel(): Channel {
    return this.#channel
  }

  close(): void {
    this.#channel.close()
  }

  // biome-ignore lint/complexity/useMaxParams: the parameters of the real one.
  makeUnaryRequest(
    path: string,
    _encode: unknown,
    decode: Decode,
    message: Buffer,
    metadata: Metadata,
    options: { readonly deadline: Date },
    done: Done,
  ): { cancel(): void } {
    const call = new UnaryCall(this.#channel, { path, decode, message, metadata, done })
    call.begin(options.deadline)
    return call
  }

  // biome-ignore lint/complexity/useMaxParams: the parameters of the real one.
  makeBidiStreamRequest(
    path: string,
    _encode: unknown,
    decode: Decode,
    metadata: Metadata,
    options?: { readonly deadline: Date },
  ): Stream {
    const { process } = this.#channel
    const request: StreamOptions = { path, decode, needsLeader: metadata.needsLeader, process }
    const stream = new Stream(this.#channel, request)
    if (options !== undefined) {
      const ms = options.deadline.getTime() - process.wallMs()
      process.setTimeout(() => stream.fail(lateness), ms)
    }
    return stream
  }
}

interface UnaryOptions {
  readonly path: string
  readonly decode: Decode
  readonly message: Buffer
  readonly metadata: Metadata
  readonly done: Done
}

class UnaryCall implements OpenCall {
  readonly #channel: Channel
  readonly #options: UnaryOptions
  #hasEnded = false
  #timer: ReturnType<SimulatedProcess['setTimeout']> | undefined

  constructor(channel: Channel, options: UnaryOptions) {
    this.#channel = channel
    this.#options = options
  }

  begin(deadline: Date): void {
    const { process } = this.#channel
    const ms = deadline.getTime() - process.wallMs()
    this.#timer = process.setTimeout(() => this.fail(lateness), ms)
    this.#channel.add(this)
  }

  start(connection: Connection): void {
    const { path, message, metadata, decode, done } = this.#options
    connection.toMember(path, message, () => {
      connection.member.call(path, message, { needsLeader: metadata.needsLeader }, (reply) => {
        const bytes = 'message' in reply ? reply.message : undefined
        connection.toClient(path, bytes, () => {
          if (!('message' in reply)) this.fail(reply)
          else if (this.#end()) done(null, decode(reply.message))
        })
      })
    })
  }

  fail(failure: CallFailure): void {
    if (this.#end()) this.#options.done(failure)
  }

  /** etcd goes on with a request that it has received; the response is ignored. */
  cancel(): void {
    this.#end()
  }

  #end(): boolean {
    if (this.#hasEnded) return false
    this.#hasEnded = true
    if (this.#timer !== undefined) this.#channel.process.clear(this.#timer)
    this.#channel.remove(this)
    return true
  }
}
