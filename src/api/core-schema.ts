/** The schema of an event in core/v1, which has other field names and numbers than schema.ts. */
import { eventSourceType, objectMetaType, objectReferenceType, StructType } from './schema.ts'

/** Unlike in events.k8s.io/v1, an unset count is not encoded. */
const coreEventSeriesType: StructType = new StructType('EventSeries', [
  { name: 'count', number: 1, type: 'int32', doc: 'Number of occurrences up to lastObservedTime.' },
  {
    name: 'lastObservedTime',
    number: 2,
    type: 'microTime',
    whenUnset: 'null',
    doc: 'Time of the last observation.',
  },
])

export const coreEventType: StructType = new StructType('Event', [
  {
    name: 'metadata',
    number: 1,
    type: { struct: objectMetaType },
    whenUnset: '{}',
    isRequired: true,
    doc: 'Standard object metadata.',
  },
  {
    name: 'involvedObject',
    number: 2,
    type: { struct: objectReferenceType },
    whenUnset: '{}',
    isRequired: true,
    doc: 'The object that the event is about.',
  },
  { name: 'reason', number: 3, type: 'string', doc: 'Machine-readable reason for the action.' },
  { name: 'message', number: 4, type: 'string', doc: 'Human-readable description.' },
  {
    name: 'source',
    number: 5,
    type: { struct: eventSourceType },
    whenUnset: '{}',
    doc: 'Component that reported the event.',
  },
  {
    name: 'firstTimestamp',
    number: 6,
    type: 'time',
    whenUnset: 'null',
    doc: 'Time of the first observation.',
  },
  {
    name: 'lastTimestamp',
    number: 7,
    type: 'time',
    whenUnset: 'null',
    doc: 'Time of the last observation.',
  },
  { name: 'count', number: 8, type: 'int32', doc: 'Number of occurrences.' },
  { name: 'type', number: 9, type: 'string', doc: '`Normal` or `Warning`.' },
  {
    name: 'eventTime',
    number: 10,
    type: 'microTime',
    whenUnset: 'null',
    doc: 'Time of the first observation, with microseconds.',
  },
  {
    name: 'series',
    number: 11,
    type: { struct: coreEventSeriesType },
    doc: 'Set when the event was observed more than once; unset for a single occurrence.',
  },
  { name: 'action', number: 12, type: 'string', doc: 'Action that was taken or failed.' },
  {
    name: 'related',
    number: 13,
    type: { struct: objectReferenceType },
    doc: 'A second object, for actions that involve two.',
  },
  {
    name: 'reportingComponent',
    number: 14,
    type: 'string',
    whenUnset: '""',
    doc: 'Controller that reported the event, such as `kubernetes.io/kubelet`.',
  },
  {
    name: 'reportingInstance',
    number: 15,
    type: 'string',
    whenUnset: '""',
    doc: 'Instance of that controller.',
  },
])
