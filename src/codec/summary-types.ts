/** Schemas of summaries and histograms of events, with their protobuf field numbers. */
import { type Field, StructType } from '../api/schema.ts'
import { metadataField } from './object-types.ts'

function count(name: string, number: number, doc: string): Field {
  return { name, number, type: 'int64', doc }
}

export const eventSummaryType: StructType = new StructType('EventSummary', [
  metadataField,
  {
    name: 'group',
    number: 2,
    type: 'stringMap',
    doc: 'What the events of the group have in common, by the fields of `groupBy`.',
  },
  count('occurrences', 3, 'How many times the events were observed within the window.'),
  count('events', 4, 'Number of events.'),
  count('objects', 5, 'Number of different objects that the events are about.'),
  count(
    'ratePerMinute',
    6,
    'Writes of events per minute, over about the last minute and regardless of selectors.',
  ),
  { name: 'firstTime', number: 7, type: 'microTime', doc: 'When one was first seen.' },
  { name: 'lastTime', number: 8, type: 'microTime', doc: 'When one was last seen.' },
  { name: 'sampleNote', number: 9, type: 'string', doc: 'The note of the event seen last.' },
  {
    name: 'warnings',
    number: 10,
    type: 'int64',
    keepsZero: true,
    doc: 'How many of the occurrences are Warnings.',
  },
  {
    name: 'before',
    number: 11,
    type: 'int64',
    keepsZero: true,
    doc: 'With `compare`: the occurrences in the time that it is compared with.',
  },
  {
    name: 'estimated',
    number: 12,
    type: 'bool',
    doc: 'Some occurrences are known only to lie between two times, one of them outside of the window.',
  },
  {
    name: 'workloadRule',
    number: 13,
    type: 'string',
    doc: 'Grouped by workload: what decided it for the event seen last: owner, event, name or self.',
  },
])

const bucketCountType: StructType = new StructType('EventHistogramCount', [
  {
    name: 'name',
    number: 1,
    type: 'string',
    whenUnset: '""',
    doc: 'The value of the field in `by`, or `_other`.',
  },
  count('occurrences', 2, 'How many times the events were observed in the bucket.'),
  count('events', 3, 'Number of events that were observed in the bucket.'),
  {
    name: 'estimated',
    number: 4,
    type: 'bool',
    doc: 'Some occurrences are known only to lie between two times, and are distributed evenly.',
  },
])

export const eventHistogramType: StructType = new StructType('EventHistogram', [
  metadataField,
  { name: 'startTime', number: 2, type: 'microTime', doc: 'Start of the bucket.' },
  {
    name: 'endTime',
    number: 3,
    type: 'microTime',
    doc: 'End of the bucket, which is not part of it.',
  },
  {
    name: 'counts',
    number: 4,
    type: { listOf: bucketCountType },
    doc: 'Events that were observed within the bucket, by the values of a field.',
  },
])
