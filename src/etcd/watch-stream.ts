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
 * A watch that continues what was read (`sameHistory`) makes each stream prove that it
 * is in the history that was delivered: see history-proof.ts. It starts at the anchor, and until all
 * that was delivered has come again nothing is verified. A member that is behind is asked again and
 * again and left when it does not get there in time. While nothing unique has been delivered there is
 * no anchor; then a connection that was there before the reading began is proof enough, as its other
 * end was there, too.
 *
 * The consumer pulls: while it is busy nothing is read beyond gRPC's own small buffer, etcd keeps
 * the rest, and no clock runs against the member.
 */
import { status as GrpcStatus } from '@grpc/grpc-js'
import { pause } from '../lib/abort.ts'
import { Backoff } from '../lib/backoff.ts'
import type { Endpoint, EndpointSet } from './endpoints.ts'
import { EtcdError, errorFromStatus } from './errors.ts'
import { reconnectFirstMs, reconnectMostMs } from './grpc.ts'
import { HistoryProof } from './history-proof.ts'
import type { WatchMessage } from './hot-messages.ts'
import type {
  ConnectionNumber,
  HistoryWatch,
  HistoryWatchRequest,
  SameHistory,
  WatchBatch,
  WatchRequest,
} from './protocol.ts'
import { Session, SilentMember } from './watch-session.ts'
import { WholeRevisions } from './whole-revisions.ts'

const patienceFirstMs = 2_000
const patienceMostMs = 30_000

export class WatchStream implements HistoryWatch {
  readonly #request: WatchRequest
  readonly #sameHistory: SameHistory | undefined
  readonly #endpoints: EndpointSet
  /** Aborts when the client closes, with the error to report. */
  readonly #closing: AbortSignal
  readonly #backoff = new Backoff({ firstMs: reconnectFirstMs, mostMs: reconnectMostMs })
  readonly #revisions: WholeRevisions
  readonly #proof: HistoryProof | undefined
  #patienceMs = patienceFirstMs
  #session: Session | undefined
  /** Somebody waits for progress; stays so when the watch has to move. */
  #isAsked = false
  #connection: ConnectionNumber = 0
  #started = false
  /** The last revision delivered, if etcd was found to have it no more. */
  #compactedAt: number | undefined

  constructor(options: {
    readonly request: WatchRequest | HistoryWatchRequest
    readonly endpoints: EndpointSet
    readonly closing: AbortSignal
  }) {
    this.#request = options.request
    this.#endpoints = options.endpoints
    this.#closing = options.closing
    const { startRevision } = options.request
    const sameHistory = 'sameHistory' in options.request ? options.request.sameHistory : undefined
    this.#sameHistory = sameHistory
    this.#proof = sameHistory && new HistoryProof((kv) => sameHistory.isUnique(kv))
    this.#revisions = new WholeRevisions(startRevision - 1, this.#proof)
  }

  get connection(): ConnectionNumber {
    return this.#connection
  }

  get verified(): ConnectionNumber {
    const session = this.#session
    return session?.isVerified === true ? session.openedAt : 0
  }

  verify(connection: ConnectionNumber): void {
    const session = this.#session
    if (session !== undefined && session.openedAt < connection) session.stop()
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
      const connectionMax = this.#connectionMax()
      const endpoint =
        this.#endpoints.pick('streams', { avoid, connectionMax }) ??
        this.#endpoints.pick('streams', { connectionMax })
      if (endpoint !== undefined) return endpoint
      if (this.#endpoints.pick('streams') !== undefined) throw notComparable()
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
    const session = new Session(endpoint, {
      request: this.#request,
      startRevision: this.#startRevision(),
      openedAt: this.#endpoints.newest,
      isProving: this.#proof?.isOpen === true,
    })
    const connectionMax = this.#connectionMax() ?? session.connection
    if (session.connection > connectionMax) session.stop()
    const stop = () => session.stop()
    ending.addEventListener('abort', stop)
    // It may have come while a member was looked for, when nobody was listening.
    if (ending.aborted) stop()
    this.#session = session
    if (this.#isAsked || this.#proof?.isOpen === true) session.ask()
    try {
      for (;;) {
        const message = await session.next(this.#patienceMs)
        if (message.canceled) throw refusal(message, endpoint)
        const batch = message.created ? this.#begun() : this.#take(message)
        this.#judgeProof(session, message)
        this.#connection = Math.max(this.#connection, session.connection)
        if (batch !== undefined) yield batch
      }
    } finally {
      this.#session = undefined
      ending.removeEventListener('abort', stop)
      session.stop()
    }
  }

  #take(message: WatchMessage): WatchBatch | undefined {
    const batch = this.#revisions.take(message)
    // One that has proven nothing yet may never do so.
    if (this.#proof?.isOpen !== true) {
      this.#patienceMs = patienceFirstMs
      this.#backoff.reset()
    }
    if (batch !== undefined && message.events.length === 0) this.#isAsked = false
    return batch
  }

  /** Where nothing is to be compared, that it has begun is news: it is verified by its connection. */
  #begun(): WatchBatch | undefined {
    if (this.#proof === undefined || this.#proof.isOpen) return undefined
    return { revision: this.#revisions.delivered, events: [] }
  }

  #judgeProof(session: Session, message: WatchMessage): void {
    const { created, events } = message
    if (this.#proof?.isOpen === false) session.verified(!created && events.length === 0)
    // etcd answers once it has told all there was, which may be now.
    else if (this.#proof !== undefined && events.length > 0) session.askNow()
  }

  /**
   * The last revision delivered, once more: etcd answers no question about progress on a watch that
   * starts in the future, and the one after the last is just that while nobody writes. What is
   * delivered already is dropped. Only where that revision is compacted the next one has to do.
   */
  #startRevision(): number {
    const anchor = this.#proof?.revision
    if (anchor !== undefined) return anchor
    const { delivered } = this.#revisions
    return delivered < 1 || delivered === this.#compactedAt ? delivered + 1 : delivered
  }

  /** Without an anchor only what was there when the reading began can be trusted. */
  #connectionMax(): ConnectionNumber | undefined {
    return this.#proof?.revision === undefined ? this.#sameHistory?.connectionMax : undefined
  }

  /** Throws what the consumer must know; returns when the watch can go on elsewhere. */
  #judge(error: unknown): void {
    if (!(error instanceof EtcdError)) throw error
    const { delivered } = this.#revisions
    const hasAnchor = this.#proof?.revision !== undefined
    const isNext = error.compactRevision === delivered + 1 && this.#compactedAt !== delivered
    if (isNext && !hasAnchor) {
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

/** As far as the consumer is concerned, what came next is gone: it has to read everything again. */
function notComparable(): EtcdError {
  return new EtcdError({
    kind: 'compacted',
    message: 'the connection broke, and nothing is known by which to recognise the history',
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
