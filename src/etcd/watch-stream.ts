/**
 * A watch that fails over between connections and members.
 *
 * It is always in one of three states: selecting a member, opening (the create request is sent and
 * not yet confirmed), or following. Any failure while opening or following leads back to selecting,
 * and the watch resumes from the last revision delivered. Only lost history, a refusal by etcd and
 * the closing of the client are reported to the consumer.
 *
 * A silent member is the difficult failure: a paused member does not close its connection. So after a second
 * without a message the watch requests progress, repeatedly until etcd responds, and leaves a
 * member that sends nothing at all for two seconds after the first request. A watcher that is far
 * behind gets no progress and no events while etcd scans history of other keys, so the timeout
 * doubles each time it expires, and stays raised until a complete response arrives.
 *
 * etcd may split a large response, so that it never takes much memory at once. The time that this
 * takes grows with the square of the changes in a part: seconds for a part full of deletes, and
 * several times the timeout for a revision that deletes all events of a namespace. So after a
 * stream that fell silent, the next one asks for whole responses; if those are too large for us, or
 * do not come either, the one after it may split them again.
 *
 * A watch that continues an earlier read (`sameHistory`) makes each stream prove that it is in the
 * history that was delivered: see history-proof.ts. The stream starts at the anchor, and nothing is
 * verified until all changes that were delivered have come again. A member that is behind gets
 * repeated progress requests, and is left when it does not catch up in time. As long as no unique
 * value has been delivered there is no anchor. Then only connections older than the read are used:
 * they lead to a member that has existed since before the read.
 *
 * etcd registers a watch before the option that asks for previous values, so the first changes of a
 * stream may come without them. The watch then opens another stream, as often as it takes: etcd has
 * the values, or cancels the stream because it starts before the oldest revision that is left. Only
 * the changes of that oldest revision itself are delivered without them.
 *
 * The consumer pulls: while it is busy nothing is read beyond gRPC's own small buffer, etcd buffers
 * the rest, and no timeout runs against the member.
 */
import { status as GrpcStatus } from '../grpc/status-codes.ts'
import { AbortListener, pause } from '../lib/abort.ts'
import { Backoff } from '../lib/backoff.ts'
import { firstBackoffMs, maxBackoffMs } from './connection.ts'
import { EtcdError, errorOfCall } from './errors.ts'
import { HistoryProof } from './history-proof.ts'
import type { Member, Members } from './members.ts'
import type { WatchMessage } from './protocol/hot-messages.ts'
import type {
  ConnectionNumber,
  HistoryWatch,
  HistoryWatchRequest,
  SameHistory,
  WatchBatch,
  WatchEvent,
  WatchRequest,
} from './protocol/protocol.ts'
import { SilentMember, WatchSession } from './watch-session.ts'
import { WholeRevisions } from './whole-revisions.ts'

const silenceTimeoutFirstMs = 2_000
const silenceTimeoutMostMs = 30_000

export class WatchStream implements HistoryWatch {
  readonly #request: WatchRequest
  readonly #sameHistory: SameHistory | undefined
  readonly #members: Members
  /** Aborts when the client closes, with the error to report. */
  readonly #closing: AbortSignal
  readonly #backoff = new Backoff({ firstMs: firstBackoffMs, mostMs: maxBackoffMs })
  readonly #revisions: WholeRevisions
  readonly #proof: HistoryProof | undefined
  #silenceTimeoutMs = silenceTimeoutFirstMs
  #session: WatchSession | undefined
  /** The consumer waits for progress; stays set when the watch fails over. */
  #isProgressRequested = false
  #connection: ConnectionNumber = 0
  #started = false
  #isSplit = true
  /** The last revision delivered, if etcd has compacted it. */
  #compactedAt: number | undefined

  constructor(options: {
    readonly request: WatchRequest | HistoryWatchRequest
    readonly members: Members
    readonly closing: AbortSignal
  }) {
    this.#request = options.request
    this.#members = options.members
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
    return session?.isVerified === true ? session.newestAtOpen : 0
  }

  verify(connection: ConnectionNumber): void {
    const session = this.#session
    if (session !== undefined && session.newestAtOpen < connection) session.stop()
  }

