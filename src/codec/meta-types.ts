/** Messages that go with objects, as tables: what they look like in protobuf. */
import { type Field, objectMetaType, StructType } from '../api/schema.ts'

const text = (name: string, number: number, doc: string): Field => ({
  name,
  number,
  type: 'string',
  doc,
})

export const listMetaType: StructType = new StructType('ListMeta', [
  text('selfLink', 1, 'Not used any more.'),
  text('resourceVersion', 2, 'The state that the list is of.'),
  text('continue', 3, 'Send it back to get the next page.'),
  {
    name: 'remainingItemCount',
    number: 4,
    type: 'int64',
    keepsZero: true,
    doc: 'How many are not in this page, if that is known.',
  },
])

const statusCauseType: StructType = new StructType('StatusCause', [
  text('reason', 1, 'What was wrong, for machines to read.'),
  text('message', 2, 'What was wrong, for people to read.'),
  text('field', 3, 'Where, in what was sent.'),
])

const statusDetailsType: StructType = new StructType('StatusDetails', [
  text('name', 1, 'Name of the object.'),
  text('group', 2, 'Its API group.'),
  text('kind', 3, 'Its kind or resource.'),
  {
    name: 'causes',
    number: 4,
    type: { listOf: statusCauseType },
    doc: 'What was wrong, one by one.',
  },
  { name: 'retryAfterSeconds', number: 5, type: 'int32', doc: 'When to ask again.' },
  text('uid', 6, 'UID of the object.'),
])

export const statusType: StructType = new StructType('Status', [
  {
    name: 'metadata',
    number: 1,
    type: { struct: listMetaType },
    whenUnset: '{}',
    doc: 'For lists that were deleted.',
  },
  text('status', 2, '`Success` or `Failure`.'),
  text('message', 3, 'What happened, for people to read.'),
  text('reason', 4, 'Why it failed, for machines to read.'),
  { name: 'details', number: 5, type: { struct: statusDetailsType }, doc: 'What it was about.' },
  { name: 'code', number: 6, type: 'int32', doc: 'The HTTP status code.' },
])

const preconditionsType: StructType = new StructType('Preconditions', [
  {
    name: 'uid',
    number: 1,
    type: 'string',
    keepsZero: true,
    doc: 'UID that the object must have.',
  },
  {
    name: 'resourceVersion',
    number: 2,
    type: 'string',
    keepsZero: true,
    doc: 'Version that it must have.',
  },
])

export const deleteOptionsType: StructType = new StructType('DeleteOptions', [
  {
    name: 'gracePeriodSeconds',
    number: 1,
    type: 'int64',
    keepsZero: true,
    doc: 'Seconds to end in.',
  },
  {
    name: 'preconditions',
    number: 2,
    type: { struct: preconditionsType },
    doc: 'What must be so for the object to go.',
  },
  {
    name: 'orphanDependents',
    number: 3,
    type: 'bool',
    keepsZero: true,
    doc: 'Whether dependents stay. Older than propagationPolicy.',
  },
  {
    name: 'propagationPolicy',
    number: 4,
    type: 'string',
    keepsZero: true,
    doc: 'What becomes of dependents.',
  },
  { name: 'dryRun', number: 5, type: { listOf: 'string' }, doc: '`All`: try, and store nothing.' },
  {
    name: 'ignoreStoreReadErrorWithClusterBreakingPotential',
    number: 6,
    type: 'bool',
    keepsZero: true,
    doc: 'Whether to delete what cannot be read. Taken, and makes no difference here.',
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
  text('clientCIDR', 1, 'For clients with these addresses.'),
  text('serverAddress', 2, 'Where they reach the server.'),
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
    doc: 'The one to use.',
  },
  {
    name: 'serverAddressByClientCIDRs',
    number: 4,
    type: { listOf: serverAddressType },
    doc: 'Where clients reach the server.',
  },
])

/** In protobuf the verbs of a resource are a message around a list. */
const verbsType: StructType = new StructType('Verbs', [
  { name: 'items', number: 1, type: { listOf: 'string' }, doc: 'What can be done.' },
])

const apiResourceType: StructType = new StructType('APIResource', [
  text('name', 1, 'Name of the resource, plural.'),
  { name: 'namespaced', number: 2, type: 'bool', doc: 'Whether its objects are in namespaces.' },
  text('kind', 3, 'Kind of its objects.'),
  { name: 'verbs', number: 4, type: { struct: verbsType }, doc: 'What can be done with it.' },
  { name: 'shortNames', number: 5, type: { listOf: 'string' }, doc: 'Shorter names for it.' },
  text('singularName', 6, 'Its name, singular.'),
  {
    name: 'categories',
    number: 7,
    type: { listOf: 'string' },
    doc: 'Groups of resources that it is listed with.',
  },
  text('group', 8, 'Its group, if not that of the list.'),
  text('version', 9, 'Its version, if not that of the list.'),
  text('storageVersionHash', 10, 'Changes when stored objects must be rewritten.'),
])

/** Documents other than events, by their kind. */
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
        doc: 'Versions of the group without a name.',
      },
      {
        name: 'serverAddressByClientCIDRs',
        number: 2,
        type: { listOf: serverAddressType },
        doc: 'Where clients reach the server.',
      },
    ]),
  ],
])
