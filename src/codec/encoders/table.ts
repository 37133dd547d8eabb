/** The columns that clients print for events, and the cells of an event. */
import { clusterAnnotation } from '../../api/annotations.ts'
import { isObject, type Json, type JsonObject, memberOf, textOf } from '../../lib/json.ts'

/** Null if there is no value. */
export type TableCell = string | number | null

/** Members are declared in the order in which they are encoded. */
export interface ColumnDefinition {
  readonly name: string
  readonly type: 'string' | 'integer'
  readonly format: string
  readonly description: string
  /** Above zero for columns that clients show only in wide output. */
  readonly priority: number
}

/**
 * Count is declared as a string but is a number, as in Kubernetes. There it is shown only in wide
 * output, after the message; here always, and before the message: kubectl does not pad the last
 * column, so that one long message does not widen all lines.
 */
export const eventColumns: readonly ColumnDefinition[] = [
  column('Last Seen', 0, 'Time since the event was last observed.'),
  column('Type', 0, 'Type of the event: Normal, Warning, or a newer type.'),
  column('Reason', 0, 'Reason for the action, as one machine-readable word.'),
  column('Object', 0, 'Kind and name of the object that the event is about.'),
  column('Subobject', 1, 'Part of that object, as a field path.'),
  column('Source', 1, 'Controller that reported the event, and its instance.'),
  column('Count', 0, 'Number of times the event was observed.'),
  column('Message', 0, 'Human-readable description of what happened.'),
  column('First Seen', 1, 'Time since the event was first observed.'),
  { ...column('Name', 1, 'Name of the event.'), format: 'name' },
]

/** The first column of a list of all clusters. */
export const clusterColumn: ColumnDefinition = column('Cluster', 0, 'Cluster of the event.')

export function column(name: string, priority: number, description: string): ColumnDefinition {
  return { name, type: 'string', format: '', description, priority }
}

/** `event` has the field names of events.k8s.io/v1, like all stored events. */
export function eventCells(event: JsonObject, nowMs: number): readonly TableCell[] {
  const age = (object: JsonObject, name: string) => ageOf(textOf(object, name), nowMs)
  const regarding = structOf(event, 'regarding')
  const series = memberOf(event, 'series')
  const hasFirst = textOf(event, 'deprecatedFirstTimestamp') !== ''
  const firstSeen = age(event, hasFirst ? 'deprecatedFirstTimestamp' : 'eventTime')
  const hasLast = textOf(event, 'deprecatedLastTimestamp') !== ''
  const lastSeen = hasLast ? age(event, 'deprecatedLastTimestamp') : firstSeen
  const kind = textOf(regarding, 'kind').toLowerCase()
  const name = textOf(regarding, 'name')
  return [
    isObject(series) ? age(series, 'lastObservedTime') : lastSeen,
    textOf(event, 'type'),
    textOf(event, 'reason'),
    name === '' ? kind : `${kind}/${name}`,
    textOf(regarding, 'fieldPath'),
    sourceOf(event),
    isObject(series) ? countOf(series, 'count') : countOf(event, 'deprecatedCount') || 1,
    trimmed(textOf(event, 'note')),
    firstSeen,
    textOf(structOf(event, 'metadata'), 'name'),
  ]
}

export function clusterCell(event: JsonObject): string {
  return textOf(structOf(structOf(event, 'metadata'), 'annotations'), clusterAnnotation)
}

/** White space as Go defines it: NEL is white space, a byte order mark is not. */
const SPACE = /[^\S\ufeff]|\u0085/

function trimmed(text: string): string {
  let from = 0
  let to = text.length
  while (from < to && SPACE.test(text.charAt(from))) from++
  while (to > from && SPACE.test(text.charAt(to - 1))) to--
  return text.slice(from, to)
}

/** The deprecated fields take precedence, since a client that still sets them relies on them. */
function sourceOf(event: JsonObject): string {
  const source = structOf(event, 'deprecatedSource')
  const component = textOf(source, 'component') || textOf(event, 'reportingController')
  const instance = textOf(source, 'host') || textOf(event, 'reportingInstance')
  return instance === '' ? component : `${component}, ${instance}`
}

export function ageOf(time: string, nowMs: number): string {
  const timeMs = Date.parse(time)
  return Number.isNaN(timeMs) ? '<unknown>' : ageText(nowMs - timeMs)
}

/** Has at most two units, or one where the second is insignificant. */
export function ageText(ms: number): string {
  const seconds = Math.trunc(ms / 1000)
  if (seconds < -1) return '<invalid>'
  const minutes = Math.trunc(seconds / 60)
  const hours = Math.trunc(minutes / 60)
  const days = Math.trunc(hours / 24)
  const years = Math.trunc(days / 365)
  if (minutes < 2) return `${Math.max(0, seconds)}s`
  if (minutes < 10) return twoUnits(minutes, 'm', `${seconds % 60}s`)
  if (hours < 3) return `${minutes}m`
  if (hours < 8) return twoUnits(hours, 'h', `${minutes % 60}m`)
  if (days < 2) return `${hours}h`
  if (days < 8) return twoUnits(days, 'd', `${hours % 24}h`)
  if (years < 2) return `${days}d`
  if (years < 8) return twoUnits(years, 'y', `${days % 365}d`)
  return `${years}y`
}

function twoUnits(count: number, unit: string, rest: string): string {
  return rest.startsWith('0') ? `${count}${unit}` : `${count}${unit}${rest}`
}

export function structOf(object: JsonObject, name: string): JsonObject {
  const value = memberOf(object, name)
  return isObject(value) ? value : {}
}

function countOf(object: JsonObject, name: string): number {
  const value: Json | undefined = memberOf(object, name)
  return typeof value === 'number' ? value : 0
}
