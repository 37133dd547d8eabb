/**
 * The schema of an Event. Decoding, encoding, type checks, the published OpenAPI schema and the
 * keys of strategic merge are derived from it. Fields are declared in the order of encoding.
 */

/** `microTime` has six fractional digits, `time` none; `raw` is JSON that is not interpreted. */
export type ScalarKind = 'string' | 'int32' | 'int64' | 'bool' | 'time' | 'microTime' | 'raw'

export type FieldType =
  | ScalarKind
  | 'stringMap'
  | { readonly struct: StructType }
  | { readonly listOf: 'string' | StructType }

export interface Field {
  /** The name in JSON. */
  readonly name: string
  /** The field number in protobuf. */
  readonly number: number
  readonly type: FieldType
  /** The encoded value of an unset field; by default an unset field is left out. */
  readonly whenUnset?: 'null' | '{}' | '""' | '0'
  /** A zero, false, empty string, empty list or zero time that was sent differs from unset. */
  readonly keepsZero?: true
  /** How a strategic merge matches entries of a list: by this member, or as a set of strings. */
  readonly mergeBy?: string
  /** Required in the published schema. Validation requires more fields of a new event. */
  readonly isRequired?: true
  readonly doc: string
}

export class StructType {
  readonly name: string
  readonly fields: readonly Field[]
  /** By descending protobuf field number: messages are written from the end. */
  readonly descending: readonly Field[]
  readonly #byName: ReadonlyMap<string, Field>
  readonly #byNumber: ReadonlyMap<number, Field>

  constructor(name: string, fields: readonly Field[]) {
    this.name = name
    this.fields = fields
    this.descending = fields.toSorted((one, other) => other.number - one.number)
    this.#byName = new Map(fields.map((field) => [field.name, field]))
    this.#byNumber = new Map(fields.map((field) => [field.number, field]))
  }

  field(name: string): Field | undefined {
    return this.#byName.get(name)
  }

  /** The field with this protobuf field number. */
  byNumber(number: number): Field | undefined {
    return this.#byNumber.get(number)
  }
}

/** A string that is always encoded. */
function requiredText(name: string, number: number, doc: string): Field {
  return { name, number, type: 'string', whenUnset: '""', isRequired: true, doc }
}

const ownerReferenceType: StructType = new StructType('OwnerReference', [
  requiredText('apiVersion', 5, 'API version of the owner.'),
  requiredText('kind', 1, 'Kind of the owner.'),
  requiredText('name', 3, 'Name of the owner.'),
  requiredText('uid', 4, 'UID of the owner.'),
  {
    name: 'controller',
    number: 6,
    type: 'bool',
    keepsZero: true,
    doc: 'Whether the owner is the managing controller.',
  },
  {
    name: 'blockOwnerDeletion',
    number: 7,
    type: 'bool',
    keepsZero: true,
    doc: 'Whether a foreground deletion of the owner waits for the deletion of this object.',
  },
])

const managedFieldsEntryType: StructType = new StructType('ManagedFieldsEntry', [
  { name: 'manager', number: 1, type: 'string', doc: 'Client that manages these fields.' },
  { name: 'operation', number: 2, type: 'string', doc: 'Operation: `Apply` or `Update`.' },
  { name: 'apiVersion', number: 3, type: 'string', doc: 'API version of the field names.' },
  { name: 'time', number: 4, type: 'time', doc: 'Time of the last change of this entry.' },
  { name: 'fieldsType', number: 6, type: 'string', doc: 'Format of the fields: `FieldsV1`.' },
  { name: 'fieldsV1', number: 7, type: 'raw', doc: 'The fields, as a tree of names.' },
  { name: 'subresource', number: 8, type: 'string', doc: 'Subresource of that request.' },
])

export const objectMetaType: StructType = new StructType('ObjectMeta', [
  {
    name: 'name',
    number: 1,
    type: 'string',
    doc: 'Unique within the namespace; cannot be changed.',
  },
  {
    name: 'generateName',
    number: 2,
    type: 'string',
    doc: 'Prefix of a name that the server generates when no name is set.',
  },
  {
    name: 'namespace',
    number: 3,
    type: 'string',
    doc: 'Namespace of the object; cannot be changed.',
  },
  { name: 'selfLink', number: 4, type: 'string', doc: 'Deprecated. Never stored.' },
  {
    name: 'uid',
    number: 5,
    type: 'string',
    doc: 'Unique ID, which differs between objects that have the same name at different times.',
  },
  {
    name: 'resourceVersion',
    number: 6,
    type: 'string',
    doc: 'Version that changes with every write. Send it back to update only an unchanged object.',
  },
  { name: 'generation', number: 7, type: 'int64', doc: 'Number of changes of the desired state.' },
  { name: 'creationTimestamp', number: 8, type: 'time', doc: 'Time of creation on the server.' },
  {
    name: 'deletionTimestamp',
    number: 9,
    type: 'time',
    doc: 'Time of the delete request, set while finalizers delay the deletion.',
  },
  {
    name: 'deletionGracePeriodSeconds',
    number: 10,
    type: 'int64',
    keepsZero: true,
    doc: 'Grace period of the deletion in seconds.',
  },
  { name: 'labels', number: 11, type: 'stringMap', doc: 'Names and values for selectors.' },
  { name: 'annotations', number: 12, type: 'stringMap', doc: 'Names and values for other uses.' },
  {
    name: 'ownerReferences',
    number: 13,
    type: { listOf: ownerReferenceType },
    mergeBy: 'uid',
    doc: 'Objects that own this one.',
  },
  {
    name: 'finalizers',
    number: 14,
    type: { listOf: 'string' },
    mergeBy: 'value',
    doc: 'Finalizers that must be removed before the object is deleted.',
  },
  {
    name: 'managedFields',
    number: 17,
    type: { listOf: managedFieldsEntryType },
    keepsZero: true,
    doc: 'The fields that each client manages.',
  },
])

