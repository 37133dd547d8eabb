/** The values that events are grouped by, as numbers and as texts. */
import { workloadOf } from '../../incidents/marks.ts'
import { patternId } from '../../incidents/pattern.ts'
import { shortened } from '../../lib/text/shortened.ts'
import type { GroupField } from '../../storage/summary.ts'
import { COLUMNS } from '../memory/columns.ts'
import type { EventTable } from '../memory/event-table.ts'

/** Reads the value of a field: a number below 2^32. */
export type Reader = (slot: number) => number

const valueColumns = {
  type: COLUMNS.type,
  workload: COLUMNS.workload,
  reason: COLUMNS.reason,
  pattern: COLUMNS.pattern,
  kind: COLUMNS.kind,
  controller: COLUMNS.source,
} as const

/** Whether the values of a field are numbers of interned texts, or others that are below their span. */
export function isInterned(field: GroupField): boolean {
  return field !== 'object' && field !== 'workload' && field !== 'pattern'
}

/** For fields whose values are one number (all except objects). */
export function readerOf(table: EventTable, field: Exclude<GroupField, 'object'>): Reader {
  switch (field) {
    case 'cluster':
      return partOfHome(table, clusterIn)
    case 'namespace':
      return partOfHome(table, namespaceIn)
    default: {
      const column = valueColumns[field]
      return (slot) => table.valueOf(slot, column)
    }
  }
}

/** Rows have the cluster and the namespace in one column. */
function partOfHome(table: EventTable, partOf: (home: string) => string): Reader {
  /** The number of each home plus 1. */
  const byHome = new Uint32Array(table.texts.span)
  const byText = new Map<string, number>()
  return (slot) => {
    const home = table.valueOf(slot, COLUMNS.namespace)
    const known = byHome[home] ?? 0
    if (known !== 0) return known - 1
    const text = partOf(table.texts.textOf(home))
    const number = byText.get(text) ?? byText.size
    byText.set(text, number)
    byHome[home] = number + 1
    return number
  }
}

function clusterIn(home: string): string {
  return home.slice(0, home.indexOf('/'))
}

function namespaceIn(home: string): string {
  return home.slice(home.indexOf('/') + 1)
}

/** The value of a field, as a text of bounded length. Reads the event only for an object. */
export function textOf(table: EventTable, slot: number, field: GroupField): string {
  switch (field) {
    case 'object': {
      const { regarding } = table.read(slot).fields
      const kind = shortened(regarding.kind)
      const namespace = shortened(regarding.namespace)
      const name = shortened(regarding.name)
      return namespace === '' ? `${kind}/${name}` : `${kind}/${namespace}/${name}`
    }
    case 'workload': {
      const { kind, name } = workloadOf(table.read(slot))
      return `${shortened(kind)}/${shortened(name)}`
    }
    case 'pattern':
      return patternId(table.valueOf(slot, COLUMNS.pattern))
    case 'cluster':
      return clusterIn(table.texts.textOf(table.valueOf(slot, COLUMNS.namespace)))
    case 'namespace':
      return namespaceIn(table.texts.textOf(table.valueOf(slot, COLUMNS.namespace)))
    default:
      return table.texts.textOf(table.valueOf(slot, valueColumns[field]))
  }
}
