/** Remembers the events of each run of a list, in place of the encoded form that the server caches. */
import type { EventListing } from '../../../src/registry/read/listing.ts'
import type { EventRun, StoredEvent } from '../../../src/storage/storage.ts'
import type { Reporter } from '../checker/reporter.ts'

export class RunMemory {
  readonly #reporter: Reporter
  readonly #runs = new WeakMap<EventRun, readonly StoredEvent[]>()

  constructor(reporter: Reporter) {
    this.#reporter = reporter
  }

  /** Reads the list, except for the runs that were read before. */
  async itemsOf(listing: EventListing): Promise<readonly StoredEvent[]> {
    const items: StoredEvent[] = []
    const cursor = listing.open()
    for (;;) {
      const run = cursor.nextRun()
      const known = run && this.#runs.get(run.run)
      if (run !== undefined && known !== undefined) {
        this.#check(known, run.count)
        cursor.skip(run)
        items.push(...known)
        continue
      }
      const piece = await cursor.read()
      if (piece.events.length === 0) return items
      const copies = piece.events.map(copied)
      if (piece.run !== undefined) this.#runs.set(piece.run, copies)
      items.push(...copies)
    }
  }

  #check(known: readonly StoredEvent[], count: number): void {
    if (known.length === count) return
    const what = `a run of ${known.length} events is listed as ${count}`
    this.#reporter.report('runs never change', what)
  }
}

/** Bodies are views into memory that is reused. */
function copied(stored: StoredEvent): StoredEvent {
  const { key, version, writtenAtMs, versionOffset, fields } = stored
  return { key, version, writtenAtMs, versionOffset, fields, body: Buffer.from(stored.body) }
}
