/**
 * What an Event looks like, said once. Decoding, encoding, the published schema and the keys of
 * strategic merge all read this table; fields are in the order in which they are printed.
 */

/** `microTime` has six digits after the second, `time` none; `raw` is JSON that nobody looks into. */
export type ScalarKind = 'string' | 'int32' | 'int64' | 'bool' | 'time' | 'microTime' | 'raw'

export type FieldType =
  | ScalarKind
  | 'stringMap'
  | { readonly struct: StructType }
  | { readonly listOf: 'string' | StructType }

export interface Field {
  /** In JSON. */
  readonly name: string
  /** In protobuf. */
  readonly number: number
  readonly type: FieldType
  /** What is printed when the field is not set; nothing unless told. */
  readonly whenUnset?: 'null' | '{}' | '""' | '0'
  /** A zero, false, empty text, empty list or zero time that was sent is kept: it is not the same as unset. */
  readonly keepsZero?: true
  /** Lists whose entries a strategic merge matches: by this member, or as a set of texts. */
  readonly mergeBy?: string
  /** The published schema asks for it. What else a new event must have is a matter of validation. */
  readonly isRequired?: true
  readonly doc: string
}

export class StructType {
  readonly name: string
  readonly fields: readonly Field[]
  readonly #byName: ReadonlyMap<string, Field>
  readonly #byNumber: ReadonlyMap<number, Field>

  constructor(name: string, fields: readonly Field[]) {
    this.name = name
    this.fields = fields
    this.#byName = new Map(fields.map((field) => [field.name, field]))
    this.#byNumber = new Map(fields.map((field) => [field.number, field]))
  }

  field(name: string): Field | undefined {
    return this.#byName.get(name)
  }

  /** By its number in protobuf. */
  byNumber(number: number): Field | undefined {
    return this.#byNumber.get(number)
  }
}

/** A text that is always there. */
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
    doc: 'Whether the owner waits for this object when it is deleted in the foreground.',
  },
])

const managedFieldsEntryType: StructType = new StructType('ManagedFieldsEntry', [
  { name: 'manager', number: 1, type: 'string', doc: 'Who manages these fields.' },
  { name: 'operation', number: 2, type: 'string', doc: 'How: `Apply` or `Update`.' },
  { name: 'apiVersion', number: 3, type: 'string', doc: 'Version in which the fields are named.' },
  { name: 'time', number: 4, type: 'time', doc: 'When the entry was last changed.' },
  { name: 'fieldsType', number: 6, type: 'string', doc: 'Format of the fields: `FieldsV1`.' },
  { name: 'fieldsV1', number: 7, type: 'raw', doc: 'The fields, as a tree of names.' },
  { name: 'subresource', number: 8, type: 'string', doc: 'Subresource through which it came.' },
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
    doc: 'Beginning of a name that the server completes, when no name is given.',
  },
  {
    name: 'namespace',
    number: 3,
    type: 'string',
    doc: 'Where the object lives; cannot be changed.',
  },
  { name: 'selfLink', number: 4, type: 'string', doc: 'Not used any more; never stored.' },
  {
    name: 'uid',
    number: 5,
    type: 'string',
    doc: 'Tells this object from others of the same name.',
  },
  {
    name: 'resourceVersion',
    number: 6,
    type: 'string',
    doc: 'Changes with every write. Send it back to write only if nobody else has.',
  },
  { name: 'generation', number: 7, type: 'int64', doc: 'Counts changes of the wanted state.' },
  { name: 'creationTimestamp', number: 8, type: 'time', doc: 'When the server first stored it.' },
  {
    name: 'deletionTimestamp',
    number: 9,
    type: 'time',
    doc: 'When its deletion was asked for, while finalizers keep it.',
  },
  {
    name: 'deletionGracePeriodSeconds',
    number: 10,
    type: 'int64',
    keepsZero: true,
    doc: 'Seconds it was given to end by itself.',
  },
  { name: 'labels', number: 11, type: 'stringMap', doc: 'Names and values to select it by.' },
  { name: 'annotations', number: 12, type: 'stringMap', doc: 'Anything else to keep with it.' },
  {
    name: 'ownerReferences',
    number: 13,
    type: { listOf: ownerReferenceType },
    mergeBy: 'uid',
    doc: 'Objects that this one depends on.',
  },
  {
    name: 'finalizers',
    number: 14,
    type: { listOf: 'string' },
    mergeBy: 'value',
    doc: 'Who has to agree before it is removed.',
  },
  {
    name: 'managedFields',
    number: 17,
    type: { listOf: managedFieldsEntryType },
    keepsZero: true,
    doc: 'Which client manages which field.',
  },
])

