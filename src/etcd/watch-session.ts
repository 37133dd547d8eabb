import type { CallFailure } from '../grpc/call-failure.ts'
import type { DuplexCall } from '../grpc/duplex-call.ts'
import type { NumberedSession } from './connection.ts'
import { EtcdError } from './errors.ts'
import type { Member } from './members.ts'
import { watchMethod } from './methods.ts'
import { encodeWatchCreate, encodeWatchProgress } from './protocol/control-messages.ts'
import type { WatchMessage } from './protocol/hot-messages.ts'
import type { ConnectionNumber, WatchRequest } from './protocol/protocol.ts'

const progressAfterMs = 1_000
/** etcd drops progress requests while the watcher is behind, so they are repeated. */
const progressRepeatMs = 250

const progressRequest: Buffer = encodeWatchProgress()

/** The connection is open, but the member sent nothing, or nothing useful, for too long. */
export class SilentMember extends EtcdError {}

/**
 * One stream to one member, from its create request to its end. It requests progress when no message
 * comes, and fails when none comes then. Nothing else detects a stream that is stuck while its
 * connection works.
 */
export class WatchSession {
  readonly member: Member
  /** The connection of the stream. */
  readonly connection: ConnectionNumber
  /** The newest connection to any member when the stream was opened. */
  readonly newestAtOpen: ConnectionNumber
  readonly #session: NumberedSession['session']
  readonly #call: DuplexCall<WatchMessage>
  #failure: EtcdError | undefined
  #wake: (() => void) | undefined
  /** True until etcd reports progress; while proving, until its revision completes the proof. */
  #isProgressPending = false
  #isProving: boolean
  #isVerified = false
  /** The time without a useful message, excluding the time in which the consumer was busy. */
  #silentForMs = 0
  #isCreated = false

  constructor(
    member: Member,
    { session, number }: NumberedSession,
    options: {
      readonly request: WatchRequest
      readonly startRevision: number
      readonly newestAtOpen: ConnectionNumber
      /** The stream has to prove that it continues the delivered history. */
      readonly isProving: boolean
      /** Whether etcd may split a response. */
      readonly isSplit: boolean
    },
  ) {
    this.member = member
    this.connection = number
    this.newestAtOpen = options.newestAtOpen
    this.#isProving = options.isProving
    this.#session = session
    this.#call = session.duplex(watchMethod)
    const wake = () => this.#wake?.()
    this.#call.on('readable', wake)
    this.#call.on('error', (failure: CallFailure) => {
      this.#failure ??= member.failed(failure, false)
      wake()
    })
    this.#call.on('end', () => {
      this.#failure ??= this.#ended()
      wake()
    })
    const { request, startRevision, isSplit: fragment } = options
    const { key, rangeEnd, prevKv } = request
    this.#call.write(encodeWatchCreate({ key, rangeEnd, prevKv, startRevision, fragment }))
  }

  /** Whether the stream is known to continue the delivered history. */
  get isVerified(): boolean {
    return this.#isVerified
  }

  /** To be called when the stream is known to continue the history. `isProgress`: by its progress. */
  setVerified(isProgress: boolean): void {
    if (isProgress) this.#isProgressPending = false
    this.#isProving = false
    this.#isVerified = true
  }

  /** Requests progress, now and repeatedly until etcd responds. */
  requestProgress(): void {
    if (this.#isProgressPending || this.#failure !== undefined) return
    this.#isProgressPending = true
    if (this.#isCreated) this.#call.write(progressRequest)
    this.#wake?.()
  }

  /** Repeats the request at once: etcd can probably respond now. */
  requestProgressNow(): void {
    this.#isProgressPending = true
    if (this.#isCreated && this.#failure === undefined) this.#call.write(progressRequest)
  }

  /** The next message; fails when the stream has failed or the member is silent for too long. */
  async next(silenceTimeoutMs: number): Promise<WatchMessage> {
    for (;;) {
      const message = this.#call.read() as WatchMessage | null
      if (message !== null) return this.#received(message)
      // A member that shuts down waits until its streams have ended.
      if (this.#session.isGoingAway) this.stop()
      if (this.#failure !== undefined) throw this.#failure
      if (await this.#woken(this.#isResponseDue() ? progressRepeatMs : progressAfterMs)) continue
      this.#silentForMs += this.#repeatProgressRequest()
      if (this.#silentForMs >= silenceTimeoutMs) await this.#failIfSilent(silenceTimeoutMs)
    }
  }

  stop(): void {
    this.#failure ??= this.#ended()
    this.#call.cancel()
    this.#wake?.()
  }

  /** Whether a message from etcd is due: progress, or the confirmation of the watch. */
  #isResponseDue(): boolean {
    return this.#isProgressPending || !this.#isCreated
  }

  /** Sends a progress request; returns how long an earlier one was pending without a message. */
  #repeatProgressRequest(): number {
    const silentForMs = this.#isResponseDue() ? progressRepeatMs : 0
    this.#isProgressPending = true
    if (this.#isCreated) this.#call.write(progressRequest)
    return silentForMs
  }

  #received(message: WatchMessage): WatchMessage {
    const isProgress = !message.created && message.events.length === 0
    // Progress of a member that is behind proves nothing: it is requested again after a while.
    if (isProgress && this.#isProving) return message
    this.#silentForMs = 0
    if (isProgress) this.#isProgressPending = false
    if (message.created) {
      this.#isCreated = true
      if (this.#isProgressPending) this.#call.write(progressRequest)
    }
    return message
  }

  /**
   * When this process was itself stopped for a while, its timers run before it has read the
   * messages that arrived meanwhile: read those first.
   */
  async #failIfSilent(silenceTimeoutMs: number): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve))
    await new Promise((resolve) => setImmediate(resolve))
    if (this.#call.readableLength > 0 || this.#failure !== undefined) return
    this.member.suspect()
    throw new SilentMember({
      kind: 'unavailable',
      message: this.#isProving
        ? `the watch did not catch up with the delivered history within ${silenceTimeoutMs} ms`
        : `no message on the watch for ${silenceTimeoutMs} ms`,
      endpoint: this.member.name,
    })
  }

  /** Resolves to whether the session was woken within the time. */
  #woken(ms: number): Promise<boolean> {
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

  #ended(): EtcdError {
    return new EtcdError({
      kind: 'unavailable',
      message: 'the watch stream ended',
      endpoint: this.member.name,
    })
  }
}
