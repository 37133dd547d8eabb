/** Schemas of the metadata and discovery documents, with their protobuf field numbers. */
import { type Field, objectMetaType, StructType } from '../../api/schema.ts'

const text = (name: string, number: number, doc: string): Field => ({
  name,
  number,
  type: 'string',
  doc,
})

export const listMetaType: StructType = new StructType('ListMeta', [
  text('selfLink', 1, 'Deprecated. Never set.'),
  text('resourceVersion', 2, 'Version of the state that the list was read from.'),
  text('continue', 3, 'Token to request the next page.'),
  {
    name: 'remainingItemCount',
    number: 4,
    type: 'int64',
    keepsZero: true,
    doc: 'Number of items after this page, if it is known.',
  },
])

const statusCauseType: StructType = new StructType('StatusCause', [
  text('reason', 1, 'Machine-readable reason of the error.'),
  text('message', 2, 'Human-readable description of the error.'),
  text('field', 3, 'Field of the request that caused the error.'),
])

const statusDetailsType: StructType = new StructType('StatusDetails', [
  text('name', 1, 'Name of the object.'),
  text('group', 2, 'Its API group.'),
  text('kind', 3, 'Its kind or resource.'),
  {
    name: 'causes',
    number: 4,
    type: { listOf: statusCauseType },
    doc: 'The individual errors.',
  },
  { name: 'retryAfterSeconds', number: 5, type: 'int32', doc: 'Seconds to wait before a retry.' },
  text('uid', 6, 'UID of the object.'),
])

export const statusType: StructType = new StructType('Status', [
  {
    name: 'metadata',
    number: 1,
    type: { struct: listMetaType },
    whenUnset: '{}',
    doc: 'Standard list metadata.',
  },
  text('status', 2, '`Success` or `Failure`.'),
  text('message', 3, 'Human-readable description of the result.'),
  text('reason', 4, 'Machine-readable reason of a failure.'),
  { name: 'details', number: 5, type: { struct: statusDetailsType }, doc: 'Object and errors.' },
  { name: 'code', number: 6, type: 'int32', doc: 'The HTTP status code.' },
])

const preconditionsType: StructType = new StructType('Preconditions', [
  {
    name: 'uid',
    number: 1,
    type: 'string',
    keepsZero: true,
    doc: 'Required UID of the object.',
  },
  {
    name: 'resourceVersion',
    number: 2,
    type: 'string',
    keepsZero: true,
    doc: 'Required version of the object.',
  },
])

export const deleteOptionsType: StructType = new StructType('DeleteOptions', [
  {
    name: 'gracePeriodSeconds',
    number: 1,
    type: 'int64',
    keepsZero: true,
    doc: 'Grace period in seconds.',
  },
  {
    name: 'preconditions',
    number: 2,
    type: { struct: preconditionsType },
    doc: 'Conditions that must hold for the object to be deleted.',
  },
  {
    name: 'orphanDependents',
    number: 3,
    type: 'bool',
    keepsZero: true,
    doc: 'Whether dependents are kept. Deprecated: use propagationPolicy.',
  },
  {
    name: 'propagationPolicy',
    number: 4,
    type: 'string',
    keepsZero: true,
    doc: 'How dependents are handled.',
  },
  { name: 'dryRun', number: 5, type: { listOf: 'string' }, doc: 'With `All`, nothing is stored.' },
  {
    name: 'ignoreStoreReadErrorWithClusterBreakingPotential',
    number: 6,
    type: 'bool',
    keepsZero: true,
    doc: 'Whether to delete an object that cannot be read. Accepted, without effect here.',
  },
])

export const partialObjectType: StructType = new StructType('PartialObjectMetadata', [
  {
    name: 'metadata',
    number: 1,
    type: { struct: objectMetaType },
    whenUnset: '{}',
    doc: 'Metadata of the object.',
  },
])

const serverAddressType: StructType = new StructType('ServerAddressByClientCIDR', [
  text('clientCIDR', 1, 'Address range of the clients.'),
  text('serverAddress', 2, 'Address of the server for these clients.'),
])

const groupVersionType: StructType = new StructType('GroupVersionForDiscovery', [
  text('groupVersion', 1, 'Group and version.'),
  text('version', 2, 'The version alone.'),
])

const apiGroupType: StructType = new StructType('APIGroup', [
  text('name', 1, 'Name of the group.'),
  {
    name: 'versions',
    number: 2,
    type: { listOf: groupVersionType },
    doc: 'Versions that are served.',
  },
  {
    name: 'preferredVersion',
    number: 3,
    type: { struct: groupVersionType },
    doc: 'The version that clients should use.',
  },
  {
    name: 'serverAddressByClientCIDRs',
    number: 4,
    type: { listOf: serverAddressType },
    doc: 'Addresses of the server, by address range of the clients.',
  },
])

/** In protobuf, the verbs of a resource are a message that contains the list. */
const verbsType: StructType = new StructType('Verbs', [
  { name: 'items', number: 1, type: { listOf: 'string' }, doc: 'The supported verbs.' },
])

const apiResourceType: StructType = new StructType('APIResource', [
  text('name', 1, 'Name of the resource, plural.'),
  { name: 'namespaced', number: 2, type: 'bool', doc: 'Whether its objects are in namespaces.' },
  text('kind', 3, 'Kind of its objects.'),
  { name: 'verbs', number: 4, type: { struct: verbsType }, doc: 'The supported verbs.' },
  { name: 'shortNames', number: 5, type: { listOf: 'string' }, doc: 'Its short names.' },
  text('singularName', 6, 'Singular name of the resource.'),
  {
    name: 'categories',
    number: 7,
    type: { listOf: 'string' },
    doc: 'Categories that contain the resource, such as `all`.',
  },
  text('group', 8, 'API group of the resource, if it differs from that of the list.'),
  text('version', 9, 'Version of the resource, if it differs from that of the list.'),
  text('storageVersionHash', 10, 'Hash that changes when stored objects must be rewritten.'),
])

/** Documents other than events, by kind. */
export const documentTypes: ReadonlyMap<string, StructType> = new Map([
  ['Status', statusType],
  ['APIGroup', apiGroupType],
  [
    'APIGroupList',
    new StructType('APIGroupList', [
      { name: 'groups', number: 1, type: { listOf: apiGroupType }, doc: 'The groups.' },
    ]),
  ],
  [
    'APIResourceList',
    new StructType('APIResourceList', [
      text('groupVersion', 1, 'Group and version of the resources.'),
      { name: 'resources', number: 2, type: { listOf: apiResourceType }, doc: 'The resources.' },
    ]),
  ],
  [
    'APIVersions',
    new StructType('APIVersions', [
      {
        name: 'versions',
        number: 1,
        type: { listOf: 'string' },
        doc: 'Versions of the core group.',
      },
      {
        name: 'serverAddressByClientCIDRs',
        number: 2,
        type: { listOf: serverAddressType },
        doc: 'Addresses of the server, by address range of the clients.',
      },
    ]),
  ],
])
