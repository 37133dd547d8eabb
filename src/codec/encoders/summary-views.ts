/** Views of summaries and histograms of events. */
import { TIDINGS_API_VERSION } from '../../api/tidings-group.ts'
import { isObject, type JsonObject, memberOf, textOf } from '../../lib/json.ts'
import type { GroupField } from '../../storage/summary.ts'
import { eventHistogramType, eventSummaryType } from '../summary-types.ts'
import type { EventView } from './event-shapes.ts'
import { objectView } from './object-views.ts'
import { ageOf, type ColumnDefinition, column, structOf, type TableCell } from './table.ts'

/** `user` is known only for rates. */
export type ShownField = GroupField | 'user'

/** There is no column for the namespace, which clients print themselves. */
const groupColumns: Readonly<Record<Exclude<ShownField, 'namespace'>, ColumnDefinition>> = {
  cluster: column('Cluster', 0, 'Cluster of the events.'),
  workload: column('Workload', 0, 'Workload that the objects belong to.'),
  type: column('Type', 0, 'Type of the events.'),
  reason: column('Reason', 0, 'Reason of the events.'),
  pattern: column('Pattern', 0, 'What the notes have in common, apart from numbers and names.'),
  kind: column('Kind', 0, 'Kind of the objects that the events are about.'),
  object: column('Object', 0, 'Object that the events are about.'),
  controller: column('Controller', 0, 'Controller that reported the events.'),
  user: column('User', 0, 'User who wrote the events.'),
}

interface CountColumn extends ColumnDefinition {
  readonly cell: (summary: JsonObject, nowMs: number) => TableCell
}

const OCCURRENCES = counted('Occurrences', 'occurrences', 'How many times events were observed.')
const BEFORE = counted('Before', 'before', 'The same in the time that it is compared with.')
const EVENTS = counted('Events', 'events', 'Number of events.')
const OBJECTS = counted('Objects', 'objects', 'Number of different objects.')
const RATE: CountColumn = {
  ...column('Rate', 0, 'Writes of events over about the last minute.'),
  cell: (summary) => {
    const rate = memberOf(summary, 'ratePerMinute')
    return typeof rate === 'number' ? `${rate}/min` : ''
  },
}
const FIRST: CountColumn = {
  ...column('First', 0, 'Time since one was first seen.'),
  cell: (summary, nowMs) => ageIn(summary, 'firstTime', nowMs),
}
const LAST: CountColumn = {
  ...column('Last', 0, 'Time since one was last seen.'),
  cell: (summary, nowMs) => ageIn(summary, 'lastTime', nowMs),
}
const NOTE: CountColumn = {
  ...column('Note', 0, 'The note of the event seen last.'),
  // A cell is one line.
  cell: (summary) => textOf(summary, 'sampleNote').replaceAll(/\s+/g, ' ').trim(),
}

/** Groups with Warnings come first in the incident list, so it must show where they end. */
const TYPE: CountColumn = {
  ...column('Type', 0, 'Warning if some of the events are.'),
  cell: (summary) => ((numberOf(summary, 'warnings') ?? 0) > 0 ? 'Warning' : 'Normal'),
}

const RULE: CountColumn = {
  ...column('Rule', 1, 'What decided the workload: owner, event, name or self.'),
  cell: (summary) => textOf(summary, 'workloadRule'),
}

/** The view of summaries that are grouped by these fields. Only one field can have a rate. */
export function summaryView(
  groupBy: readonly ShownField[],
  { isCompared = false }: { readonly isCompared?: boolean } = {},
): EventView {
  const shown = groupBy.filter((field) => field !== 'namespace')
  const isIncident = groupBy.includes('workload')
  const types = isIncident && !groupBy.includes('type') ? [TYPE] : []
  const counts = [
    OCCURRENCES,
    ...(isCompared ? [BEFORE] : []),
    EVENTS,
    OBJECTS,
    ...(groupBy.length === 1 ? [RATE] : []),
    FIRST,
    LAST,
    NOTE,
    ...(isIncident ? [RULE] : []),
  ]
  return objectView({
    type: eventSummaryType,
    apiVersion: TIDINGS_API_VERSION,
    columns: [
      ...types.map(definitionOf),
      ...shown.map((field) => groupColumns[field]),
      ...counts.map(definitionOf),
    ],
    cells: (summary, nowMs) => {
      const group = structOf(summary, 'group')
      return [
        ...types.map(({ cell }) => cell(summary, nowMs)),
        ...shown.map((field) => textOf(group, field)),
        ...counts.map(({ cell }) => cell(summary, nowMs)),
      ]
    },
    emptyMembers: '',
  })
}

function definitionOf({ cell: _cell, ...definition }: CountColumn): ColumnDefinition {
  return definition
}

function counted(name: string, member: string, description: string): CountColumn {
  return { ...integer(name, description), cell: (summary) => numberOf(summary, member) }
}

function ageIn(summary: JsonObject, name: string, nowMs: number): string {
  return textOf(summary, name) === '' ? '' : ageOf(textOf(summary, name), nowMs)
}

export const histogramView: EventView = objectView({
  type: eventHistogramType,
  apiVersion: TIDINGS_API_VERSION,
  columns: [
    column('Start', 0, 'Start of the bucket.'),
    column('End', 0, 'End of the bucket, which is not part of it.'),
    integer('Total', 'How many times events were observed in the time of the bucket.'),
    column('Counts', 0, 'The same by the values of a field, such as the type.'),
  ],
  cells: (bucket) => {
    const counts = countsOf(bucket)
    return [
      shortTime(textOf(bucket, 'startTime')),
      shortTime(textOf(bucket, 'endTime')),
      counts.reduce((sum, one) => sum + (numberOf(one, 'occurrences') ?? 0), 0),
      counts.map(countText).join(' '),
    ]
  },
  emptyMembers: '',
})

/** `~` marks an estimate. */
function countText(one: JsonObject): string {
  const mark = memberOf(one, 'estimated') === true ? '~' : ''
  return `${textOf(one, 'name')}=${mark}${numberOf(one, 'occurrences')}`
}

function countsOf(bucket: JsonObject): readonly JsonObject[] {
  const counts = memberOf(bucket, 'counts')
  return Array.isArray(counts) ? counts.filter(isObject) : []
}

/** Drops the trailing zeros of the fraction, which every time has. */
function shortTime(time: string): string {
  return time.replace(/\.?0+Z$/, 'Z')
}

function numberOf(object: JsonObject, name: string): number | null {
  const value = memberOf(object, name)
  return typeof value === 'number' ? value : null
}

function integer(name: string, description: string): ColumnDefinition {
  return { ...column(name, 0, description), type: 'integer', format: 'int64' }
}
