import { AbortListener } from '../lib/abort.ts'
import type { Endpoint, Link } from './endpoints.ts'
import { EtcdError } from './errors.ts'
import { encode, startWatch, type WatchCall } from './grpc.ts'
import type { WatchMessage } from './protocol/hot-messages.ts'
import type { ConnectionNumber, WatchRequest } from './protocol/protocol.ts'
import { WatchRequestSchema } from './protocol/rpc_pb.ts'

const progressAfterMs = 1_000
/** etcd drops progress requests while the watcher is behind, so they are repeated. */
const progressRepeatMs = 250

const progressRequest: Buffer = encode(WatchRequestSchema, {
  requestUnion: { case: 'progressRequest', value: {} },
})

/** The member kept its connection, but sent nothing, or nothing useful, for too long. */
export class SilentMember extends EtcdError {}

/** One stream to one member, from its create request to its end. */
export class Session {
  readonly endpoint: Endpoint
  /** The newest connection to any member when the stream was opened. */
  readonly newestAtOpen: ConnectionNumber
  readonly #link: Link
  readonly #call: WatchCall
  readonly #losing: AbortListener
  #failure: EtcdError | undefined
  #wake: (() => void) | undefined
  /** Until etcd reports progress; while proving, until its revision completes the proof. */
  #isProgressPending = false
  #isProving: boolean
  #isVerified = false
  /** How long nothing useful was received. Does not count while the consumer is busy. */
  #silentForMs = 0
  #isCreated = false

  constructor(
    endpoint: Endpoint,
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
    this.endpoint = endpoint
    this.newestAtOpen = options.newestAtOpen
    this.#isProving = options.isProving
    this.#link = endpoint.link('streams')
    this.#call = startWatch(this.#link.client)
    const wake = () => this.#wake?.()
    this.#call.on('readable', wake)
    this.#call.on('error', (status: { readonly code: number; readonly details: string }) => {
      this.#failure ??= endpoint.failed(status, { write: false })
      wake()
    })
    this.#call.on('end', () => {
      this.#failure ??= this.#ended()
      wake()
    })
    this.#call.write(createRequest(options))
    // A stream that waits for a connection may be started on a later one, which is not verified.
    this.#losing = new AbortListener(this.#link.lost, () => this.#fail())
  }

  /** The connection of the stream, or a later one. */
  get connection(): ConnectionNumber {
    return this.#link.number
  }

  /** Whether the stream is known to continue the delivered history. */
  get isVerified(): boolean {
    return this.#isVerified
  }

  /** The stream continues the delivered history. `isProgress`: a progress response showed that. */
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
      if (this.#failure !== undefined) throw this.#failure
      if (await this.#woken(this.#isResponseDue() ? progressRepeatMs : progressAfterMs)) continue
      this.#silentForMs += this.#repeatProgressRequest()
      if (this.#silentForMs >= silenceTimeoutMs) await this.#failIfSilent(silenceTimeoutMs)
    }
  }

  stop(): void {
    this.#losing[Symbol.dispose]()
    this.#fail()
  }

  #fail(): void {
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
    this.#link.noteResponse()
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
    this.endpoint.suspect()
    throw new SilentMember({
      kind: 'unavailable',
      message: this.#isProving
        ? `the watch did not catch up with the delivered history within ${silenceTimeoutMs} ms`
        : `no message on the watch for ${silenceTimeoutMs} ms`,
      endpoint: this.endpoint.name,
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
      endpoint: this.endpoint.name,
    })
  }
}

function createRequest(options: {
  readonly request: WatchRequest
  readonly startRevision: number
  readonly isSplit: boolean
}): Buffer {
  const { request, startRevision, isSplit } = options
  return encode(WatchRequestSchema, {
    requestUnion: {
      case: 'createRequest',
      value: {
        key: request.key,
        rangeEnd: request.rangeEnd ?? new Uint8Array(0),
        startRevision: BigInt(startRevision),
        prevKv: request.prevKv ?? false,
        progressNotify: true,
        fragment: isSplit,
      },
    },
  })
}
