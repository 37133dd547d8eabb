/**
 * Replaces `src/grpc/session.ts` in the simulation: sessions whose calls and streams go over the
 * simulated network. The behaviour is that of the real one: an attempt fails at once when the
 * machine refuses it and hangs when nothing responds, and calls fail when the connection breaks.
 * `ping` describes how it differs.
 */
import { CallFailure } from '../../../src/grpc/call-failure.ts'
import type { CallOptions, SessionOptions, UnaryOptions } from '../../../src/grpc/session.ts'
import { status } from '../../../src/grpc/status-codes.ts'
import type { CallReply } from '../etcd/contract.ts'
import { currentProcess } from '../kernel/current.ts'
import type { SimulatedProcess } from '../kernel/process.ts'
import type { Connection } from './connection.ts'
import { Stream } from './grpc-stream.ts'
import { type Host, hostOf } from './host.ts'

/** How often the system repeats its request for a connection. */
const connectRetryMs = 1_000

/** The pause between pings, as in src/grpc/session.ts. */
const minPingIntervalMs = 5_500

const memberOfHost = /^etcd-(\d+)$/

/** A call or stream that has not ended. */
export interface OpenCall {
  fail(failure: CallFailure): void
}

type Done = (failure: CallFailure | undefined, response?: unknown) => void

export class Session {
  readonly process: SimulatedProcess
  readonly isGoingAway = false
  hasResponded = false
  readonly #host: Host
  readonly #member: number
  readonly #options: Pick<SessionOptions, 'onReady' | 'onEnd'>
  readonly #calls = new Set<OpenCall>()
  #connection: Connection | undefined
  #hasEnded = false
  #pingedAt = Number.NEGATIVE_INFINITY
  #isPingPostponed = false

  constructor(options: {
    readonly target: { readonly host: string }
    readonly onReady: SessionOptions['onReady']
    readonly onEnd: SessionOptions['onEnd']
  }) {
    const process = currentProcess()
    const host = process && hostOf(process)
    const member = memberOfHost.exec(options.target.host)?.[1]
    if (process === undefined || host === undefined || member === undefined) {
      throw new Error(`no simulated member at ${options.target.host}`)
    }
    this.process = process
    this.#host = host
    this.#member = Number(member)
    this.#options = options
    this.#attempt()
  }

  unary(options: UnaryOptions<unknown>, done: Done): () => void {
    const call = new UnaryCall(this, options, done)
    this.#start(call, (connection) => call.start(connection))
    return () => call.cancel()
  }

  duplex({ path, decode, metadata }: CallOptions<unknown>): Stream {
    const { process } = this
    const stream = new Stream(this, { path, decode, needsLeader: metadata !== undefined, process })
    this.#start(stream, (connection) => stream.start(connection))
    return stream
  }

  get isDestroyed(): boolean {
    return this.#hasEnded
  }

  /**
   * Like the real one, it is sent later if it is too early for another one, and not sent without a
   * call. Unlike the real one, it is no message: after 3 s the connection is closed if its link has
   * been blocked, or its member paused, for all of that time. It is not delayed by responses.
   */
  ping(): void {
    if (this.#hasEnded || this.#calls.size === 0 || this.#isPingPostponed) return
    const { now } = this.#host.network.scheduler
    const allowedAt = this.#pingedAt + minPingIntervalMs
    if (now < allowedAt) {
      this.#isPingPostponed = true
      this.process.at(allowedAt, () => {
        this.#isPingPostponed = false
        this.ping()
      })
      return
    }
    this.#pingedAt = now
    this.#connection?.ping()
  }

  /** Nothing in the simulation replaces a session that is in use. */
  drain(): void {
    this.destroy()
  }

  destroy(): void {
    this.#hasEnded = true
    this.#connection?.closeByClient()
    this.#failAll()
  }

  remove(call: OpenCall): void {
    this.#calls.delete(call)
  }

  #start(call: OpenCall, start: (connection: Connection) => void): void {
    const connection = this.#connection
    if (connection === undefined || this.#hasEnded) {
      this.process.setImmediate(() => call.fail(notSent))
      return
    }
    this.#calls.add(call)
    start(connection)
  }

  #attempt(): void {
    const { network, replica } = this.#host
    const link = network.link(replica, this.#member)
    this.process.after(network.delayMs(link) * 2, () => {
      if (this.#hasEnded) return
      if (network.isAccepting(replica, this.#member)) this.#connected()
      else if (network.isRefusing(replica, this.#member)) this.#end(new Error('ECONNREFUSED'))
      else this.process.after(connectRetryMs, () => this.#hasEnded || this.#attempt())
    })
  }

  #connected(): void {
    const { network, replica } = this.#host
    const link = network.link(replica, this.#member)
    this.#connection = network.open(this.process, link, () => {
      this.#end(undefined)
      this.#failAll()
    })
    this.#options.onReady()
  }

  #end(error: Error | undefined): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.#options.onEnd(error)
  }

  #failAll(): void {
    const calls = [...this.#calls]
    this.#calls.clear()
    for (const call of calls) call.fail(dropped)
  }
}

class UnaryCall implements OpenCall {
  readonly #session: Session
  readonly #options: UnaryOptions<unknown>
  readonly #done: Done
  #hasEnded = false
  readonly #timer: ReturnType<SimulatedProcess['setTimeout']>

  constructor(session: Session, options: UnaryOptions<unknown>, done: Done) {
    this.#session = session
    this.#options = options
    this.#done = done
    this.#timer = session.process.setTimeout(() => this.fail(lateness), options.timeoutMs)
  }

  start(connection: Connection): void {
    const { path, message, metadata, decode } = this.#options
    connection.toMember(path, message, () => {
      connection.member.call(path, message, { needsLeader: metadata !== undefined }, (reply) => {
        const bytes = 'message' in reply ? reply.message : undefined
        connection.toClient(path, bytes, () => {
          this.#session.hasResponded = true
          if (!('message' in reply)) this.fail(statusFailure(reply))
          else if (this.#end()) this.#done(undefined, decode(reply.message))
        })
      })
    })
  }

  fail(failure: CallFailure): void {
    if (this.#end()) this.#done(failure)
  }

  /** etcd goes on with a request that it has received; the response is ignored. */
  cancel(): void {
    this.#end()
  }

  #end(): boolean {
    if (this.#hasEnded) return false
    this.#hasEnded = true
    this.#session.process.clear(this.#timer)
    this.#session.remove(this)
    return true
  }
}

/** The failure for a status of the member. */
export function statusFailure({
  code,
  details,
}: Exclude<CallReply, { readonly message: Buffer }>): CallFailure {
  return new CallFailure({ code, message: details, origin: 'server', mayHaveBeenApplied: true })
}

const lateness = new CallFailure({
  code: status.DEADLINE_EXCEEDED,
  message: 'deadline exceeded',
  origin: 'local',
  mayHaveBeenApplied: true,
})
const dropped = new CallFailure({
  code: status.UNAVAILABLE,
  message: 'the connection was lost',
  origin: 'transport',
  mayHaveBeenApplied: true,
})
const notSent = new CallFailure({
  code: status.UNAVAILABLE,
  message: 'there is no connection',
  origin: 'local',
  mayHaveBeenApplied: false,
})
