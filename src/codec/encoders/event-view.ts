import type { Event } from '../../api/event.ts'
import { coreGroup, type EventGroup } from '../../api/event-groups.ts'
import type { JsonObject } from '../../lib/json.ts'
import type { ShownEvent } from '../event/event-bytes.ts'
import { readEncoded } from '../event/event-json.ts'
import { encodeStruct } from '../struct/protobuf-struct.ts'
import { StructEncoder } from '../struct/struct-encoding.ts'
import type { EventView } from './event-shapes.ts'
import { versioned } from './protobuf-encoders.ts'
import { eventCells, eventColumns } from './table.ts'

/** The view of a group on events. Stored events have the shape of events.k8s.io. */
export function viewOf(group: EventGroup): EventView {
  const { apiVersion } = group
  const isAsStored = group.type !== coreGroup.type
  const encoder = new StructEncoder(group.type)
  const inGroup = (event: Event): JsonObject => group.fromEvent(event) as JsonObject
  const metadataOf = (event: Event) => event.metadata as unknown as JsonObject
  return {
    kind: 'Event',
    apiVersion,
    columns: eventColumns,
    cells: eventCells,
    emptyMembers:
      '"eventTime":null,"regarding":{},"deprecatedSource":{},"deprecatedFirstTimestamp":null,"deprecatedLastTimestamp":null',
    metadata: (body) => metadataOf(readEncoded(body)),
    isAsStored,
    body: (body) => (isAsStored ? body : Buffer.from(encoder.text(inGroup(readEncoded(body))))),
    message: ({ body, version }: ShownEvent) => {
      const event = readEncoded(body)
      const metadata = versioned(metadataOf(event), version)
      return encodeStruct(group.type, { ...inGroup(event), metadata })
    },
  }
}

/** Parses a stored body into a tree with the field names of a group, with kind and apiVersion. */
export function eventTree(body: Buffer, view: EventView): JsonObject {
  const type = `"kind":"Event","apiVersion":${JSON.stringify(view.apiVersion)}`
  return JSON.parse(`{${type},${view.body(body).toString('utf8', 1)}`)
}
