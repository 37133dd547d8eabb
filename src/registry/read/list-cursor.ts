import type {
  EventPage,
  EventRun,
  ListStretch,
  RunsPage,
  StoredEvent,
} from '../../storage/storage.ts'

/** The default number of events in a piece of a long list. */
const PIECE_ITEMS = 500
/** The default size of a piece, measured by the bodies of its events. */
export const PIECE_BYTES: number = 256 * 1024

export interface PieceSize {
  /** Events in a piece; fewer for readers that hold a piece for long, or do much work per event. */
  readonly pieceItems?: number | undefined
  readonly pieceBytes?: number | undefined
}

export function pieceItemsOf({ pieceItems = PIECE_ITEMS }: PieceSize): number {
  return pieceItems
}

/** Reads what follows the first page of a list. `last` is undefined at the start of the list. */
export interface ListRest {
  /** The list ends after this many events, its first page included. */
  readonly limit: number
  page(last: StoredEvent | undefined, limit: number): Promise<EventPage>
  /** Undefined when the list is not divided into runs. */
  runs(last: StoredEvent | undefined, limit: number): RunsPage | undefined
}

/** A run that a list contains as a whole. */
export type ListedRun = ListStretch & { readonly run: EventRun }

export interface ListPiece {
  /** At least one event, or none at the end of the list. */
  readonly events: readonly StoredEvent[]
  /** Set when the events are exactly this run, and were read from memory. */
  readonly run: EventRun | undefined
}

/**
 * Reads a list piece by piece, from its beginning. A reader that has an encoded run in its cache
 * skips the run, which is then not read.
 */
export class ListCursor implements AsyncIterable<readonly StoredEvent[]> {
  readonly #size: PieceSize
  readonly #rest: ListRest | undefined
  /** Events that were read last; those from `#offset` on follow the cursor. */
  #page: readonly StoredEvent[]
  #offset = 0
  /** Whether more events follow `#page`. */
  #more: boolean
  #passed = 0
  #last: StoredEvent | undefined
  /** The stretch that the cursor is in, and those after it; empty unless `nextRun` was called. */
  #stretches: ListStretch[] = []
  #hasMoreStretches = false
  #passedInStretch = 0
  /** `#page` was read from the store, which memory is not compared with. */
  #isFromStore = false

  /** `first` are the events of the first page; without a `rest` they are the whole list. */
  constructor(first: readonly StoredEvent[], rest: ListRest | undefined, size: PieceSize) {
    this.#page = first
    this.#rest = rest
    this.#more = rest !== undefined
    this.#size = size
  }

  /** The run that begins at the cursor. The next `read` does not go beyond its end. */
  nextRun(): ListedRun | undefined {
    if (this.#stretches.length === 0) this.#divide()
    const [stretch] = this.#stretches
    const isAtStart = this.#passedInStretch === 0
    return stretch !== undefined && isAtStart && isWholeRun(stretch) ? stretch : undefined
  }

  /** Moves past the run that `nextRun` returned. */
  skip({ count, last }: ListedRun): void {
    this.#pass(count, last)
    this.#more = this.#stretches.length > 0 || this.#hasMoreStretches
  }

  async read(): Promise<ListPiece> {
    if (this.#more && !this.#hasRead()) await this.#readOn()
    const stretch = this.#passedInStretch === 0 ? this.#stretches[0] : undefined
    const page = this.#page
    const from = this.#offset
    const end = pieceEnd(page, { ...this.#size, from, to: from + this.#leftInStretch() })
    const events = page.slice(from, end)
    const isRun = stretch?.count === events.length && !this.#isFromStore
    this.#pass(events.length, events.at(-1))
    return { events, run: isRun ? stretch.run : undefined }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<readonly StoredEvent[]> {
    for (;;) {
      const { events } = await this.read()
      if (events.length === 0) return
      yield events
    }
  }

  #divide(): void {
    const page = this.#more ? this.#rest?.runs(this.#last, pieceItemsOf(this.#size)) : undefined
    this.#stretches = [...(page?.stretches ?? [])]
    this.#hasMoreStretches = page?.more ?? false
  }

  /** A run must be read at once to be encoded at once, even if its first events were read before. */
  #hasRead(): boolean {
    const wanted = this.#passedInStretch === 0 ? (this.#stretches[0]?.count ?? 1) : 1
    return this.#page.length - this.#offset >= wanted
  }

  async #readOn(): Promise<void> {
    if (this.#rest === undefined) return
    const isByRun = this.#stretches.length > 0
    const wanted = isByRun ? this.#leftInStretch() : pieceItemsOf(this.#size)
    const limit = Math.min(wanted, this.#rest.limit - this.#passed)
    const { items, more, connection } = await this.#rest.page(this.#last, limit)
    this.#page = items
    this.#offset = 0
    this.#isFromStore = connection !== undefined
    this.#more = more && items.length > 0 && this.#passed + items.length < this.#rest.limit
  }

  #leftInStretch(): number {
    const [stretch] = this.#stretches
    return (stretch?.count ?? Number.POSITIVE_INFINITY) - this.#passedInStretch
  }

  #pass(count: number, last: StoredEvent | undefined): void {
    this.#offset += count
    this.#passed += count
    this.#last = last ?? this.#last
    if (this.#stretches.length === 0) return
    this.#passedInStretch += count
    if (this.#leftInStretch() > 0) return
    this.#stretches.shift()
    this.#passedInStretch = 0
  }
}

function isWholeRun(stretch: ListStretch): stretch is ListedRun {
  return stretch.run !== undefined
}

/** Whether the events can be encoded and sent at once. */
export function isOnePiece(events: readonly StoredEvent[], size: PieceSize): boolean {
  return pieceEnd(events, size) >= events.length
}

/** A piece has at least one event, however long it is. */
function pieceEnd(
  events: readonly StoredEvent[],
  options: PieceSize & { readonly from?: number; readonly to?: number },
): number {
  const { pieceBytes = PIECE_BYTES, from = 0, to = events.length } = options
  const endMax = Math.min(events.length, to, from + pieceItemsOf(options))
  let bytes = events[from]?.body.length ?? 0
  let end = from + 1
  while (end < endMax) {
    bytes += events[end]?.body.length ?? 0
    if (bytes > pieceBytes) break
    end += 1
  }
  return end
}
