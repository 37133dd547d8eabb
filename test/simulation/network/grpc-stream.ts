/** A bidirectional stream: a watch, or the renewal of a lease, which etcd offers as a stream. */
import type { StreamIn } from '../etcd/contract.ts'
import type { SimulatedProcess } from '../kernel/process.ts'
import type { CallFailure, OpenCall } from './channel.ts'
import type { Connection } from './connection.ts'

/** Messages sent and not yet read by the client, above which the member has to wait. */
const windowMessages = 32

export interface StreamOptions {
  readonly path: string
  readonly decode: (message: Buffer) => unknown
  readonly needsLeader: boolean
  readonly process: SimulatedProcess
}

type Listener = (value?: unknown) => void

interface Calls {
  add(call: OpenCall): void
  remove(call: OpenCall): void
}

export class Stream implements OpenCall {
  readonly #calls: Calls
  readonly #options: StreamOptions
  readonly #listeners = new Map<string, Listener[]>()
  /** Requests that were written before there was a connection. */
  #unsent: Buffer[] = []
  #received: unknown[] = []
  #connection: Connection | undefined
  #atMember: StreamIn | undefined
  #inFlight = 0
  #isFull = false
  #hasEnded = false

  constructor(calls: Calls, options: StreamOptions) {
    this.#calls = calls
    this.#options = options
    // The real one connects in the next tick too: listeners are added first.
    queueMicrotask(() => {
      if (!this.#hasEnded) calls.add(this)
    })
  }

  get readableLength(): number {
    return this.#received.length
  }

  on(event: string, listener: Listener): this {
    const others = this.#listeners.get(event)
    if (others === undefined) this.#listeners.set(event, [listener])
    else others.push(listener)
    return this
  }

  once(event: string, listener: Listener): this {
    return this.on(event, listener)
  }

  write(message: Buffer): boolean {
    if (this.#hasEnded) return true
    if (this.#connection === undefined) this.#unsent.push(message)
    else this.#send(this.#connection, message)
    return true
  }

  read(): unknown {
    const message = this.#received.shift()
    if (message === undefined) return null
    this.#inFlight--
    if (this.#isFull && this.#inFlight <= windowMessages / 2) this.#drained()
    return message
  }

  end(): void {
    this.cancel()
  }

  resume(): void {}

  cancel(): void {
    if (!this.#end()) return
    this.#connection?.toMember('cancel', undefined, () => this.#closeAtMember())
  }

  start(connection: Connection): void {
    this.#connection = connection
    const { path, needsLeader } = this.#options
    if (path.endsWith('Watch/Watch')) {
      connection.toMember(path, undefined, () => this.#openAtMember(connection, needsLeader))
    }
    const unsent = this.#unsent
    this.#unsent = []
    for (const message of unsent) this.#send(connection, message)
  }

  fail(failure: CallFailure): void {
    if (this.#end()) this.#emit('error', failure)
  }

  #send(connection: Connection, message: Buffer): void {
    const { path, needsLeader } = this.#options
    connection.toMember(path, message, () => {
      if (this.#atMember !== undefined) this.#atMember.receive(message)
      else if (!path.endsWith('Watch/Watch')) {
        connection.member.call(path, message, { needsLeader }, (reply) => {
          if ('message' in reply) this.#toClient(connection, reply.message)
          else connection.toClient(path, undefined, () => this.fail(reply))
        })
      }
    })
  }

  #openAtMember(connection: Connection, needsLeader: boolean): void {
    const forget = connection.onEndAtMember(() => this.#closeAtMember())
    this.#atMember = connection.member.openWatch(
      {
        send: (message) => this.#toClient(connection, message),
        end: (code, details) => {
          forget()
          this.#atMember = undefined
          connection.toClient('end', undefined, () => this.fail({ code, details }))
        },
      },
      { needsLeader },
    )
  }

  #toClient(connection: Connection, message: Buffer): boolean {
    this.#inFlight++
    connection.toClient(this.#options.path, message, () => this.#receive(message))
    this.#isFull = this.#inFlight >= windowMessages
    return !this.#isFull
  }

  #receive(message: Buffer): void {
    if (this.#hasEnded) return
    const decoded = this.#options.decode(message)
    if (this.#listeners.has('data')) {
      this.#inFlight--
      this.#emit('data', decoded)
      return
    }
    this.#received.push(decoded)
    this.#emit('readable')
  }

  #drained(): void {
    this.#isFull = false
    this.#connection?.toMember('window', undefined, () => this.#atMember?.onDrain())
  }

  #closeAtMember(): void {
    const stream = this.#atMember
    this.#atMember = undefined
    stream?.close()
  }

  #emit(event: string, value?: unknown): void {
    for (const listener of this.#listeners.get(event) ?? []) listener(value)
  }

  #end(): boolean {
    if (this.#hasEnded) return false
    this.#hasEnded = true
    this.#calls.remove(this)
    return true
  }
}
