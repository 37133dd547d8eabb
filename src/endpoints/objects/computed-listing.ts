import type { ResponseEncoder } from '../../codec/encoders/response-encoder.ts'
import { type EventListing, listingOf } from '../../registry/read/listing.ts'
import type { Version } from '../../storage/resource-version.ts'
import type { StoredEvent } from '../../storage/storage.ts'

/** Low, since an object may have many counts and take longer to encode than an event. */
const itemsPerPiece = 50

/** A list of objects that were computed for it. It has one page. */
export function computedListing(
  version: Version,
  items: readonly StoredEvent[],
  { entriesPerChunk, bytesPerChunk }: Pick<ResponseEncoder, 'entriesPerChunk' | 'bytesPerChunk'>,
): EventListing {
  const pieceItems = Math.min(entriesPerChunk, itemsPerPiece)
  return listingOf(items, { version }, { pieceItems, pieceBytes: bytesPerChunk })
}
