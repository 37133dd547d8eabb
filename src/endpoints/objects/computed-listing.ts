import type { ResponseEncoder } from '../../codec/encoders/response-encoder.ts'
import type { EventListing } from '../../registry/read/listing.ts'
import type { Version } from '../../storage/resource-version.ts'
import type { StoredEvent } from '../../storage/storage.ts'

/** A list of objects that have been computed for it: it has one page. */
export function computedListing(
  version: Version,
  items: readonly StoredEvent[],
  { entriesPerChunk }: Pick<ResponseEncoder, 'entriesPerChunk'>,
): EventListing {
  return {
    version,
    continueToken: undefined,
    remainingItemCount: undefined,
    pieces: { [Symbol.asyncIterator]: () => piecesOf(items, entriesPerChunk) },
    whole: items.length <= entriesPerChunk ? items : undefined,
  }
}

/** Sending one yields to the event loop. */
async function* piecesOf(
  items: readonly StoredEvent[],
  itemsMax: number,
): AsyncGenerator<readonly StoredEvent[]> {
  for (let from = 0; from < items.length; from += itemsMax) yield items.slice(from, from + itemsMax)
}
