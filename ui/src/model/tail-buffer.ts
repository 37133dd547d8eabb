/** The newest events of a live view, in order of arrival. */
import { type EventRow, sizeOf } from './event-row.ts'
import { isNewer } from './numbers.ts'

export type TailEntry = TailRow | TailGap

export interface TailRow {
  readonly kind: 'row'
  readonly key: string
  readonly row: EventRow
  /** Arrival time by the page's clock. */
  readonly arrivedMs: number
  /** Whether the event recurred since it entered the buffer. */
  readonly isRepeated: boolean
  readonly bytes: number
}

/** A period whose changes the server no longer has. */
export interface TailGap {
  readonly kind: 'gap'
  readonly key: string
  readonly fromMs: number
  readonly toMs: number
  /** Whether a list has returned every event of that period that still exists. */
  readonly isListed: boolean
}

export interface TailBounds {
  readonly rowsMax: number
  readonly bytesMax: number
}

export interface Arrival {
  readonly row: EventRow
  readonly bytes: number
  readonly nowMs: number
}

/** Counts rows that reached the top, including rows that have dropped off since. */
export interface Arrived {
  readonly events: number
  readonly warnings: number
}

export class TailBuffer {
  readonly #bounds: TailBounds
  /** Oldest arrival first. */
  readonly #entries = new Map<string, TailEntry>()
  #bytes = 0
  #shown: readonly TailEntry[] | undefined
  arrived: Arrived = { events: 0, warnings: 0 }
  /** Number of gaps, including those that have dropped off. */
  gapCount = 0
  /** Whether entries have dropped off. */
  hasDropped = false

  constructor(bounds: TailBounds) {
    this.#bounds = bounds
  }

  /** Newest first. The array stays the same until something changes. */
  get entries(): readonly TailEntry[] {
    this.#shown ??= [...this.#entries.values()].reverse()
    return this.#shown
  }

  /**
   * Applies a change. New and recurring events go to the top; other changes stay in place.
   */
  take({ row, bytes, nowMs }: Arrival): void {
    const before = this.#entries.get(row.key)
    const known = before?.kind === 'row' ? before : undefined
    const isRepeated = known !== undefined && isSeenAgain(known.row, row)
    const entry: TailRow = {
      kind: 'row',
      key: row.key,
      row,
      arrivedMs: known === undefined || isRepeated ? nowMs : known.arrivedMs,
      isRepeated: isRepeated || known?.isRepeated === true,
      bytes,
    }
    if (known === undefined || isRepeated) {
      const { events, warnings } = this.arrived
      this.arrived = { events: events + 1, warnings: warnings + (row.isWarning ? 1 : 0) }
      this.#remove(row.key)
    }
    this.#put(entry)
  }

  /** Adds listed rows, given newest first, except those held at the same or a newer version. */
  addListed(rows: readonly EventRow[], nowMs: number): void {
    for (const row of rows.toReversed()) {
      const known = this.#entries.get(row.key)
      if (known?.kind === 'row' && !isNewer(row.resourceVersion, known.row.resourceVersion))
        continue
      this.take({ row, bytes: sizeOf(row), nowMs })
    }
  }

  /** Adds a gap at the top. Merges it with the previous gap if no row is between them. */
  addGap(gap: Pick<TailGap, 'fromMs' | 'toMs' | 'isListed'>): void {
    const newest = this.entries[0]
    if (newest?.kind !== 'gap') {
      this.#put({ kind: 'gap', key: `gap ${++this.gapCount}`, ...gap })
    } else {
      this.#put({ ...newest, toMs: gap.toMs, isListed: newest.isListed && gap.isListed })
    }
  }

  #put(entry: TailEntry): void {
    this.#bytes += bytesOf(entry) - bytesOf(this.#entries.get(entry.key))
    this.#entries.set(entry.key, entry)
    this.#shown = undefined
    for (const key of this.#entries.keys()) {
      const isFull =
        this.#entries.size > this.#bounds.rowsMax || this.#bytes > this.#bounds.bytesMax
      if (!isFull || this.#entries.size === 1) return
      this.#remove(key)
      this.hasDropped = true
    }
  }

  #remove(key: string): void {
    this.#bytes -= bytesOf(this.#entries.get(key))
    this.#entries.delete(key)
  }
}

function isSeenAgain(before: EventRow, after: EventRow): boolean {
  return after.count > before.count || after.lastMs > before.lastMs
}

/** Nominal size of a gap. */
const GAP_BYTES = 256

function bytesOf(entry: TailEntry | undefined): number {
  if (entry === undefined) return 0
  return entry.kind === 'row' ? entry.bytes : GAP_BYTES
}
