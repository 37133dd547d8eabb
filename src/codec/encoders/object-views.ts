/** Views of namespaces and clusters. Their bodies already have the fields that clients see. */
import type { StructType } from '../../api/schema.ts'
import { TIDINGS_API_VERSION } from '../../api/tidings-group.ts'
import type { JsonObject } from '../../lib/json.ts'
import { memberOf, textOf } from '../../lib/json.ts'
import { clusterType, namespaceType } from '../object-types.ts'
import { encodeStruct } from '../struct/protobuf-struct.ts'
import type { EventView } from './event-shapes.ts'
import { versioned } from './protobuf-encoders.ts'
import { ageOf, ageText, type ColumnDefinition, column, structOf } from './table.ts'

const nameColumn: ColumnDefinition = {
  ...column('Name', 0, 'Name of the object.'),
  format: 'name',
}

export const namespaceView: EventView = objectView({
  type: namespaceType,
  apiVersion: 'v1',
  columns: [
    nameColumn,
    column('Status', 0, 'State of the namespace.'),
    column('Age', 0, 'Time since the oldest event of the namespace was written.'),
  ],
  cells: (namespace, nowMs) => {
    const metadata = structOf(namespace, 'metadata')
    return [
      textOf(metadata, 'name'),
      textOf(structOf(namespace, 'status'), 'phase'),
      ageOf(textOf(metadata, 'creationTimestamp'), nowMs),
    ]
  },
  emptyMembers: '"spec":{},"status":{}',
})

export const clusterView: EventView = objectView({
  type: clusterType,
  apiVersion: TIDINGS_API_VERSION,
  columns: [
    nameColumn,
    { ...column('Events', 0, 'Number of stored events.'), type: 'integer', format: 'int64' },
    column('Oldest', 0, 'Time since the oldest event was last seen.'),
    column('Last Event', 0, 'Time since the newest event was last seen.'),
    column('Mirror', 0, 'State of the mirror; empty for a cluster that is not mirrored.'),
    column('Lag', 0, 'How far the mirror is behind the origin.'),
    column('Message', 0, 'What the mirror does, or why it stalls.'),
  ],
  cells: (cluster, nowMs) => {
    const status = structOf(cluster, 'status')
    const mirror = structOf(status, 'mirror')
    const age = (name: string) =>
      textOf(status, name) === '' ? '' : ageOf(textOf(status, name), nowMs)
    const lag = memberOf(mirror, 'lagSeconds')
    const events = memberOf(status, 'events')
    return [
      textOf(structOf(cluster, 'metadata'), 'name'),
      typeof events === 'number' ? events : 0,
      age('oldestEventTime'),
      age('lastEventTime'),
      textOf(mirror, 'state'),
      typeof lag === 'number' ? ageText(lag * 1000) : '',
      textOf(mirror, 'message'),
    ]
  },
  emptyMembers: '"status":{}',
})

export function objectView(
  options: Pick<EventView, 'apiVersion' | 'columns' | 'cells' | 'emptyMembers'> & {
    readonly type: StructType
  },
): EventView {
  const { type, ...own } = options
  const metadata = (tree: JsonObject) => structOf(tree, 'metadata')
  return {
    ...own,
    kind: type.name,
    isAsStored: true,
    body: (body) => body,
    metadata: (body) => metadata(JSON.parse(body.toString())),
    message: ({ body, version }) => {
      const tree: JsonObject = JSON.parse(body.toString())
      return encodeStruct(type, { ...tree, metadata: versioned(metadata(tree), version) })
    },
  }
}
