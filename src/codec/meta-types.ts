/** Messages that go with objects, as tables: what they look like in protobuf. */
import { type Field, objectMetaType, StructType } from '../api/schema.ts'

const text = (name: string, number: number): Field => ({ name, number, type: 'string', doc: '' })

export const listMetaType: StructType = new StructType('ListMeta', [
  text('selfLink', 1),
  text('resourceVersion', 2),
  text('continue', 3),
  { name: 'remainingItemCount', number: 4, type: 'int64', keepsZero: true, doc: '' },
])

const statusCauseType: StructType = new StructType('StatusCause', [
  text('reason', 1),
  text('message', 2),
  text('field', 3),
])

const statusDetailsType: StructType = new StructType('StatusDetails', [
  text('name', 1),
  text('group', 2),
  text('kind', 3),
  { name: 'causes', number: 4, type: { listOf: statusCauseType }, doc: '' },
  { name: 'retryAfterSeconds', number: 5, type: 'int32', doc: '' },
  text('uid', 6),
])

export const statusType: StructType = new StructType('Status', [
  { name: 'metadata', number: 1, type: { struct: listMetaType }, whenUnset: '{}', doc: '' },
  text('status', 2),
  text('message', 3),
  text('reason', 4),
  { name: 'details', number: 5, type: { struct: statusDetailsType }, doc: '' },
  { name: 'code', number: 6, type: 'int32', doc: '' },
])

const preconditionsType: StructType = new StructType('Preconditions', [
  text('uid', 1),
  text('resourceVersion', 2),
])

export const deleteOptionsType: StructType = new StructType('DeleteOptions', [
  { name: 'gracePeriodSeconds', number: 1, type: 'int64', keepsZero: true, doc: '' },
  { name: 'preconditions', number: 2, type: { struct: preconditionsType }, doc: '' },
  { name: 'orphanDependents', number: 3, type: 'bool', keepsZero: true, doc: '' },
  text('propagationPolicy', 4),
  { name: 'dryRun', number: 5, type: { listOf: 'string' }, doc: '' },
])

export const partialObjectType: StructType = new StructType('PartialObjectMetadata', [
  { name: 'metadata', number: 1, type: { struct: objectMetaType }, whenUnset: '{}', doc: '' },
])

const serverAddressType: StructType = new StructType('ServerAddressByClientCIDR', [
  text('clientCIDR', 1),
  text('serverAddress', 2),
])

const groupVersionType: StructType = new StructType('GroupVersionForDiscovery', [
  text('groupVersion', 1),
  text('version', 2),
])

const apiGroupType: StructType = new StructType('APIGroup', [
  text('name', 1),
  { name: 'versions', number: 2, type: { listOf: groupVersionType }, doc: '' },
  { name: 'preferredVersion', number: 3, type: { struct: groupVersionType }, doc: '' },
  {
    name: 'serverAddressByClientCIDRs',
    number: 4,
    type: { listOf: serverAddressType },
    doc: '',
  },
])

/** In protobuf the verbs of a resource are a message around a list. */
const verbsType: StructType = new StructType('Verbs', [
  { name: 'items', number: 1, type: { listOf: 'string' }, doc: '' },
])

const apiResourceType: StructType = new StructType('APIResource', [
  text('name', 1),
  { name: 'namespaced', number: 2, type: 'bool', doc: '' },
  text('kind', 3),
  { name: 'verbs', number: 4, type: { struct: verbsType }, doc: '' },
  { name: 'shortNames', number: 5, type: { listOf: 'string' }, doc: '' },
  text('singularName', 6),
  { name: 'categories', number: 7, type: { listOf: 'string' }, doc: '' },
  text('group', 8),
  text('version', 9),
  text('storageVersionHash', 10),
])

/** Documents other than events, by their kind. */
export const documentTypes: ReadonlyMap<string, StructType> = new Map([
  ['Status', statusType],
  ['APIGroup', apiGroupType],
  [
    'APIGroupList',
    new StructType('APIGroupList', [
      { name: 'groups', number: 1, type: { listOf: apiGroupType }, doc: '' },
    ]),
  ],
  [
    'APIResourceList',
    new StructType('APIResourceList', [
      text('groupVersion', 1),
      { name: 'resources', number: 2, type: { listOf: apiResourceType }, doc: '' },
    ]),
  ],
  [
    'APIVersions',
    new StructType('APIVersions', [
      { name: 'versions', number: 1, type: { listOf: 'string' }, doc: '' },
      {
        name: 'serverAddressByClientCIDRs',
        number: 2,
        type: { listOf: serverAddressType },
        doc: '',
      },
    ]),
  ],
])