export const objectReferenceType: StructType = new StructType('ObjectReference', [
  { name: 'kind', number: 1, type: 'string', doc: 'Kind of the object.' },
  { name: 'namespace', number: 2, type: 'string', doc: 'Its namespace.' },
  { name: 'name', number: 3, type: 'string', doc: 'Its name.' },
  { name: 'uid', number: 4, type: 'string', doc: 'Its UID.' },
  { name: 'apiVersion', number: 5, type: 'string', doc: 'Its API version.' },
  { name: 'resourceVersion', number: 6, type: 'string', doc: 'Which state of it is meant.' },
  { name: 'fieldPath', number: 7, type: 'string', doc: 'A part of it, such as one container.' },
])

const eventSeriesType: StructType = new StructType('EventSeries', [
  {
    name: 'count',
    number: 1,
    type: 'int32',
    whenUnset: '0',
    isRequired: true,
    doc: 'Times seen up to the last one.',
  },
  {
    name: 'lastObservedTime',
    number: 2,
    type: 'microTime',
    whenUnset: 'null',
    isRequired: true,
    doc: 'When it was last seen.',
  },
])

export const eventSourceType: StructType = new StructType('EventSource', [
  { name: 'component', number: 1, type: 'string', doc: 'Component that reported it.' },
  { name: 'host', number: 2, type: 'string', doc: 'Node on which that ran.' },
])

export const eventType: StructType = new StructType('Event', [
  {
    name: 'metadata',
    number: 1,
    type: { struct: objectMetaType },
    whenUnset: '{}',
    doc: 'Its name, labels and so on.',
  },
  {
    name: 'eventTime',
    number: 2,
    type: 'microTime',
    whenUnset: 'null',
    isRequired: true,
    doc: 'When it was first seen. Required.',
  },
  {
    name: 'series',
    number: 3,
    type: { struct: eventSeriesType },
    doc: 'Set once it was seen more than once; nothing for a single occurrence.',
  },
  {
    name: 'reportingController',
    number: 4,
    type: 'string',
    doc: 'Controller that reported it, such as `kubernetes.io/kubelet`. Required.',
  },
  {
    name: 'reportingInstance',
    number: 5,
    type: 'string',
    doc: 'Which instance of that controller. Required, at most 128 bytes.',
  },
  {
    name: 'action',
    number: 6,
    type: 'string',
    doc: 'What was done, or failed, to the object. Required, at most 128 bytes.',
  },
  {
    name: 'reason',
    number: 7,
    type: 'string',
    doc: 'Why, for machines to read. Required, at most 128 bytes.',
  },
  {
    name: 'regarding',
    number: 8,
    type: { struct: objectReferenceType },
    whenUnset: '{}',
    doc: 'The object it is about.',
  },
  {
    name: 'related',
    number: 9,
    type: { struct: objectReferenceType },
    doc: 'A second object, for actions that have one.',
  },
  {
    name: 'note',
    number: 10,
    type: 'string',
    doc: 'What happened, for people to read. At most 1 kB.',
  },
  { name: 'type', number: 11, type: 'string', doc: '`Normal` or `Warning`. Required.' },
  {
    name: 'deprecatedSource',
    number: 12,
    type: { struct: eventSourceType },
    whenUnset: '{}',
    doc: 'For the older form of events.',
  },
  {
    name: 'deprecatedFirstTimestamp',
    number: 13,
    type: 'time',
    whenUnset: 'null',
    keepsZero: true,
    doc: 'For the older form of events.',
  },
  {
    name: 'deprecatedLastTimestamp',
    number: 14,
    type: 'time',
    whenUnset: 'null',
    keepsZero: true,
    doc: 'For the older form of events.',
  },
  { name: 'deprecatedCount', number: 15, type: 'int32', doc: 'For the older form of events.' },
])

/** Applied and owned as a whole: nobody manages single fields of these. */
export const atomicTypes: ReadonlySet<StructType> = new Set([
  ownerReferenceType,
  objectReferenceType,
])
