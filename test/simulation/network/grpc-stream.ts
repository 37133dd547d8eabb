/** A watch, which etcd offers as a bidirectional stream, or a range in chunks. */
import { CallFailure } from '../../../src/grpc/call-failure.ts'
import type { StreamIn } from '../etcd/contract.ts'
import type { SimulatedProcess } from '../kernel/process.ts'
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
  hasResponded: boolean
  remove(call: Stream): void
}

export class Stream {
  readonly #calls: Calls
  readonly #options: StreamOptions
  readonly #listeners = new Map<string, Listener[]>()
  #received: unknown[] = []
  #connection: Connection | undefined
  #atMember: StreamIn | undefined
  #inFlight = 0
  #messagesReceived = 0
  #isFull = false
  #hasEnded = false

  constructor(calls: Calls, options: StreamOptions) {
    this.#calls = calls
    this.#options = options
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

  /** Only whether it grows matters. */
  get bytesReceived(): number {
    return this.#messagesReceived
  }

  end(message: Buffer): void {
    this.write(message)
  }

  write(message: Buffer): void {
    if (this.#hasEnded) return
    this.#connection?.toMember(this.#options.path, message, () => this.#atMember?.receive(message))
  }

  read(): unknown {
    const message = this.#received.shift()
    if (message === undefined) return null
    this.#inFlight--
    if (this.#isFull && this.#inFlight <= windowMessages / 2) this.#drained()
    return message
  }

  cancel(): void {
    if (!this.#end()) return
    this.#connection?.toMember('cancel', undefined, () => this.#closeAtMember())
  }

  start(connection: Connection): void {
    this.#connection = connection
    const { path, needsLeader } = this.#options
    connection.toMember(path, undefined, () => this.#openAtMember(connection, needsLeader))
  }

  fail(failure: CallFailure): void {
    if (this.#end()) this.#emit('error', failure)
  }

  #openAtMember(connection: Connection, needsLeader: boolean): void {
    const forget = connection.onEndAtMember(() => this.#closeAtMember())
    const { member } = connection
    const open = this.#options.path.endsWith('/Watch') ? 'openWatch' : 'openRangeStream'
    this.#atMember = member[open](
      {
        send: (message) => this.#toClient(connection, message),
        end: (code, details) => {
          forget()
          this.#atMember = undefined
          const failure = {
            code,
            message: details,
            origin: 'server',
            mayHaveBeenApplied: true,
          } as const
          connection.toClient('end', undefined, () => {
            if (code !== 0) this.fail(new CallFailure(failure))
            else if (this.#end()) this.#emit('end')
          })
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
    this.#calls.hasResponded = true
    if (this.#hasEnded) return
    this.#messagesReceived++
    this.#received.push(this.#options.decode(message))
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
