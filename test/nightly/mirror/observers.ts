/** Independent observers of both sides: they list and watch by themselves, in JSON. */
import type { EventClient } from '../../support/event-client.ts'
import type { WatchFrame } from '../../support/wire-event.ts'
import { type CoreEvent, keyOf, type OriginState, type SeenChange, versionOf } from './check.ts'
import { follow, Session } from './session.ts'

interface EventsList {
  readonly metadata: { readonly resourceVersion: string }
  readonly items: readonly CoreEvent[]
}

interface Known {
  last: CoreEvent
  lastPutAt: number
  end: OriginState['end']
}

/** Remembers the last state of every event that existed at the origin, and how it ended. */
export class OriginObserver {
  readonly #known = new Map<string, Known>()
  /** The uids of events that clients delete; the watch does not tell who deleted. */
  readonly #deleting = new Set<string>()
  readonly #ttlMs: number
  readonly counts = { puts: 0, deleted: 0, expired: 0 }
  /** Whether a delete of a young event must be seen as such. */
  mustSeeDeletes = false

  constructor(ttlMs: number) {
    this.#ttlMs = ttlMs
  }

  get states(): ReadonlyMap<string, OriginState> {
    return this.#known
  }

  /** Must be called before the delete is sent. */
  deleting(uid: string): void {
    this.#deleting.add(uid)
  }

  async run(open: () => Promise<EventClient>, signal: AbortSignal): Promise<void> {
    using session = new Session(open)
    const path = '/api/v1/events'
    const { items, metadata } = await session.read<EventsList>(path)
    for (const event of items) this.#put(event)
    const onFrame = (frame: WatchFrame): void => this.#take(frame)
    await follow({ open, path, from: metadata.resourceVersion, signal, onFrame })
  }

  #take({ type, object }: WatchFrame): void {
    const event = object as unknown as CoreEvent
    if (type === 'DELETED') this.#delete(event)
    else this.#put(event)
  }

  #put(last: CoreEvent): void {
    this.counts.puts++
    this.#known.set(keyOf(last), { last, lastPutAt: performance.now(), end: undefined })
  }

  #delete(event: CoreEvent): void {
    const known = this.#known.get(keyOf(event))
    if (known === undefined || known.last.metadata.uid !== event.metadata.uid) {
      throw new Error(`the origin deleted ${keyOf(event)}, which the observer does not know`)
    }
    const ageMs = performance.now() - known.lastPutAt
    const isByClient = this.#deleting.has(event.metadata.uid)
    // Lists and watches are read within seconds; a client's delete may also hit an old event.
    if (!isByClient && ageMs > this.#ttlMs - 5_000) {
      known.end = 'expired'
      this.counts.expired++
      return
    }
    this.counts.deleted++
    known.end = isByClient && this.mustSeeDeletes ? 'early' : 'deleted'
  }
}

/** Remembers every change that a mirror shows in a watch. */
export class TargetObserver {
  readonly changes: SeenChange[] = []

  async run(path: string, open: () => Promise<EventClient>, signal: AbortSignal): Promise<void> {
    using session = new Session(open)
    const { items, metadata } = await session.read<EventsList>(path)
    for (const event of items) this.#put(event)
    const onFrame = ({ type, object }: WatchFrame): void => {
      const event = object as unknown as CoreEvent
      if (type === 'DELETED') this.changes.push({ key: keyOf(event), version: undefined })
      else this.#put(event)
    }
    await follow({ open, path, from: metadata.resourceVersion, signal, onFrame })
  }

  #put(event: CoreEvent): void {
    this.changes.push({ key: keyOf(event), version: versionOf(event) ?? '0' })
  }
}
