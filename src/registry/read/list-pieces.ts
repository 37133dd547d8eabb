/** Cuts lists into pieces that are encoded and sent one after the other. */
import type { EventPage, ListPart, RunsPage, StoredEvent } from '../../storage/storage.ts'

/** The default number of events in a piece of a long list. */
export const pieceItemsUsual = 500
/** The default size of a piece, by the bodies of its events. */
export const pieceBytesUsual: number = 256 * 1024

export interface Piecewise {
  /** Events in a piece; fewer for readers that hold a piece for long, or do much work per event. */
  readonly pieceItems?: number | undefined
  readonly pieceBytes?: number | undefined
}

export function pieceItemsOf({ pieceItems = pieceItemsUsual }: Piecewise): number {
  return pieceItems
}

export async function* inPieces(
  items: readonly StoredEvent[],
  query: Piecewise,
): AsyncGenerator<readonly StoredEvent[]> {
  let from = 0
  do {
    const end = pieceEnd(items, from, query)
    yield items.slice(from, end)
    from = end
  } while (from < items.length)
}

/** A piece has at least one event, however long it is. */
function pieceEnd(items: readonly StoredEvent[], from: number, query: Piecewise): number {
  const { pieceBytes = pieceBytesUsual } = query
  const itemsMax = pieceItemsOf(query)
  let bytes = items[from]?.body.length ?? 0
  let end = from + 1
  while (end < items.length && end - from < itemsMax) {
    bytes += items[end]?.body.length ?? 0
    if (bytes > pieceBytes) break
    end += 1
  }
  return end
}

export function isOnePiece(items: readonly StoredEvent[], query: Piecewise): boolean {
  return pieceEnd(items, 0, query) >= items.length
}

/** Splits a run that is too long to be encoded at once; its pieces are not cached. */
export function inBounds(part: ListPart, query: Piecewise): readonly ListPart[] {
  if (part.known !== undefined) return [part]
  const { events } = part
  const parts: ListPart[] = []
  for (let from = 0; from < events.length; ) {
    const end = pieceEnd(events, from, query)
    if (end - from === events.length) return [part]
    parts.push(withoutRun(events.slice(from, end)))
    from = end
  }
  return parts
}

export function asRuns({ items, more }: EventPage): RunsPage {
  return { parts: items.length === 0 ? [] : [withoutRun(items)], last: items.at(-1)?.key, more }
}

function withoutRun(events: readonly StoredEvent[]): ListPart {
  return { run: undefined, events, count: events.length }
}

export function repeatable<T>(open: () => AsyncGenerator<T>): AsyncIterable<T> {
  return { [Symbol.asyncIterator]: open }
}
