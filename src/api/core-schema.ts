/** The table of schema.ts once more, for the older group: other names, other numbers, the same event. */
import { eventSourceType, objectMetaType, objectReferenceType, StructType } from './schema.ts'

/** Of the older group a series prints its count only when there is one. */
const coreEventSeriesType: StructType = new StructType('EventSeries', [
  { name: 'count', number: 1, type: 'int32', doc: 'Times seen up to the last one.' },
  {
    name: 'lastObservedTime',
    number: 2,
    type: 'microTime',
    whenUnset: 'null',
    doc: 'When it was last seen.',
  },
])

/** The same event as core/v1 has it. */
export const coreEventType: StructType = new StructType('Event', [
  {
    name: 'metadata',
    number: 1,
    type: { struct: objectMetaType },
    whenUnset: '{}',
    isRequired: true,
    doc: 'Its name, labels and so on.',
  },
  {
    name: 'involvedObject',
    number: 2,
    type: { struct: objectReferenceType },
    whenUnset: '{}',
    isRequired: true,
    doc: 'The object it is about.',
  },
  { name: 'reason', number: 3, type: 'string', doc: 'Why, for machines to read.' },
  { name: 'message', number: 4, type: 'string', doc: 'What happened, for people to read.' },
  {
    name: 'source',
    number: 5,
    type: { struct: eventSourceType },
    whenUnset: '{}',
    doc: 'Component that reported it.',
  },
  {
    name: 'firstTimestamp',
    number: 6,
    type: 'time',
    whenUnset: 'null',
    doc: 'When it was first seen.',
  },
  {
    name: 'lastTimestamp',
    number: 7,
    type: 'time',
    whenUnset: 'null',
    doc: 'When it was last seen.',
  },
  { name: 'count', number: 8, type: 'int32', doc: 'Times it was seen.' },
  { name: 'type', number: 9, type: 'string', doc: '`Normal` or `Warning`.' },
  {
    name: 'eventTime',
    number: 10,
    type: 'microTime',
    whenUnset: 'null',
    doc: 'When it was first seen, to the microsecond.',
  },
  {
    name: 'series',
    number: 11,
    type: { struct: coreEventSeriesType },
    doc: 'Set once it was seen more than once; nothing for a single occurrence.',
  },
  { name: 'action', number: 12, type: 'string', doc: 'What was done, or failed, to the object.' },
  {
    name: 'related',
    number: 13,
    type: { struct: objectReferenceType },
    doc: 'A second object, for actions that have one.',
  },
  {
    name: 'reportingComponent',
    number: 14,
    type: 'string',
    whenUnset: '""',
    doc: 'Controller that reported it, such as `kubernetes.io/kubelet`.',
  },
  {
    name: 'reportingInstance',
    number: 15,
    type: 'string',
    whenUnset: '""',
    doc: 'Which instance of that controller.',
  },
])
