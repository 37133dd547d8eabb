/**
 * Replaces `src/etcd/transport/client.ts` in the simulation: clients whose calls and streams go over
 * the simulated network. The behaviour is that of the real one: a channel connects only on request,
 * reconnects by itself after a refused connection, stays silent when a connection attempt hangs,
 * queues calls until it is connected, and fails them when its connection breaks.
 */
import type { CallOptions } from '../../../src/etcd/transport/client.ts'
import { status } from '../../../src/etcd/transport/codes.ts'
import type { SimulatedProcess } from '../kernel/process.ts'
import { type CallFailure, Channel, type OpenCall } from './channel.ts'
import type { Connection } from './connection.ts'
import { Stream, type StreamOptions } from './grpc-stream.ts'

const lateness: CallFailure = { code: status.DEADLINE_EXCEEDED, details: 'Deadline exceeded' }

type Decode = (message: Buffer) => unknown
type Done = (failure: CallFailure | undefined, response?: unknown) => void

export class Client {
  readonly channel: Channel

  constructor(target: { readonly host: string }) {
    this.channel = new Channel(target.host)
  }

  close(): void {
    this.channel.close()
  }

  unary(
    options: CallOptions<unknown> & { readonly message: Buffer; readonly timeoutMs: number },
    done: Done,
  ): () => void {
    const call = new UnaryCall(this.channel, { ...options, done })
    call.begin(options.timeoutMs)
    return () => call.cancel()
  }

  duplex(options: CallOptions<unknown> & { readonly timeoutMs?: number | undefined }): Stream {
    const { process } = this.channel
    const { path, decode, needsLeader, timeoutMs } = options
    const request: StreamOptions = { path, decode, needsLeader, process }
    const stream = new Stream(this.channel, request)
    if (timeoutMs !== undefined) process.setTimeout(() => stream.fail(lateness), timeoutMs)
    return stream
  }
}

interface UnaryOptions {
  readonly path: string
  readonly decode: Decode
  readonly message: Buffer
  readonly needsLeader: boolean
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

  begin(timeoutMs: number): void {
    this.#timer = this.#channel.process.setTimeout(() => this.fail(lateness), timeoutMs)
    this.#channel.add(this)
  }

  start(connection: Connection): void {
    const { path, message, needsLeader, decode, done } = this.#options
    connection.toMember(path, message, () => {
      connection.member.call(path, message, { needsLeader }, (reply) => {
        const bytes = 'message' in reply ? reply.message : undefined
        connection.toClient(path, bytes, () => {
          if (!('message' in reply)) this.fail(reply)
          else if (this.#end()) done(undefined, decode(reply.message))
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
