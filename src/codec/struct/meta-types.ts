/** Schemas of the metadata and discovery documents, with their protobuf field numbers. */
import { field, objectMetaType, StructType } from '../../api/schema.ts'

const shardInfoType: StructType = new StructType('ShardInfo', [
  field('selector', 1, 'string', 'The shard selector of the request, in its normal form.'),
])

export const listMetaType: StructType = new StructType('ListMeta', [
  field('selfLink', 1, 'string', 'Deprecated. Never set.'),
  field('resourceVersion', 2, 'string', 'Version of the state that the list was read from.'),
  field('continue', 3, 'string', 'Token to request the next page.'),
  {
    name: 'remainingItemCount',
    number: 4,
    type: 'int64',
    keepsZero: true,
    doc: 'Number of items after this page, if it is known.',
  },
  field('shardInfo', 5, { struct: shardInfoType }, 'Set when the list is one shard of all items.'),
])

const statusCauseType: StructType = new StructType('StatusCause', [
  field('reason', 1, 'string', 'Machine-readable reason of the error.'),
  field('message', 2, 'string', 'Human-readable description of the error.'),
  field('field', 3, 'string', 'Field of the request that caused the error.'),
])

const statusDetailsType: StructType = new StructType('StatusDetails', [
  field('name', 1, 'string', 'Name of the object.'),
  field('group', 2, 'string', 'Its API group.'),
  field('kind', 3, 'string', 'Its kind or resource.'),
  field('causes', 4, { listOf: statusCauseType }, 'The individual errors.'),
  field('retryAfterSeconds', 5, 'int32', 'Seconds to wait before a retry.'),
  field('uid', 6, 'string', 'UID of the object.'),
])

export const statusType: StructType = new StructType('Status', [
  {
    name: 'metadata',
    number: 1,
    type: { struct: listMetaType },
    whenUnset: '{}',
    doc: 'Standard list metadata.',
  },
  field('status', 2, 'string', '`Success` or `Failure`.'),
  field('message', 3, 'string', 'Human-readable description of the result.'),
  field('reason', 4, 'string', 'Machine-readable reason of a failure.'),
  field('details', 5, { struct: statusDetailsType }, 'Object and errors.'),
  field('code', 6, 'int32', 'The HTTP status code.'),
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
  field(
    'preconditions',
    2,
    { struct: preconditionsType },
    'Conditions that must hold for the object to be deleted.',
  ),
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
  field('dryRun', 5, { listOf: 'string' }, 'With `All`, nothing is stored.'),
  {
    name: 'ignoreStoreReadErrorWithClusterBreakingPotential',
    number: 6,
    type: 'bool',
    keepsZero: true,
    doc: 'Whether to delete an object that cannot be read, and only such an object.',
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
  field('clientCIDR', 1, 'string', 'Address range of the clients.'),
  field('serverAddress', 2, 'string', 'Address of the server for these clients.'),
])

const groupVersionType: StructType = new StructType('GroupVersionForDiscovery', [
  field('groupVersion', 1, 'string', 'Group and version.'),
  field('version', 2, 'string', 'The version alone.'),
])

const apiGroupType: StructType = new StructType('APIGroup', [
  field('name', 1, 'string', 'Name of the group.'),
  field('versions', 2, { listOf: groupVersionType }, 'Versions that are served.'),
  field(
    'preferredVersion',
    3,
    { struct: groupVersionType },
    'The version that clients should use.',
  ),
  field(
    'serverAddressByClientCIDRs',
    4,
    { listOf: serverAddressType },
    'Addresses of the server, by address range of the clients.',
  ),
])

/** The verbs of a resource are a message that contains the list, but a plain list in JSON. */
const verbsType: StructType = new StructType('Verbs', [
  field('items', 1, { listOf: 'string' }, 'The supported verbs.'),
])

const apiResourceType: StructType = new StructType('APIResource', [
  field('name', 1, 'string', 'Name of the resource, plural.'),
  field('namespaced', 2, 'bool', 'Whether its objects are in namespaces.'),
  field('kind', 3, 'string', 'Kind of its objects.'),
  field('verbs', 4, { struct: verbsType }, 'The supported verbs.'),
  field('shortNames', 5, { listOf: 'string' }, 'Its short names.'),
  field('singularName', 6, 'string', 'Singular name of the resource.'),
  field(
    'categories',
    7,
    { listOf: 'string' },
    'Categories that contain the resource, such as `all`.',
  ),
  field('group', 8, 'string', 'API group of the resource, if it differs from that of the list.'),
  field('version', 9, 'string', 'Version of the resource, if it differs from that of the list.'),
  field(
    'storageVersionHash',
    10,
    'string',
    'Hash that changes when stored objects must be rewritten.',
  ),
])

/** Documents other than events, keyed by kind. */
export const documentTypes: ReadonlyMap<string, StructType> = new Map([
  ['Status', statusType],
  ['APIGroup', apiGroupType],
  [
    'APIGroupList',
    new StructType('APIGroupList', [field('groups', 1, { listOf: apiGroupType }, 'The groups.')]),
  ],
  [
    'APIResourceList',
    new StructType('APIResourceList', [
      field('groupVersion', 1, 'string', 'Group and version of the resources.'),
      field('resources', 2, { listOf: apiResourceType }, 'The resources.'),
    ]),
  ],
  [
    'APIVersions',
    new StructType('APIVersions', [
      field('versions', 1, { listOf: 'string' }, 'Versions of the core group.'),
      field(
        'serverAddressByClientCIDRs',
        2,
        { listOf: serverAddressType },
        'Addresses of the server, by address range of the clients.',
      ),
    ]),
  ],
])
