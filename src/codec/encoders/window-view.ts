/** The view of retention windows. */
import { TIDINGS_API_VERSION } from '../../api/tidings-group.ts'
import { isObject, type JsonObject, memberOf, textOf } from '../../lib/json.ts'
import { retentionWindowType } from '../window-types.ts'
import type { EventView } from './event-shapes.ts'
import { objectView } from './object-views.ts'
import { ageOf, type ColumnDefinition, column, structOf } from './table.ts'

const nameColumn: ColumnDefinition = {
  ...column('Name', 0, 'Name of the namespace, or of the cluster.'),
  format: 'name',
}

export interface WindowColumns {
  /** Adds a column for the cluster. */
  readonly hasClusters: boolean
  /** Adds a column for how far back history goes. */
  readonly hasHistory: boolean
}

export function retentionWindowView({ hasClusters, hasHistory }: WindowColumns): EventView {
  return objectView({
    type: retentionWindowType,
    apiVersion: TIDINGS_API_VERSION,
    columns: [
      ...(hasClusters ? [column('Cluster', 0, 'Name of the cluster.')] : []),
      nameColumn,
      { ...column('Events', 0, 'Number of stored events.'), type: 'integer', format: 'int64' },
      column('Bytes', 0, 'Size of the stored events.'),
      column('Oldest', 0, 'Time since the oldest event was last seen.'),
      ...(hasHistory ? [column('History', 0, 'Time since the oldest day in history.')] : []),
      column('Lifetimes', 0, 'How long events are retained; the first that matches applies.'),
      column('Budget', 0, 'Maximum number and size of the events.'),
      column('Evicted', 0, 'Events deleted because of budgets.'),
    ],
    cells: (window, nowMs) => [
      ...(hasClusters ? [textOf(window, 'cluster')] : []),
      textOf(structOf(window, 'metadata'), 'name'),
      numberOf(window, 'events') ?? 0,
      bytesText(numberOf(window, 'bytes') ?? 0),
      oldestText(window, nowMs),
      ...(hasHistory ? [oldestText(structOf(window, 'history'), nowMs)] : []),
      lifetimesText(window),
      budgetText(structOf(window, 'budget')),
      String(numberOf(window, 'evicted') ?? ''),
    ],
    emptyMembers: '',
  })
}

function oldestText(object: JsonObject, nowMs: number): string {
  const oldestTime = textOf(object, 'oldestTime')
  return oldestTime === '' ? '' : ageOf(oldestTime, nowMs)
}

/** For example `kind=Pod 1d, Warning 7d, others 6h`. */
function lifetimesText(window: JsonObject): string {
  const lifetimes = memberOf(window, 'lifetimes')
  if (!Array.isArray(lifetimes)) return ''
  const texts = lifetimes.filter(isObject).map((one) => {
    const selects = textOf(one, 'selects')
    const others = lifetimes.length === 1 ? '' : 'others'
    return `${selects === '' ? others : selects} ${textOf(one, 'lifetime')}`.trim()
  })
  const hidden = numberOf(window, 'hiddenRules')
  if (hidden !== undefined) texts.push(`${hidden} more`)
  return texts.join(', ')
}

/** For example `100000 events, 200Mi`. */
function budgetText(budget: JsonObject): string {
  const events = numberOf(budget, 'events')
  const bytes = numberOf(budget, 'bytes')
  const texts = [
    ...(events === undefined ? [] : [`${events} events`]),
    ...(bytes === undefined ? [] : [bytesText(bytes)]),
  ]
  return texts.join(', ')
}

const UNITS = ['', 'Ki', 'Mi', 'Gi', 'Ti'] as const

/** For example `980`, `1.2Ki`, `200Mi`. */
export function bytesText(bytes: number): string {
  let size = bytes
  let unit = 0
  while (size >= 1024 && unit < UNITS.length - 1) {
    size /= 1024
    unit++
  }
  const isRounded = unit === 0 || size >= 100 || Number.isInteger(size)
  return `${isRounded ? Math.round(size) : size.toFixed(1)}${UNITS[unit]}`
}

function numberOf(object: JsonObject, name: string): number | undefined {
  const value = memberOf(object, name)
  return typeof value === 'number' ? value : undefined
}
