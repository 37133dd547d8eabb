/**
 * Events as Kubernetes protobuf. What is stored is JSON, so each is read and written anew; in a watch
 * that happens once for all who get it.
 */
import type { Event } from '../api/event.ts'
import type { Status } from '../api/status.ts'
import type { JsonObject } from '../lib/json.ts'
import { BackwardWriter } from '../lib/protobuf.ts'
import { formatVersion } from '../storage/resource-version.ts'
import type { AnswerForm } from './answer-form.ts'
import type { ShownEvent } from './event-bytes.ts'
import { readEncoded } from './event-json.ts'
import type { EventView, ListMeta } from './event-shapes.ts'
import { sealed, sealedDocument, sealStart, type TypeMeta } from './kube-protobuf.ts'
import { listMetaType, partialObjectType } from './meta-types.ts'
import { encodeStruct } from './protobuf-struct.ts'
import { PROTOBUF, type Representation } from './representation.ts'
import { lastInView, markOf, naturalType, type WatchForm } from './watch-form.ts'

const ITEMS = 2
/** Each is read and written anew, which takes some twenty microseconds. */
const ENTRIES_AT_ONCE = 200
const NOTHING: Buffer = Buffer.alloc(0)

/** One kind of object, and how an event is made into it. */
interface Message {
  readonly one: TypeMeta
  readonly list: TypeMeta
  encode(event: ShownEvent): Buffer
}

function messageOf(view: EventView, { as, metaVersion }: Representation): Message {
  if (as !== 'partial') {
    const { apiVersion } = view
    return {
      one: { apiVersion, kind: 'Event' },
      list: { apiVersion, kind: 'EventList' },
      encode: (event) => view.message(event),
    }
  }
  const apiVersion = `meta.k8s.io/${metaVersion}`
  return {
    one: { apiVersion, kind: 'PartialObjectMetadata' },
    list: { apiVersion, kind: 'PartialObjectMetadataList' },
    encode: ({ body, version }) =>
      encodeStruct(partialObjectType, { metadata: metadataOf(readEncoded(body), version) }),
  }
}

/** Of an event that has been read, with its version, which is not stored with it. */
export function metadataOf(event: Event, version: ShownEvent['version']): JsonObject {
  const metadata = event.metadata as unknown as JsonObject
  return version === undefined ? metadata : { ...metadata, resourceVersion: formatVersion(version) }
}

export function protobufAnswer(view: EventView, wanted: Representation): AnswerForm {
  const { one, list, encode } = messageOf(view, wanted)
  const entries = (events: readonly ShownEvent[]): Buffer =>
    Buffer.concat(events.flatMap((event) => entry(encode(event))))
  return {
    contentType: PROTOBUF,
    isMeasured: true,
    entriesAtOnce: ENTRIES_AT_ONCE,
    one: (event) => sealed(one, encode(event)),
    listHead: (meta, entriesBytes) => listStart(list, meta, entriesBytes),
    listEntries: entries,
    lasting: { write: entries, start: '' },
    listTail: () => NOTHING,
  }
}

/** Everything before the entries: how long they are stands in it. */
function listStart(list: TypeMeta, meta: ListMeta, entriesBytes: number): Buffer {
  const writer = new BackwardWriter(128)
  writer.bytes(1, encodeStruct(listMetaType, { ...meta } as JsonObject), { always: true })
  const metadata = writer.finish()
  return Buffer.concat([sealStart(list, metadata.length + entriesBytes), metadata])
}

function entry(message: Buffer): Buffer[] {
  const writer = new BackwardWriter(8)
  writer.prefix(ITEMS, message.length)
  return [writer.finish(), message]
}

export function protobufWatch(view: EventView, wanted: Representation): WatchForm {
  const { one, encode } = messageOf(view, wanted)
  const frame = (type: string, event: ShownEvent): Buffer =>
    framed(type, sealed(one, encode(event)))
  return {
    contentType: `${PROTOBUF};stream=watch`,
    natural: { encode: (item) => frame(naturalType(item), item.stored) },
    entered: { encode: ({ stored }) => frame('ADDED', stored) },
    left: { encode: (item) => frame('DELETED', lastInView(item)) },
    present: (event) => frame('ADDED', event),
    bookmark: (version, isInitialEnd) => frame('BOOKMARK', markOf(version, isInitialEnd)),
    error: (status: Status) => framed('ERROR', sealedDocument(status)),
  }
}

/** A change: its length in four bytes, then a message of its type and the object in its envelope. */
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