  requestProgress(): void {
    this.#isProgressRequested = true
    this.#session?.requestProgress()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<WatchBatch, void, undefined> {
    if (this.#started) throw new EtcdError({ kind: 'invalid', message: 'a watch is iterated once' })
    this.#started = true
    const ending = AbortSignal.any([this.#request.signal, this.#closing])
    let left: Member | undefined
    while (!ending.aborted) {
      const member = await this.#selectMember(ending, left)
      if (member === undefined) break
      try {
        yield* this.#follow(member, ending)
      } catch (error) {
        if (!ending.aborted) this.#throwIfFinal(error)
      }
      left = member
    }
    if (!this.#request.signal.aborted) throw this.#closing.reason
  }

  /** Any connected member; the member that was just left is the last choice. */
  async #selectMember(ending: AbortSignal, left: Member | undefined): Promise<Member | undefined> {
    if (left !== undefined) await pause(this.#backoff.next(), ending)
    while (!ending.aborted) {
      const avoid = left === undefined ? undefined : new Set([left])
      const connectionMax = this.#connectionMax()
      const member =
        this.#members.pick('streams', { avoid, connectionMax }) ??
        this.#members.pick('streams', { connectionMax })
      if (member !== undefined) return member
      if (this.#members.pick('streams') !== undefined) throw notComparable()
      await this.#members.changed(ending)
    }
    return undefined
  }

  /** Yields everything that one member sends, until it fails. */
  async *#follow(member: Member, ending: AbortSignal): AsyncGenerator<WatchBatch, void, undefined> {
    const current = member.session('streams')
    if (current === undefined) return
    this.#revisions.startOver()
    const session = new WatchSession(member, current, {
      request: this.#request,
      startRevision: this.#startRevision(),
      newestAtOpen: this.#members.newest,
      isProving: this.#proof?.isOpen === true,
      isSplit: this.#isSplit,
    })
    const connectionMax = this.#connectionMax() ?? session.connection
    if (session.connection > connectionMax) session.stop()
    using _stopping = new AbortListener(ending, () => session.stop())
    this.#session = session
    if (this.#isProgressRequested || this.#proof?.isOpen === true) session.requestProgress()
    try {
      for (;;) {
        const message = await session.next(this.#silenceTimeoutMs)
        if (message.canceled) throw cancelError(message, member)
        const batch = message.created ? this.#onCreated() : this.#take(message)
        this.#updateVerification(session, message)
        this.#connection = Math.max(this.#connection, session.connection)
        if (batch !== undefined) yield batch
      }
    } finally {
      this.#session = undefined
      session.stop()
    }
  }

  #take(message: WatchMessage): WatchBatch | undefined {
    if (this.#request.prevKv === true) this.#checkPrevious(message.events)
    const batch = this.#revisions.take(message)
    // A stream that has not proven its history yet may never do so.
    if (this.#proof?.isOpen !== true && !message.fragment) {
      this.#silenceTimeoutMs = silenceTimeoutFirstMs
      this.#backoff.reset()
    }
    if (batch !== undefined && message.events.length === 0) this.#isProgressRequested = false
    return batch
  }

  /** Throws when a change lacks a previous value that etcd may still have. */
  #checkPrevious(events: readonly WatchEvent[]): void {
    const { delivered } = this.#revisions
    // A stream begins with the last revision delivered, whose previous values are often compacted.
    const compacted = this.#compactedAt === delivered ? delivered + 1 : delivered
    const lacking = events.find(
      ({ type, kv, prevKv }) =>
        prevKv === undefined && (type === 'delete' || kv.version > 1) && kv.modRevision > compacted,
    )
    if (lacking === undefined) return
    throw new EtcdError({
      kind: 'unavailable',
      message: `etcd sent revision ${lacking.kv.modRevision} without the previous value`,
    })
  }

  /** A stream without a history to compare counts as verified at once, which the batch reports. */
  #onCreated(): WatchBatch | undefined {
    if (this.#proof === undefined || this.#proof.isOpen) return undefined
    return { revision: this.#revisions.delivered, events: [] }
  }

  #updateVerification(session: WatchSession, message: WatchMessage): void {
    const { created, events } = message
    if (this.#proof?.isOpen === false) session.setVerified(!created && events.length === 0)
    // etcd reports progress once it has sent all changes so far, which may be now.
    else if (this.#proof !== undefined && events.length > 0) session.requestProgressNow()
  }

  /**
   * The last revision delivered, again: etcd ignores progress requests on a watch that starts in
   * the future, and the next revision is in the future until the next write. Changes that were
   * delivered before are dropped. Only if that revision is compacted, the watch starts at the next.
   */
  #startRevision(): number {
    const anchor = this.#proof?.revision
    if (anchor !== undefined) return anchor
    const { delivered } = this.#revisions
    return delivered < 1 || delivered === this.#compactedAt ? delivered + 1 : delivered
  }

  /** As long as there is no anchor, only connections from before the read can be trusted. */
  #connectionMax(): ConnectionNumber | undefined {
    return this.#proof?.revision === undefined ? this.#sameHistory?.connectionMax : undefined
  }

  /** Throws an error that the consumer must see; returns when the watch can fail over. */
  #throwIfFinal(error: unknown): void {
    if (!(error instanceof EtcdError)) throw error
    const { delivered } = this.#revisions
    const hasAnchor = this.#proof?.revision !== undefined
    const isNext = error.compactRevision === delivered + 1 && this.#compactedAt !== delivered
    if (isNext && !hasAnchor) {
      this.#compactedAt = delivered
      return
    }
    const wasSplit = this.#isSplit
    this.#isSplit = !(error instanceof SilentMember && wasSplit)
    if (!wasSplit && error.kind === 'too-large') return
    if (error instanceof SilentMember) {
      this.#silenceTimeoutMs = Math.min(silenceTimeoutMostMs, this.#silenceTimeoutMs * 2)
      return
    }
    if (error.kind !== 'unavailable' && error.kind !== 'timeout') throw error
  }
}

/** The consumer has to read everything again, as if the history were lost. */
function notComparable(): EtcdError {
  return new EtcdError({
    kind: 'compacted',
    message: 'the connection broke, and no delivered value identifies the history',
  })
}

/** The error for a watch that etcd cancelled, with or without a reason. */
function cancelError(message: WatchMessage, member: Member): EtcdError {
  const { compactRevision } = message
  if (compactRevision > 0) {
    return new EtcdError({
      kind: 'compacted',
      message: `the history for the watch is compacted: the oldest revision is ${compactRevision}`,
      endpoint: member.name,
      compactRevision,
    })
  }
  const { cancelReason } = message
  return errorOfCall(
    {
      code: codeOfReason(cancelReason),
      message: cancelReason,
      origin: 'server',
      mayHaveBeenApplied: false,
    },
    { endpoint: member.name, isWrite: false },
  )
}

/** etcd gives its reason as text only. A reason that is not known to be final is retried. */
function codeOfReason(reason: string): number {
  if (/permission denied|auth|user name/.test(reason)) return GrpcStatus.PERMISSION_DENIED
  if (reason.includes('watcher range is empty')) return GrpcStatus.INVALID_ARGUMENT
  return GrpcStatus.UNAVAILABLE
}
