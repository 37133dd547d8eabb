/**
 * Reads all keys of a range at one revision, in order, in chunks.
 *
 * The first chunk is a range request: its response has the revision and the number of keys. What
 * follows is a stream if the member has it (RangeStream, etcd 3.7), otherwise further range
 * requests. For each of those etcd walks over all remaining keys to count them; for a stream it
 * counts nothing. One member may have it while another does not, during an upgrade.
 *
 * A stream may end at any time: its connection breaks, its member is silent, or it does not have
 * the method. The next chunk is then a range request again, which is hedged and retried, and fails
 * with the reason (calls.ts), so that streams need no retries and no errors of their own. It is the
 * number of keys that shows when everything has been read, not the end of a stream.
 */
import { AbortListener, LinkedAbort } from '../lib/abort.ts'
import type { Clock } from '../lib/clock.ts'
import type { NumberedSession } from './connection.ts'
import { EtcdError } from './errors.ts'
import type { Member, Members } from './members.ts'
import { MessageStream } from './message-stream.ts'
import { rangeStreamMethod } from './methods.ts'
import { encodeRange } from './protocol/hot-messages.ts'
import type {
  Bytes,
  CallObserver,
  CallOptions,
  ConnectionNumber,
  KeyValue,
  RangeRequest,
  RangeResult,
  ScanChunk,
  ScanRequest,
} from './protocol/protocol.ts'

/** etcd walks over all keys for each range request, so small ones are expensive for it. */
const rangeKeysMax = 2_000
const rangeKeysMin = 8
const rangeKeysFirst = 256
const rangeBytes = 4 * 1024 * 1024
/** Divides the range when a response is too large: values may be 1,000 times as large as the last. */
const tooLargeDivisor = 8
/**
 * A stream on which no byte arrives for this long is given up, like a call that is then hedged. Bytes
 * count, not messages: on a slow link a message takes longer.
 */
const silenceMs = 1_000
/** A stream that takes longer for one message is given up: bytes alone may never make one. */
const messageMsMax = 10_000

export interface RangeScannerOptions {
  readonly members: Members
  readonly range: (request: RangeRequest, options: CallOptions) => Promise<RangeResult>
  readonly clock: Clock
  readonly onCall?: CallObserver | undefined
}

/** Where a stream can be opened. */
interface StreamSource {
  readonly member: Member
  readonly session: NumberedSession
}

export class RangeScanner {
  readonly #options: RangeScannerOptions
  /** Adapts to the size of the values that were read last. */
  #keysPerRange = rangeKeysFirst
  /**
   * The connections on which a stream delivered nothing: the member does not have the method, or a
   * proxy in between does not pass streams on. A restarted member has another connection.
   */
  readonly #withoutStreams = new WeakSet<NumberedSession>()

  constructor(options: RangeScannerOptions) {
    this.#options = options
  }

  /** Yields at least one chunk, which is empty when there is no key. */
  async *scan(
    request: ScanRequest,
    options: CallOptions = {},
  ): AsyncGenerator<ScanChunk, void, undefined> {
    const scan = new Scan(request)
    let next: Promise<RangeResult> | undefined
    while (!scan.isComplete) {
      const result = await (next ?? this.#range(scan, options))
      const chunk = scan.take(result.kvs, result)
      // A scan with a limit needs a few more keys at most.
      const hasStream = !scan.isComplete && request.limit === undefined
      const source = hasStream ? this.#streamSource() : undefined
      const isPrefetched = request.isWhole && source === undefined && !scan.isComplete
      next = isPrefetched ? this.#range(scan, options) : undefined
      // A rejection is handled where `next` is awaited, which the caller's end would skip.
      next?.catch(() => {})
      yield chunk
      if (source !== undefined) yield* this.#stream(scan, source, options)
    }
  }

  /** The response with as many keys as fit into it. */
  async #range(scan: Scan, options: CallOptions): Promise<RangeResult> {
    for (;;) {
      const limit = Math.min(scan.keysMax, this.#keysFor(scan))
      try {
        const result = await this.#options.range({ ...scan.rest, limit }, options)
        scan.keysMax = Math.min(rangeKeysMax, scan.keysMax * 2)
        this.#adapt(result.kvs)
        return result
      } catch (error) {
        const isTooLarge = error instanceof EtcdError && error.kind === 'too-large'
        if (!isTooLarge || limit === 1) throw error
        scan.keysMax = Math.ceil(limit / tooLargeDivisor)
      }
    }
  }

  #keysFor({ request, taken }: Scan): number {
    const { limit = Number.POSITIVE_INFINITY, chunkBytes = rangeBytes, isWhole } = request
    // A stream follows, so this is only for the revision and the count.
    if (isWhole && taken === 0 && this.#streamSource() !== undefined) return rangeKeysMin
    const part = Math.min(1, chunkBytes / rangeBytes)
    const keys = Math.max(rangeKeysMin, Math.floor(this.#keysPerRange * part))
    return taken < limit ? Math.min(keys, limit - taken) : rangeKeysMin
  }

  /** Sets the size of the next range request from the size of these values. */
  #adapt(kvs: readonly KeyValue[]): void {
    const bytes = kvs.reduce((sum, { value }) => sum + value.length, 0)
    if (bytes === 0) return
    const keys = Math.floor((rangeBytes * kvs.length) / bytes)
    this.#keysPerRange = Math.min(rangeKeysMax, Math.max(rangeKeysMin, keys))
  }

  /** The member that calls prefer now, unless streams do not work there. */
  #streamSource(): StreamSource | undefined {
    const member = this.#options.members.pick('calls')
    const session = member?.session('calls')
    if (member === undefined || session === undefined) return undefined
    return this.#withoutStreams.has(session) ? undefined : { member, session }
  }

  /** Yields what one stream delivers, and ends when the stream does, for whatever reason. */
  async *#stream(
    scan: Scan,
    { member, session }: StreamSource,
    options: CallOptions,
  ): AsyncGenerator<ScanChunk, void, undefined> {
    const { clock, onCall } = this.#options
    const { signal, cancelIfSafe } = options
    const stream = new MessageStream(member, session, rangeStreamMethod)
    using ending = new LinkedAbort(...[signal, cancelIfSafe].filter((one) => one !== undefined))
    using _stopping = new AbortListener(ending.signal, () => stream.stop())
    stream.end(encodeRange(scan.rest))
    let waitedMs = 0
    let hasDelivered = false
    let error: unknown
    try {
      while (!scan.isComplete) {
        const startedAt = clock.now()
        const kvs = await received(stream, member, () => clock.now() - startedAt > messageMsMax)
        waitedMs += clock.now() - startedAt
        const chunk = scan.take(kvs, { connection: session.number })
        hasDelivered = true
        yield chunk
      }
    } catch (reason) {
      if (!(reason instanceof EtcdError)) throw reason
      error = reason
    } finally {
      stream.stop()
    }
    if (ending.signal.aborted) return
    if (!hasDelivered) this.#withoutStreams.add(session)
    const isMissing = error instanceof EtcdError && error.kind === 'unimplemented'
    if (isMissing) return
    onCall?.({ path: rangeStreamMethod.path, ms: waitedMs, hasFailed: error !== undefined })
  }
}

