/**
 * Encodes events as Kubernetes protobuf. Stored events are JSON, so each is decoded and encoded
 * again. A watch does that once per change, for all watchers that share the frame.
 */
import type { Status } from '../../api/status.ts'
import type { JsonObject } from '../../lib/json.ts'
import { BackwardWriter } from '../../lib/protobuf.ts'
import { formatVersion } from '../../storage/resource-version.ts'
import type { ShownEvent } from '../event/event-bytes.ts'
import { PROTOBUF, type Representation } from '../representation.ts'
import {
  encodeDocument,
  envelopeHead,
  type TypeMeta,
  wrapEnvelope,
} from '../struct/kube-protobuf.ts'
import { listMetaType, partialObjectType } from '../struct/meta-types.ts'
import { encodeStruct } from '../struct/protobuf-struct.ts'
import type { EventView, ListMeta } from './event-shapes.ts'
import type { ResponseEncoder } from './response-encoder.ts'
import { bookmarkOf, lastMatching, naturalType, type WatchEncoder } from './watch-encoder.ts'

const ITEMS = 2
/** Each entry is decoded and encoded again, which takes about twenty microseconds. */
const ENTRIES_PER_CHUNK = 200
const NOTHING: Buffer = Buffer.alloc(0)

/** The kinds of the objects, and the encoding of an event. */
interface Message {
  readonly one: TypeMeta
  readonly list: TypeMeta
  encode(event: ShownEvent): Buffer
}

function messageOf(view: EventView, { as, metaVersion }: Representation): Message {
  if (as !== 'partial') {
    const { kind, apiVersion } = view
    return {
      one: { apiVersion, kind },
      list: { apiVersion, kind: `${kind}List` },
      encode: (event) => view.message(event),
    }
  }
  const apiVersion = `meta.k8s.io/${metaVersion}`
  return {
    one: { apiVersion, kind: 'PartialObjectMetadata' },
    list: { apiVersion, kind: 'PartialObjectMetadataList' },
    encode: ({ body, version }) =>
      encodeStruct(partialObjectType, { metadata: versioned(view.metadata(body), version) }),
  }
}

/** Adds the version to the metadata, since the stored body does not contain it. */
export function versioned(metadata: JsonObject, version: ShownEvent['version']): JsonObject {
  return version === undefined ? metadata : { ...metadata, resourceVersion: formatVersion(version) }
}

export function protobufResponseEncoder(view: EventView, wanted: Representation): ResponseEncoder {
  const { one, list, encode } = messageOf(view, wanted)
  const entries = (events: readonly ShownEvent[]): Buffer =>
    Buffer.concat(events.flatMap((event) => entry(encode(event))))
  return {
    contentType: PROTOBUF,
    isLengthPrefixed: true,
    entriesPerChunk: ENTRIES_PER_CHUNK,
    bytesPerChunk: 64 * 1024,
    one: (event) => wrapEnvelope(one, encode(event)),
    listHead: (meta, entriesBytes) => listStart(list, meta, entriesBytes),
    listEntries: entries,
    cacheable: { write: entries, start: '' },
    listTail: () => NOTHING,
  }
}

/** Everything before the entries, including their length. */
function listStart(list: TypeMeta, meta: ListMeta, entriesBytes: number): Buffer {
  const writer = new BackwardWriter(128)
  writer.bytes(1, encodeStruct(listMetaType, { ...meta } as JsonObject), { always: true })
  const metadata = writer.finish()
  return Buffer.concat([envelopeHead(list, metadata.length + entriesBytes), metadata])
}

function entry(message: Buffer): Buffer[] {
  const writer = new BackwardWriter(8)
  writer.prefix(ITEMS, message.length)
  return [writer.finish(), message]
}

export function protobufWatchEncoder(view: EventView, wanted: Representation): WatchEncoder {
  const { one, encode } = messageOf(view, wanted)
  const bookmark = bookmarkOf(view)
  const frame = (type: string, event: ShownEvent): Buffer =>
    framed(type, wrapEnvelope(one, encode(event)))
  return {
    contentType: `${PROTOBUF};stream=watch`,
    natural: { encode: (item) => frame(naturalType(item), item.stored) },
    entered: { encode: ({ stored }) => frame('ADDED', stored) },
    left: { encode: (item) => frame('DELETED', lastMatching(item)) },
    present: (event) => frame('ADDED', event),
    bookmark: (version, isInitialEnd) => frame('BOOKMARK', bookmark(version, isInitialEnd)),
    error: (status: Status) => framed('ERROR', encodeDocument(status)),
  }
}

/** A frame is its length in four bytes, then a message with the type and the enveloped object. */
function framed(type: string, object: Buffer): Buffer {
  const raw = new BackwardWriter(object.length + 16)
  raw.bytes(1, object, { always: true })
  const writer = new BackwardWriter(object.length + 64)
  writer.bytes(2, raw.finish(), { always: true })
  writer.bytes(1, Buffer.from(type))
  const message = writer.finish()
  const length = Buffer.alloc(4)
  length.writeUInt32BE(message.length)
  return Buffer.concat([length, message])
}
