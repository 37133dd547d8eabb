import type { ResponseEncoder } from '../../codec/encoders/response-encoder.ts'
import { inPieces, isOnePiece } from '../../registry/read/list-pieces.ts'
import type { EventListing } from '../../registry/read/listing.ts'
import type { Version } from '../../storage/resource-version.ts'
import type { StoredEvent } from '../../storage/storage.ts'

/** One may have many counts, which take longer to encode than an event. */
const itemsPerPiece = 50

/** A list of objects that have been computed for it: it has one page. */
export function computedListing(
  version: Version,
  items: readonly StoredEvent[],
  { entriesPerChunk, bytesPerChunk }: Pick<ResponseEncoder, 'entriesPerChunk' | 'bytesPerChunk'>,
): EventListing {
  const piecewise = {
    pieceItems: Math.min(entriesPerChunk, itemsPerPiece),
    pieceBytes: bytesPerChunk,
  }
  return {
    version,
    continueToken: undefined,
    remainingItemCount: undefined,
    pieces: { [Symbol.asyncIterator]: () => inPieces(items, piecewise) },
    whole: isOnePiece(items, piecewise) ? items : undefined,
    retainedItems: items.length,
  }
}
