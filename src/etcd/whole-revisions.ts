import { EtcdError } from './errors.ts'
import type { HistoryProof } from './history-proof.ts'
import type { WatchMessage } from './hot-messages.ts'
import type { WatchBatch, WatchEvent } from './protocol.ts'

/**
 * Turns the messages of one watch stream into batches that never split a revision, never go back and
 * never repeat.
 *
 * etcd keeps a revision in one answer but may cut a large answer into pieces anywhere. What is
 * complete is passed on at once; only the last revision of a piece waits for the next one, so no
 * more than one revision and one piece are held.
 */
export class WholeRevisions {
  #delivered: number
  #held: WatchEvent[] = []
  #isNewStream = true
  readonly #proof: HistoryProof | undefined

  /** Nothing up to `delivered` is owed any more. */
  constructor(delivered: number, proof?: HistoryProof) {
    this.#delivered = delivered
    this.#proof = proof
  }

  /** The revision up to which everything has been handed on. */
  get delivered(): number {
    return this.#delivered
  }

  /** A new stream begins: what is held of the old one will come again. */
  startOver(): void {
    this.#held = []
    this.#isNewStream = true
    this.#proof?.begin()
  }

  /** What can be handed on now; undefined when that is nothing. */
  take(message: WatchMessage): WatchBatch | undefined {
    if (message.events.length === 0) return this.#progress(message)
    const owed = this.#owed(message.events)
    if (owed.length === 0) return undefined
    this.#check(owed)
    const events = this.#held.length === 0 ? owed : [...this.#held, ...owed]
    const whole = message.fragment ? lastRevisionStart(events) : events.length
    this.#held = events.slice(whole)
    if (whole === 0) return undefined
    this.#delivered = revisionAt(events, whole - 1)
    const complete = whole === events.length ? events : events.slice(0, whole)
    this.#proof?.note(complete)
    return { revision: this.#delivered, events: complete }
  }

  /** A stream may begin a little before what is owed, but never goes back there. */
  #owed(events: readonly WatchEvent[]): readonly WatchEvent[] {
    if (!this.#isNewStream) return events
    const owed = events.filter((event) => {
      const isOwed = event.kv.modRevision > this.#delivered
      if (!isOwed) this.#proof?.repeat(event)
      return isOwed
    })
    if (owed.length > 0) this.#compare()
    return owed
  }

  /** A member that lags behind the one before may report less than we have: that is no news. */
  #progress(message: WatchMessage): WatchBatch | undefined {
    if (this.#held.length > 0 || message.revision < this.#delivered) return undefined
    this.#compare()
    this.#delivered = message.revision
    return { revision: message.revision, events: [] }
  }

  /** What comes from here on is new. */
  #compare(): void {
    this.#isNewStream = false
    this.#proof?.conclude()
  }

  /** An order that is not etcd's would corrupt whoever follows it: better to stop here. */
  #check(events: readonly WatchEvent[]): void {
    const firstOwed = this.#delivered + 1
    let last = this.#held.length > 0 ? revisionAt(this.#held, 0) : firstOwed
    for (const event of events) {
      const revision = event.kv.modRevision
      if (revision < last) {
        throw new EtcdError({
          kind: 'internal',
          message: `etcd delivered revision ${revision} of a watch where at least ${last} was due`,
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
