import { EtcdError } from './errors.ts'
import type { HistoryProof } from './history-proof.ts'
import type { WatchMessage } from './protocol/hot-messages.ts'
import type { WatchBatch, WatchEvent } from './protocol/protocol.ts'

/**
 * Turns the messages of one watch stream into batches that never split a revision, never go back
 * and never repeat a change.
 *
 * etcd sends a revision in one response but may split a large response into fragments anywhere.
 * Complete revisions are passed on at once; only the last revision of a fragment is buffered until
 * the next one, so the buffer holds at most one revision and one fragment.
 */
export class WholeRevisions {
  #delivered: number
  #buffered: WatchEvent[] = []
  #isNewStream = true
  readonly #proof: HistoryProof | undefined

  /** All revisions up to `delivered` have been delivered. */
  constructor(delivered: number, proof?: HistoryProof) {
    this.#delivered = delivered
    this.#proof = proof
  }

  /** The revision up to which all changes have been delivered. */
  get delivered(): number {
    return this.#delivered
  }

  /** A new stream begins: it sends the buffered changes of the old stream again. */
  startOver(): void {
    this.#buffered = []
    this.#isNewStream = true
    this.#proof?.begin()
  }

  /** The batch that can be delivered now; undefined when there is none. */
  take(message: WatchMessage): WatchBatch | undefined {
    if (message.events.length === 0) return this.#progress(message)
    const fresh = this.#undelivered(message.events)
    if (fresh.length === 0) return undefined
    this.#checkOrder(fresh)
    const events = this.#buffered.length === 0 ? fresh : [...this.#buffered, ...fresh]
    const whole = message.fragment ? lastRevisionStart(events) : events.length
    this.#buffered = events.slice(whole)
    if (whole === 0) return undefined
    this.#delivered = revisionAt(events, whole - 1)
    const complete = whole === events.length ? events : events.slice(0, whole)
    this.#proof?.note(complete)
    return { revision: this.#delivered, events: complete }
  }

  /** A stream may begin with changes that were delivered before, but never goes back to them. */
  #undelivered(events: readonly WatchEvent[]): readonly WatchEvent[] {
    if (!this.#isNewStream) return events
    const fresh = events.filter((event) => {
      const isFresh = event.kv.modRevision > this.#delivered
      if (!isFresh) this.#proof?.repeat(event)
      return isFresh
    })
    if (fresh.length > 0) this.#compare()
    return fresh
  }

  /** A member that lags behind the previous one may report an older revision: it is ignored. */
  #progress(message: WatchMessage): WatchBatch | undefined {
    if (this.#buffered.length > 0 || message.revision < this.#delivered) return undefined
    this.#compare()
    this.#delivered = message.revision
    return { revision: message.revision, events: [] }
  }

  /** All changes from here on are new. */
  #compare(): void {
    this.#isNewStream = false
    this.#proof?.conclude()
  }

  /** Changes out of order would corrupt the state of consumers, so the watch fails instead. */
  #checkOrder(events: readonly WatchEvent[]): void {
    const firstDue = this.#delivered + 1
    let last = this.#buffered.length > 0 ? revisionAt(this.#buffered, 0) : firstDue
    for (const event of events) {
      const revision = event.kv.modRevision
      if (revision < last) {
        throw new EtcdError({
          kind: 'internal',
          message: `etcd sent revision ${revision} on a watch where at least ${last} was due`,
        })
      }
      last = revision
    }
  }
}

/** Where the events of the last revision begin. */
function lastRevisionStart(events: readonly WatchEvent[]): number {
  let start = events.length - 1
  const last = revisionAt(events, start)
  while (start > 0 && revisionAt(events, start - 1) === last) start--
  return start
}

function revisionAt(events: readonly WatchEvent[], index: number): number {
  return events[index]?.kv.modRevision ?? 0
}
