import type { NumberedSession } from './connection.ts'
import { EtcdError } from './errors.ts'
import type { Member } from './members.ts'
import { MessageStream } from './message-stream.ts'
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
  readonly #stream: MessageStream<WatchMessage>
  /** True until etcd reports progress; while proving, until its revision completes the proof. */
  #isProgressPending = false
  #isProving: boolean
  #isVerified = false
  /** The time without a useful message, excluding the time in which the consumer was busy. */
  #silentForMs = 0
  #isCreated = false

  constructor(
    member: Member,
    session: NumberedSession,
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
    this.connection = session.number
    this.newestAtOpen = options.newestAtOpen
    this.#isProving = options.isProving
    this.#stream = new MessageStream(member, session, watchMethod)
    const { request, startRevision, isSplit: fragment } = options
    const { key, rangeEnd, prevKv } = request
    this.#stream.write(encodeWatchCreate({ key, rangeEnd, prevKv, startRevision, fragment }))
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
    if (this.#isProgressPending || this.#stream.hasEnded) return
    this.#isProgressPending = true
    if (this.#isCreated) this.#stream.write(progressRequest)
    this.#stream.wake()
  }

  /** Repeats the request at once: etcd can probably respond now. */
  requestProgressNow(): void {
    this.#isProgressPending = true
    if (this.#isCreated) this.#stream.write(progressRequest)
  }

  /** The next message; fails when the stream has failed or the member is silent for too long. */
  async next(silenceTimeoutMs: number): Promise<WatchMessage> {
    for (;;) {
      const message = this.#stream.read()
      if (message !== undefined) return this.#received(message)
      const waitMs = this.#isResponseDue() ? progressRepeatMs : progressAfterMs
      if (await this.#stream.woken(waitMs)) continue
      this.#silentForMs += this.#repeatProgressRequest()
      if (this.#silentForMs >= silenceTimeoutMs) await this.#failIfSilent(silenceTimeoutMs)
    }
  }

  stop(): void {
    this.#stream.stop()
  }

  /** Whether a message from etcd is due: progress, or the confirmation of the watch. */
  #isResponseDue(): boolean {
    return this.#isProgressPending || !this.#isCreated
  }

  /** Sends a progress request; returns how long an earlier one was pending without a message. */
  #repeatProgressRequest(): number {
    const silentForMs = this.#isResponseDue() ? progressRepeatMs : 0
    this.#isProgressPending = true
    if (this.#isCreated) this.#stream.write(progressRequest)
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
      if (this.#isProgressPending) this.#stream.write(progressRequest)
    }
    return message
  }

  async #failIfSilent(silenceTimeoutMs: number): Promise<void> {
    if (!(await this.#stream.isEmpty())) return
    this.member.suspect()
    throw new SilentMember({
      kind: 'unavailable',
      message: this.#isProving
        ? `the watch did not catch up with the delivered history within ${silenceTimeoutMs} ms`
        : `no message on the watch for ${silenceTimeoutMs} ms`,
      endpoint: this.member.name,
    })
  }
}
