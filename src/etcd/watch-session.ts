import type { Endpoint, Link } from './endpoints.ts'
import { EtcdError } from './errors.ts'
import { encode, startWatch, type WatchCall } from './grpc.ts'
import type { WatchMessage } from './hot-messages.ts'
import type { ConnectionNumber, WatchRequest } from './protocol.ts'
import { WatchRequestSchema } from './rpc_pb.ts'

const silenceMs = 1_000
/** etcd drops the question while the watcher is behind, so it is put again. */
const askAgainMs = 250

const progressRequest: Buffer = encode(WatchRequestSchema, {
  requestUnion: { case: 'progressRequest', value: {} },
})

/** It kept its connection and said nothing, or nothing that helps, for too long. */
export class SilentMember extends EtcdError {}

/** One stream to one member, from its create request to its end. */
export class Session {
  readonly endpoint: Endpoint
  /** The newest connection to any member when it was opened. */
  readonly openedAt: ConnectionNumber
  readonly #link: Link
  readonly #call: WatchCall
  readonly #onLost = () => this.stop()
  #failure: EtcdError | undefined
  #wake: (() => void) | undefined
  /** A question is open until etcd answers it, with a revision that proves something if that is due. */
  #asking = false
  #isProving: boolean
  #isVerified = false
  /** How long there was nothing that helps. Not while the consumer is busy. */
  #silentForMs = 0
  #isCreated = false

  constructor(
    endpoint: Endpoint,
    options: {
      readonly request: WatchRequest
      readonly startRevision: number
      readonly openedAt: ConnectionNumber
      /** It has to prove that it continues what was delivered. */
      readonly isProving: boolean
    },
  ) {
    this.endpoint = endpoint
    this.openedAt = options.openedAt
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
    this.#call.write(createRequest(options.request, options.startRevision))
    // gRPC may put a stream that it has not begun on the next connection, which nobody has vouched for.
    this.#link.lost.addEventListener('abort', this.#onLost)
    if (this.#link.lost.aborted) this.stop()
  }

  /** No older than the one it is on. */
  get connection(): ConnectionNumber {
    return this.#link.number
  }

  /** Whether what it tells continues what was delivered before. */
  get isVerified(): boolean {
    return this.#isVerified
  }

  /** It was found to continue what was delivered before, by an answer to a question or otherwise. */
  verified(isAnswer: boolean): void {
    if (isAnswer) this.#asking = false
    this.#isProving = false
    this.#isVerified = true
  }

  /** Puts the question how far the watch has come, now and until it is answered. */
  ask(): void {
    if (this.#asking || this.#failure !== undefined) return
    this.#asking = true
    if (this.#isCreated) this.#call.write(progressRequest)
    this.#wake?.()
  }

  /** Puts it again at once: there is reason to believe that it will be answered now. */
  askNow(): void {
    this.#asking = true
    if (this.#isCreated && this.#failure === undefined) this.#call.write(progressRequest)
  }

  /** The next message; fails when the stream has, or when the member stays silent too long. */
  async next(patienceMs: number): Promise<WatchMessage> {
    for (;;) {
      const message = this.#call.read() as WatchMessage | null
      if (message !== null) return this.#received(message)
      if (this.#failure !== undefined) throw this.#failure
      if (await this.#woken(this.#isQuestioned() ? askAgainMs : silenceMs)) continue
      this.#silentForMs += this.#questionAgain()
      if (this.#silentForMs >= patienceMs) await this.#leave(patienceMs)
    }
  }

  stop(): void {
    this.#link.lost.removeEventListener('abort', this.#onLost)
    this.#failure ??= this.#ended()
    this.#call.cancel()
    this.#wake?.()
  }

  /** Whether etcd owes us a word: an answer, or the confirmation of the watch. */
  #isQuestioned(): boolean {
    return this.#asking || !this.#isCreated
  }

  /** Puts the question; says for how long one had been open without a word. */
  #questionAgain(): number {
    const silentForMs = this.#isQuestioned() ? askAgainMs : 0
    this.#asking = true
    if (this.#isCreated) this.#call.write(progressRequest)
    return silentForMs
  }

  #received(message: WatchMessage): WatchMessage {
    this.#link.noteAnswer()
    const isAnswer = !message.created && message.events.length === 0
    // One from a member that is behind proves nothing: it is asked again, after a while.
    if (isAnswer && this.#isProving) return message
    this.#silentForMs = 0
    if (isAnswer) this.#asking = false
    if (message.created) {
      this.#isCreated = true
      if (this.#asking) this.#call.write(progressRequest)
    }
    return message
  }

  /**
   * A process that was itself stopped for a while finds its timers due before it has read what has
   * arrived meanwhile: let that in before judging.
   */
  async #leave(patienceMs: number): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve))
    await new Promise((resolve) => setImmediate(resolve))
    if (this.#call.readableLength > 0 || this.#failure !== undefined) return
    this.endpoint.suspect()
    throw new SilentMember({
      kind: 'unavailable',
      message: this.#isProving
        ? `the watch did not get to what was delivered within ${patienceMs} ms`
        : `nothing heard on the watch for ${patienceMs} ms`,
      endpoint: this.endpoint.name,
    })
  }

  /** Resolves to whether something happened within the time. */
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

function createRequest(request: WatchRequest, startRevision: number): Buffer {
  return encode(WatchRequestSchema, {
    requestUnion: {
      case: 'createRequest',
      value: {
        key: request.key,
        rangeEnd: request.rangeEnd ?? new Uint8Array(0),
        startRevision: BigInt(startRevision),
        prevKv: request.prevKv ?? false,
        progressNotify: true,
        fragment: true,
      },
    },
  })
}
