/** Remembers what runs of a list contain, as the encoders of the server do. */
import type { EventListing } from '../../../src/registry/read/listing.ts'
import type { EventRun, ListPart, StoredEvent } from '../../../src/storage/storage.ts'
import type { Reporter } from '../invariants/reporter.ts'

export class RunMemory {
  readonly #reporter: Reporter
  /** In place of the encoded form: an empty buffer that stands for the events. */
  readonly #encoded = new WeakMap<EventRun, Buffer>()
  readonly #events = new WeakMap<Buffer, readonly StoredEvent[]>()

  constructor(reporter: Reporter) {
    this.#reporter = reporter
  }

  readonly recall = (run: EventRun): Buffer | undefined => this.#encoded.get(run)

  async itemsOf({ parts, pieces }: EventListing): Promise<readonly StoredEvent[]> {
    const items: StoredEvent[] = []
    if (parts === undefined) for await (const piece of pieces) items.push(...piece)
    else
      for await (const some of parts) for (const part of some) items.push(...this.#eventsOf(part))
    return items
  }

  #eventsOf(part: ListPart): readonly StoredEvent[] {
    if (part.known !== undefined) {
      const events = this.#events.get(part.known) ?? []
      if (events.length !== part.count) {
        const what = `a run of ${events.length} events is listed as ${part.count}`
        this.#reporter.report('runs never change', what)
      }
      return events
    }
    const { run } = part
    if (run === undefined) return part.events
    const encoded = Buffer.alloc(0)
    const events = part.events.map(copied)
    this.#encoded.set(run, encoded)
    this.#events.set(encoded, events)
    return events
  }
}

/** Bodies are views into memory that is reused. */
function copied(stored: StoredEvent): StoredEvent {
  const { key, version, writtenAtMs, versionOffset, fields } = stored
  return { key, version, writtenAtMs, versionOffset, fields, body: Buffer.from(stored.body) }
}
