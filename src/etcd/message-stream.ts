import type { CallFailure } from '../grpc/call-failure.ts'
import type { DuplexCall } from '../grpc/duplex-call.ts'
import type { DuplexOptions } from '../grpc/session.ts'
import type { NumberedSession } from './connection.ts'
import { EtcdError } from './errors.ts'
import type { Member } from './members.ts'

/** The messages of one stream from one member, until it fails, ends or is stopped. */
export class MessageStream<Message> {
  readonly #member: Member
  readonly #session: NumberedSession['session']
  readonly #call: DuplexCall<Message>
  #failure: EtcdError | undefined
  #wake: (() => void) | undefined

  constructor(member: Member, { session }: NumberedSession, method: DuplexOptions<Message>) {
    this.#member = member
    this.#session = session
    this.#call = session.duplex(method)
    this.#call.on('readable', this.wake)
    this.#call.on('error', (failure: CallFailure) => this.#fail(member.failed(failure, false)))
    this.#call.on('end', () => this.#fail(this.#ended()))
  }

  /** Whether the stream has failed, ended or been stopped. Messages may still be there to read. */
  get hasEnded(): boolean {
    return this.#failure !== undefined
  }

  /** Grows with each byte, also while a long message is still incomplete. */
  get bytesReceived(): number {
    return this.#call.bytesReceived
  }

  write(message: Buffer): void {
    if (!this.hasEnded) this.#call.write(message)
  }

  /** Sends the last message of this side. */
  end(message: Buffer): void {
    if (!this.hasEnded) this.#call.end(message)
  }

  /** The next message; undefined if none has arrived. Throws why the stream is over if it is. */
  read(): Message | undefined {
    const message = this.#call.read() as Message | null
    if (message !== null) return message
    // A member that shuts down waits until its streams have ended.
    if (this.#session.isGoingAway) this.stop()
    if (this.#failure !== undefined) throw this.#failure
    return undefined
  }

  /** Resolves to true when there may be something to read or `wake` is called, to false after `ms`. */
  woken(ms: number): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#wake = undefined
        resolve(false)
      }, ms)
      this.#wake = () => {
        clearTimeout(timer)
        this.#wake = undefined
        resolve(true)
      }
    })
  }

  readonly wake = (): void => this.#wake?.()

  /**
   * Whether there is nothing to read. When this process was itself stopped for a while, its timers
   * run before it has read what arrived meanwhile: that is read first.
   */
  async isEmpty(): Promise<boolean> {
    await new Promise((resolve) => setImmediate(resolve))
    await new Promise((resolve) => setImmediate(resolve))
    return this.#call.readableLength === 0 && !this.hasEnded
  }

  stop(): void {
    this.#fail(this.#ended())
    this.#call.cancel()
  }

  #fail(failure: EtcdError): void {
    this.#failure ??= failure
    this.wake()
  }

  #ended(): EtcdError {
    return new EtcdError({
      kind: 'unavailable',
      message: 'the stream ended',
      endpoint: this.#member.name,
    })
  }
}
