/** Schemas of the read-only kinds besides events, with their protobuf field numbers. */
import { type Field, field, objectMetaType, StructType } from '../api/schema.ts'
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
      struct: new StructType('NamespaceStatus', [field('phase', 1, 'string', 'Always `Active`.')]),
    },
    whenUnset: '{}',
    doc: 'State of the namespace.',
  },
])

const clusterMirrorType: StructType = new StructType('ClusterMirror', [
  field('state', 1, 'string', '`Waiting`, `Syncing`, `Following` or `Stalled`.'),
  {
    name: 'lagSeconds',
    number: 2,
    type: 'int64',
    keepsZero: true,
    doc: 'How far the mirror is behind the origin, if that is known.',
  },
  field('message', 3, 'string', 'What the mirror does, or why it stalls.'),
])

const clusterStatusType: StructType = new StructType('ClusterStatus', [
  { name: 'events', number: 1, type: 'int64', whenUnset: '0', doc: 'Number of stored events.' },
  field('oldestEventTime', 2, 'time', 'When the oldest of these events was last seen.'),
  field(
    'lastEventTime',
    3,
    'time',
    'When the newest of these events was last seen. Times in the future are ignored.',
  ),
  field(
    'mirror',
    4,
    { struct: clusterMirrorType },
    'The mirror of the cluster; unset for a cluster that is not mirrored.',
  ),
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
    field('metadata', 1, { struct: listMetaType }, 'Standard list metadata.'),
    { name: 'items', number: 2, type: { listOf: type }, isRequired: true, doc },
  ])
}
