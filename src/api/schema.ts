/**
 * The schema of an Event. Decoding, encoding, type checks, the published OpenAPI schema and the
 * keys of strategic merge are derived from it. Fields are declared in the order of encoding.
 */

/** `microTime` has six fractional digits, `time` none. `raw` is JSON that is not interpreted. */
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
  /** The encoded value of an unset field. By default, an unset field is omitted. */
  readonly whenUnset?: 'null' | '{}' | '""' | '0'
  /** Whether a zero, false, empty string, empty list or zero time differs from an unset field. */
  readonly keepsZero?: true
  /** The member by which a strategic merge matches entries of a list; `value` for strings. */
  readonly mergeBy?: string
  /** Whether the published schema requires it. Validation requires more fields of a new event. */
  readonly isRequired?: true
  readonly doc: string
}

export class StructType {
  readonly name: string
  readonly fields: readonly Field[]
  /** Sorted by descending protobuf field number, since messages are written from the end. */
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

/** Declares a field without special rules. */
export function field(name: string, number: number, type: FieldType, doc: string): Field {
  return { name, number, type, doc }
}

/** Declares a string that is always encoded. */
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
  field('manager', 1, 'string', 'Client that manages these fields.'),
  field('operation', 2, 'string', 'Operation: `Apply` or `Update`.'),
  field('apiVersion', 3, 'string', 'API version of the field names.'),
  field('time', 4, 'time', 'Time of the last change of this entry.'),
  field('fieldsType', 6, 'string', 'Format of the fields: `FieldsV1`.'),
  field('fieldsV1', 7, 'raw', 'The fields, as a tree of names.'),
  field('subresource', 8, 'string', 'Subresource of that request.'),
])

export const objectMetaType: StructType = new StructType('ObjectMeta', [
  field('name', 1, 'string', 'Unique within the namespace; cannot be changed.'),
  field(
    'generateName',
    2,
    'string',
    'Prefix of a name that the server generates when no name is set.',
  ),
  field('namespace', 3, 'string', 'Namespace of the object; cannot be changed.'),
  field('selfLink', 4, 'string', 'Deprecated. Never stored.'),
  field(
    'uid',
    5,
    'string',
    'Unique ID, which differs between objects that have the same name at different times.',
  ),
  field(
    'resourceVersion',
    6,
    'string',
    'Version that changes with every write. Send it back to update only an unchanged object.',
  ),
  field('generation', 7, 'int64', 'Number of changes of the desired state.'),
  field('creationTimestamp', 8, 'time', 'Time of creation on the server.'),
  field(
    'deletionTimestamp',
    9,
    'time',
    'Time of the delete request, set while finalizers delay the deletion.',
  ),
  {
    name: 'deletionGracePeriodSeconds',
    number: 10,
    type: 'int64',
    keepsZero: true,
    doc: 'Grace period of the deletion in seconds.',
  },
  field('labels', 11, 'stringMap', 'Names and values for selectors.'),
  field('annotations', 12, 'stringMap', 'Names and values for other uses.'),
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
  field('kind', 1, 'string', 'Kind of the object.'),
  field('namespace', 2, 'string', 'Namespace of the object.'),
  field('name', 3, 'string', 'Name of the object.'),
  field('uid', 4, 'string', 'UID of the object.'),
  field('apiVersion', 5, 'string', 'API version of the object.'),
  field('resourceVersion', 6, 'string', 'Version of the object.'),
  field('fieldPath', 7, 'string', 'Part of it, such as one container.'),
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
  field('component', 1, 'string', 'Component that reported the event.'),
  field('host', 2, 'string', 'Node of that component.'),
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
  field(
    'series',
    3,
    { struct: eventSeriesType },
    'Set when the event was observed more than once; unset for a single occurrence.',
  ),
  field(
    'reportingController',
    4,
    'string',
    'Controller that reported the event, such as `kubernetes.io/kubelet`. Required.',
  ),
  field(
    'reportingInstance',
    5,
    'string',
    'Instance of that controller. Required, at most 128 bytes.',
  ),
  field('action', 6, 'string', 'Action that was taken or failed. Required, at most 128 bytes.'),
  field(
    'reason',
    7,
    'string',
    'Machine-readable reason for the action. Required, at most 128 bytes.',
  ),
  {
    name: 'regarding',
    number: 8,
    type: { struct: objectReferenceType },
    whenUnset: '{}',
    doc: 'The object that the event is about.',
  },
  field(
    'related',
    9,
    { struct: objectReferenceType },
    'A second object, for actions that involve two.',
  ),
  field('note', 10, 'string', 'Human-readable description of what happened. At most 1 kB.'),
  field('type', 11, 'string', '`Normal` or `Warning`. Required.'),
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
  field('deprecatedCount', 15, 'int32', 'Deprecated: for core/v1 only.'),
])

/** Structures that are applied and owned as a whole, so their fields have no separate managers. */
export const atomicTypes: ReadonlySet<StructType> = new Set([
  ownerReferenceType,
  objectReferenceType,
])
