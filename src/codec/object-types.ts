/** Schemas of the kinds besides events that can only be read, with their protobuf field numbers. */
import { type Field, objectMetaType, StructType } from '../api/schema.ts'
import { listMetaType } from './struct/meta-types.ts'

export const metadataField: Field = {
  name: 'metadata',
  number: 1,
  type: { struct: objectMetaType },
  whenUnset: '{}',
  doc: 'Standard object metadata.',
}

export const namespaceType: StructType = new StructType('Namespace', [
  metadataField,
  {
    name: 'spec',
    number: 2,
    type: { struct: new StructType('NamespaceSpec', []) },
    whenUnset: '{}',
    doc: 'Always empty: namespaces are not stored here.',
  },
  {
    name: 'status',
    number: 3,
    type: {
      struct: new StructType('NamespaceStatus', [
        { name: 'phase', number: 1, type: 'string', doc: 'Always `Active`.' },
      ]),
    },
    whenUnset: '{}',
    doc: 'State of the namespace.',
  },
])

const clusterMirrorType: StructType = new StructType('ClusterMirror', [
  {
    name: 'state',
    number: 1,
    type: 'string',
    doc: '`Waiting`, `Syncing`, `Following` or `Stalled`.',
  },
  {
    name: 'lagSeconds',
    number: 2,
    type: 'int64',
    keepsZero: true,
    doc: 'How far the mirror is behind the origin, if that is known.',
  },
  { name: 'message', number: 3, type: 'string', doc: 'What the mirror does, or why it stalls.' },
])

const clusterStatusType: StructType = new StructType('ClusterStatus', [
  { name: 'events', number: 1, type: 'int64', whenUnset: '0', doc: 'Number of stored events.' },
  {
    name: 'oldestEventTime',
    number: 2,
    type: 'time',
    doc: 'When the oldest of these events was last written.',
  },
  {
    name: 'lastEventTime',
    number: 3,
    type: 'time',
    doc: 'When an event was written last, of those that are still stored.',
  },
  {
    name: 'mirror',
    number: 4,
    type: { struct: clusterMirrorType },
    doc: 'The mirror of the cluster; unset for a cluster that is not mirrored.',
  },
])

export const clusterType: StructType = new StructType('Cluster', [
  metadataField,
  {
    name: 'status',
    number: 2,
    type: { struct: clusterStatusType },
    whenUnset: '{}',
    doc: 'What is stored of the cluster, and the state of its mirror.',
  },
])

export function listTypeOf(type: StructType, doc: string): StructType {
  return new StructType(`${type.name}List`, [
    {
      name: 'metadata',
      number: 1,
      type: { struct: listMetaType },
      doc: 'Standard list metadata.',
    },
    { name: 'items', number: 2, type: { listOf: type }, isRequired: true, doc },
  ])
}
