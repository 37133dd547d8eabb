/**
 * A watch that outlives connections and members.
 *
 * It is always in one of three states: looking for a member, opening (the create request is sent,
 * the confirmation is awaited), or following. Whatever goes wrong while opening or following leads
 * back to looking, from the last revision delivered; only lost history, a refusal and the end of the
 * client are reported.
 *
 * Silence is the difficult failure: a paused member keeps its connection. So after a second without
 * a message etcd is asked for progress, again and again until it answers, and a member that says
 * nothing at all for two seconds after the first question is left. A watcher that is far behind gets
 * no answer to that question and no events either while etcd reads through history that is not its
 * own, so the patience doubles each time it runs out for nothing.
 *
 * The consumer pulls: while it is busy nothing is read beyond gRPC's own small buffer, etcd keeps
 * the rest, and no clock runs against the member.
 */
import { status as GrpcStatus } from '@grpc/grpc-js'
import { pause } from '../lib/abort.ts'
import { Backoff } from '../lib/backoff.ts'
import type { Endpoint, EndpointSet } from './endpoints.ts'
import { EtcdError, errorFromStatus } from './errors.ts'
import { encode, reconnectFirstMs, reconnectMostMs, startWatch, type WatchCall } from './grpc.ts'
import type { WatchMessage } from './hot-messages.ts'
import type { Watch, WatchBatch, WatchRequest } from './protocol.ts'
import { WatchRequestSchema } from './rpc_pb.ts'
import { WholeRevisions } from './whole-revisions.ts'

const silenceMs = 1_000
const patienceFirstMs = 2_000
const patienceMostMs = 30_000
/** etcd drops the question while the watcher is behind, so it is put again. */
const askAgainMs = 250

const progressRequest: Buffer = encode(WatchRequestSchema, {
  requestUnion: { case: 'progressRequest', value: {} },
})

export class WatchStream implements Watch {
  readonly #request: WatchRequest
  readonly #endpoints: EndpointSet
  /** Aborts when the client closes, with the error to report. */
  readonly #closing: AbortSignal
  readonly #backoff = new Backoff({ firstMs: reconnectFirstMs, mostMs: reconnectMostMs })
  readonly #revisions: WholeRevisions
  #patienceMs = patienceFirstMs
  #session: Session | undefined
  /** Somebody waits for progress; stays so when the watch has to move. */
  #isAsked = false
  #started = false
  /** The last revision delivered, if etcd was found to have it no more. */
  #compactedAt: number | undefined

  constructor(options: {
    readonly request: WatchRequest
    readonly endpoints: EndpointSet
    readonly closing: AbortSignal
  }) {
    this.#request = options.request
    this.#endpoints = options.endpoints
    this.#closing = options.closing
    this.#revisions = new WholeRevisions(options.request.startRevision - 1)
  }