export const objectReferenceType: StructType = new StructType('ObjectReference', [
  { name: 'kind', number: 1, type: 'string', doc: 'Kind of the object.' },
  { name: 'namespace', number: 2, type: 'string', doc: 'Namespace of the object.' },
  { name: 'name', number: 3, type: 'string', doc: 'Name of the object.' },
  { name: 'uid', number: 4, type: 'string', doc: 'UID of the object.' },
  { name: 'apiVersion', number: 5, type: 'string', doc: 'API version of the object.' },
  { name: 'resourceVersion', number: 6, type: 'string', doc: 'Version of the object.' },
  { name: 'fieldPath', number: 7, type: 'string', doc: 'Part of it, such as one container.' },
])

const eventSeriesType: StructType = new StructType('EventSeries', [
  {
    name: 'count',
    number: 1,
    type: 'int32',
    whenUnset: '0',
    isRequired: true,
    doc: 'Number of occurrences up to lastObservedTime.',
  },
  {
    name: 'lastObservedTime',
    number: 2,
    type: 'microTime',
    whenUnset: 'null',
    isRequired: true,
    doc: 'Time of the last observation.',
  },
])

export const eventSourceType: StructType = new StructType('EventSource', [
  { name: 'component', number: 1, type: 'string', doc: 'Component that reported the event.' },
  { name: 'host', number: 2, type: 'string', doc: 'Node of that component.' },
])

export const eventType: StructType = new StructType('Event', [
  {
    name: 'metadata',
    number: 1,
    type: { struct: objectMetaType },
    whenUnset: '{}',
    doc: 'Standard object metadata.',
  },
  {
    name: 'eventTime',
    number: 2,
    type: 'microTime',
    whenUnset: 'null',
    isRequired: true,
    doc: 'Time of the first observation. Required.',
  },
  {
    name: 'series',
    number: 3,
    type: { struct: eventSeriesType },
    doc: 'Set when the event was observed more than once; unset for a single occurrence.',
  },
  {
    name: 'reportingController',
    number: 4,
    type: 'string',
    doc: 'Controller that reported the event, such as `kubernetes.io/kubelet`. Required.',
  },
  {
    name: 'reportingInstance',
    number: 5,
    type: 'string',
    doc: 'Instance of that controller. Required, at most 128 bytes.',
  },
  {
    name: 'action',
    number: 6,
    type: 'string',
    doc: 'Action that was taken or failed. Required, at most 128 bytes.',
  },
  {
    name: 'reason',
    number: 7,
    type: 'string',
    doc: 'Machine-readable reason for the action. Required, at most 128 bytes.',
  },
  {
    name: 'regarding',
    number: 8,
    type: { struct: objectReferenceType },
    whenUnset: '{}',
    doc: 'The object that the event is about.',
  },
  {
    name: 'related',
    number: 9,
    type: { struct: objectReferenceType },
    doc: 'A second object, for actions that involve two.',
  },
  {
    name: 'note',
    number: 10,
    type: 'string',
    doc: 'Human-readable description of what happened. At most 1 kB.',
  },
  { name: 'type', number: 11, type: 'string', doc: '`Normal` or `Warning`. Required.' },
  {
    name: 'deprecatedSource',
    number: 12,
    type: { struct: eventSourceType },
    whenUnset: '{}',
    doc: 'Deprecated: for core/v1 only.',
  },
  {
    name: 'deprecatedFirstTimestamp',
    number: 13,
    type: 'time',
    whenUnset: 'null',
    keepsZero: true,
    doc: 'Deprecated: for core/v1 only.',
  },
  {
    name: 'deprecatedLastTimestamp',
    number: 14,
    type: 'time',
    whenUnset: 'null',
    keepsZero: true,
    doc: 'Deprecated: for core/v1 only.',
  },
  { name: 'deprecatedCount', number: 15, type: 'int32', doc: 'Deprecated: for core/v1 only.' },
])

/** Structures that are applied and owned as a whole: their fields have no separate managers. */
export const atomicTypes: ReadonlySet<StructType> = new Set([
  ownerReferenceType,
  objectReferenceType,
])