/** The keys of the next message. Throws an EtcdError when the stream is over or the member silent. */
async function received(
  stream: MessageStream<readonly KeyValue[]>,
  member: Member,
  isLate: () => boolean,
): Promise<readonly KeyValue[]> {
  for (;;) {
    const kvs = stream.read()
    if (kvs !== undefined) return kvs
    const { bytesReceived } = stream
    const isWoken = await stream.woken(silenceMs)
    const isAlive = () => stream.bytesReceived > bytesReceived
    if ((isWoken || isAlive() || !(await stream.isEmpty()) || isAlive()) && !isLate()) continue
    member.suspect()
    stream.stop()
  }
}

/** What has been read and what is left. */
class Scan {
  readonly request: ScanRequest
  /** The most keys of the next range request, after a response that was too large. */
  keysMax = rangeKeysMax
  taken = 0
  #key: Bytes
  #revision = 0
  #connection: ConnectionNumber = 0
  /** Unknown until the first response. */
  #remaining: number | undefined

  constructor(request: ScanRequest) {
    this.request = request
    this.#key = request.key
  }

  get isComplete(): boolean {
    return this.#remaining === 0
  }

  /** All later requests read the state of the first response. */
  get rest(): RangeRequest {
    const { rangeEnd, revision = this.#revision } = this.request
    return { key: this.#key, rangeEnd, revision }
  }

  /** The number of keys proves that all have been read only if none comes twice. */
  #isInOrder(kvs: readonly KeyValue[]): boolean {
    let least = this.#key
    for (const { key } of kvs) {
      const order = Buffer.compare(key, least)
      if (order < 0 || (order === 0 && least !== this.#key)) return false
      least = key
    }
    return true
  }

  take(
    kvs: readonly KeyValue[],
    { revision = 0, connection = Number.POSITIVE_INFINITY, count }: Partial<RangeResult>,
  ): ScanChunk {
    const due = this.#remaining ?? count ?? 0
    const isPossible = kvs.length <= due && (kvs.length > 0 || due === 0)
    if (!isPossible || (count ?? due) !== due || !this.#isInOrder(kvs)) {
      const isNew = this.#connection > 0 && connection > this.#connection
      throw isNew ? otherHistory() : inconsistent(due, kvs.length)
    }
    this.#revision ||= revision
    this.#connection = Math.max(this.#connection, connection)
    this.#remaining = due - kvs.length
    this.taken += kvs.length
    const last = kvs.at(-1)
    if (last !== undefined) this.#key = Buffer.concat([last.key, Buffer.of(0)])
    return { revision: this.#revision, kvs, count: due, connection: this.#connection }
  }
}

/** The new connection leads to another state at the same revision: etcd was restored meanwhile. */
function otherHistory(): EtcdError {
  const message = 'the connection changed during the read, and leads to another history'
  return new EtcdError({ kind: 'compacted', message })
}

function inconsistent(due: number, found: number): EtcdError {
  const message = `etcd sent ${found} keys of a state that has ${due} more, out of order, or counted them differently`
  return new EtcdError({ kind: 'internal', message })
}