  requestProgress(): void {
    this.#isAsked = true
    this.#session?.ask()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<WatchBatch, void, undefined> {
    if (this.#started) throw new EtcdError({ kind: 'invalid', message: 'a watch is iterated once' })
    this.#started = true
    const ending = AbortSignal.any([this.#request.signal, this.#closing])
    let left: Endpoint | undefined
    while (!ending.aborted) {
      const endpoint = await this.#look(ending, left)
      if (endpoint === undefined) break
      try {
        yield* this.#follow(endpoint, ending)
      } catch (error) {
        if (!ending.aborted) this.#judge(error)
      }
      left = endpoint
    }
    if (!this.#request.signal.aborted) throw this.#closing.reason
  }

  /** Any connected member, the one just left last. */
  async #look(ending: AbortSignal, left: Endpoint | undefined): Promise<Endpoint | undefined> {
    if (left !== undefined) await pause(this.#backoff.next(), ending)
    while (!ending.aborted) {
      const avoid = left === undefined ? undefined : new Set([left])
      const endpoint = this.#endpoints.pick('streams', { avoid }) ?? this.#endpoints.pick('streams')
      if (endpoint !== undefined) return endpoint
      await this.#endpoints.changed(ending)
    }
    return undefined
  }

  /** Everything one member has to say, until it fails. */
  async *#follow(
    endpoint: Endpoint,
    ending: AbortSignal,
  ): AsyncGenerator<WatchBatch, never, undefined> {
    this.#revisions.startOver()
    const session = new Session(endpoint, this.#request, this.#startRevision())
    const stop = () => session.stop()
    ending.addEventListener('abort', stop)
    // It may have come while a member was looked for, when nobody was listening.
    if (ending.aborted) stop()
    this.#session = session
    if (this.#isAsked) session.ask()
    try {
      for (;;) {
        const message = await session.next(this.#patienceMs)
        if (message.canceled) throw refusal(message, endpoint)
        if (message.created) continue
        this.#patienceMs = patienceFirstMs
        this.#backoff.reset()
        const batch = this.#revisions.take(message)
        if (batch === undefined) continue
        if (message.events.length === 0) this.#isAsked = false
        yield batch
      }
    } finally {
      this.#session = undefined
      ending.removeEventListener('abort', stop)
      session.stop()
    }
  }

  /**
   * The last revision delivered, once more: etcd answers no question about progress on a watch that
   * starts in the future, and the one after the last is just that while nobody writes. What is
   * delivered already is dropped. Only where that revision is compacted the next one has to do.
   */
  #startRevision(): number {
    const { delivered } = this.#revisions
    return delivered < 1 || delivered === this.#compactedAt ? delivered + 1 : delivered
  }

  /** Throws what the consumer must know; returns when the watch can go on elsewhere. */
  #judge(error: unknown): void {
    if (!(error instanceof EtcdError)) throw error
    const { delivered } = this.#revisions
    if (error.compactRevision === delivered + 1 && this.#compactedAt !== delivered) {
      this.#compactedAt = delivered
      return
    }
    if (error instanceof SilentMember) {
      this.#patienceMs = Math.min(patienceMostMs, this.#patienceMs * 2)
      return
    }
    if (error.kind !== 'unavailable' && error.kind !== 'timeout') throw error
  }
}

class SilentMember extends EtcdError {}

/** One stream to one member, from its create request to its end. */
class Session {
  readonly endpoint: Endpoint
  readonly #call: WatchCall
  #failure: EtcdError | undefined
  #wake: (() => void) | undefined
  /** A question is open until etcd answers it. */
  #asking = false
  #isCreated = false

  constructor(endpoint: Endpoint, request: WatchRequest, startRevision: number) {
    this.endpoint = endpoint
    this.#call = startWatch(endpoint.client('streams'))
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
    this.#call.write(createRequest(request, startRevision))
  }

  /** Puts the question how far the watch has come, now and until it is answered. */
  ask(): void {
    if (this.#asking || this.#failure !== undefined) return
    this.#asking = true
    if (this.#isCreated) this.#call.write(progressRequest)
    this.#wake?.()
  }

  /** The next message; fails when the stream has, or when the member stays silent too long. */
  async next(patienceMs: number): Promise<WatchMessage> {
    let silentForMs = 0
    for (;;) {
      const message = this.#call.read() as WatchMessage | null
      if (message !== null) return this.#received(message)
      if (this.#failure !== undefined) throw this.#failure
      if (await this.#woken(this.#isQuestioned() ? askAgainMs : silenceMs)) continue
      silentForMs += this.#questionAgain()
      if (silentForMs >= patienceMs) await this.#leave(patienceMs)
    }
  }

  stop(): void {
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
    this.endpoint.noteAnswer('streams')
    if (message.created) {
      this.#isCreated = true
      if (this.#asking) this.#call.write(progressRequest)
    } else if (message.events.length === 0) {
      this.#asking = false
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
      message: `nothing heard on the watch for ${patienceMs} ms`,
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

/** etcd ended the watch by itself, with or without a word. */
function refusal(message: WatchMessage, endpoint: Endpoint): EtcdError {
  if (message.compactRevision > 0) {
    return new EtcdError({
      kind: 'compacted',
      message: `the history of the watch is gone: the oldest revision is ${message.compactRevision}`,
      endpoint: endpoint.name,
      compactRevision: message.compactRevision,
    })
  }
  return errorFromStatus({
    code: codeOfReason(message.cancelReason),
    details: message.cancelReason,
    endpoint: endpoint.name,
    write: false,
  })
}

/** etcd gives its reason as text only. What is not known to be final is tried elsewhere. */
function codeOfReason(reason: string): number {
  if (/permission denied|auth|user name/.test(reason)) return GrpcStatus.PERMISSION_DENIED
  if (reason.includes('watcher range is empty')) return GrpcStatus.INVALID_ARGUMENT
  return GrpcStatus.UNAVAILABLE
}
