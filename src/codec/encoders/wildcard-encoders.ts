/**
 * Encoders for lists and watches of all clusters: an annotation of each event names its cluster,
 * whatever the stored event has there. They cost one more decoding and encoding of each event.
 */
import { clusterAnnotation } from '../../api/annotations.ts'
import type { FrameEncoder } from '../../storage/frames.ts'
import type { StoredEvent, WatchItem } from '../../storage/storage.ts'
import { StoredBody } from '../../storage/stored-form.ts'
import type { ShownEvent } from '../event/event-bytes.ts'
import { encodeEvent, readEncoded } from '../event/event-json.ts'
import type { ResponseEncoder } from './response-encoder.ts'
import type { WatchEncoder } from './watch-encoder.ts'

export function wildcardResponseEncoder(inner: ResponseEncoder): ResponseEncoder {
  const { cacheable } = inner
  return {
    ...inner,
    one: (event) => inner.one(shown(event)),
    listEntries: (events, index, scratch) => inner.listEntries(events.map(shown), index, scratch),
    ...(cacheable && {
      cacheable: {
        ...cacheable,
        write: (events, scratch) => cacheable.write(events.map(shown), scratch),
      },
    }),
  }
}

export function wildcardWatchEncoder(inner: WatchEncoder): WatchEncoder {
  // Only `left` shows the previous state; the others need to know whether there is one.
  const frames = (encoder: FrameEncoder): FrameEncoder => ({
    encode: (item) => encoder.encode(annotatedItem(item)),
  })
  return {
    ...inner,
    natural: frames(inner.natural),
    entered: frames(inner.entered),
    left: { encode: (item) => inner.left.encode(annotatedLast(item)) },
    present: (event) => inner.present(shown(event)),
  }
}

function annotatedItem(item: WatchItem): WatchItem {
  const stored = annotated(item.stored)
  return item.type === 'delete'
    ? { type: 'delete', stored }
    : { type: 'put', stored, previous: item.previous }
}

function annotatedLast(item: WatchItem): WatchItem {
  if (item.type === 'delete' || item.previous === undefined) return annotatedItem(item)
  return { type: 'put', stored: item.stored, previous: annotated(item.previous) }
}

function annotated(stored: StoredEvent): StoredEvent {
  const { key, trailer, version, versionOffset, writtenAtMs } = stored
  const event = readEncoded(stored.body)
  const annotations = { ...event.metadata.annotations, [clusterAnnotation]: key.cluster }
  const metadata = { ...event.metadata, annotations }
  const body = encodeEvent({ ...event, metadata })
  return new StoredBody({ key, body, trailer, version, versionOffset, writtenAtMs })
}

/** Only stored events have a cluster; others are bookmarks. */
function shown(event: ShownEvent): ShownEvent {
  return isStored(event) ? annotated(event) : event
}

function isStored(event: ShownEvent): event is StoredEvent {
  return 'key' in event && 'writtenAtMs' in event
}
