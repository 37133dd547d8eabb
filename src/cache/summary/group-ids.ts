/**
 * Numbers the groups of events: 0, 1, 2 and so on. The values of an event are numbers as well, so no
 * text is made for an event. A group is found field by field: a group of the first fields and the
 * value of the next field are one key.
 */
import { shortened } from '../../lib/text/shortened.ts'
import {
  GROUPS_MAX,
  type GroupField,
  type SummaryOptions,
  TooManyGroups,
} from '../../storage/summary.ts'
import { COLUMNS } from '../memory/columns.ts'
import type { EventTable } from '../memory/event-table.ts'

/** Reads the value of a field: a number below 2^32. */
type Reader = (slot: number) => number

/** A group of the first fields is below 2^16, so both together are a safe integer. */
const valueRange = 2 ** 32

interface Level {
  readonly read: Reader
  readonly groups: Map<number, number>
}

/** Groups without a rank leave room for this many that have one. */
const RANKED_ROOM = 1_000

export interface GroupNumbers {
  /** The number of the group of a slot. May throw TooManyGroups. */
  of(slot: number): number
  /** The group of all values that have no group of their own, if there is one. */
  readonly other: number | undefined
}

export function groupNumbers(
  table: EventTable,
  { groupBy, rankOf }: Pick<SummaryOptions, 'groupBy' | 'rankOf'>,
): GroupNumbers {
  const [field, second] = groupBy
  return rankOf === undefined || field === undefined || second !== undefined
    ? new GroupIds(table, groupBy)
    : new RankedGroupIds(table, field, rankOf)
}

/** Groups by one field, of which the values with a rank matter most. */
class RankedGroupIds implements GroupNumbers {
  other: number | undefined
  readonly #table: EventTable
  readonly #field: GroupField
  readonly #rankOf: NonNullable<SummaryOptions['rankOf']>
  readonly #read: Reader
  readonly #groups = new Map<number, number>()

  constructor(table: EventTable, field: GroupField, rankOf: NonNullable<SummaryOptions['rankOf']>) {
    this.#table = table
    this.#field = field
    this.#rankOf = rankOf
    this.#read = readerOf(table, field)
  }

  of(slot: number): number {
    const value = this.#read(slot)
    const known = this.#groups.get(value)
    if (known !== undefined) return known
    const next = this.#groups.size + (this.other === undefined ? 0 : 1)
    if (this.#hasRoom(slot)) this.#groups.set(value, next)
    else if (this.other === undefined) this.other = next
    else return this.other
    return next
  }

  /** One group is left for the others. */
  #hasRoom(slot: number): boolean {
    const { size } = this.#groups
    if (size < GROUPS_MAX - RANKED_ROOM) return true
    if (size >= GROUPS_MAX - 1) return false
    return this.#rankOf([textOf(this.#table, slot, this.#field)]) > 0
  }
}

class GroupIds implements GroupNumbers {
  readonly other = undefined
  readonly #levels: readonly Level[]

  constructor(table: EventTable, groupBy: readonly GroupField[]) {
    this.#levels = groupBy.map((field) => ({ read: readerOf(table, field), groups: new Map() }))
  }

  of(slot: number): number {
    let group = 0
    for (const { read, groups } of this.#levels) {
      const key = group * valueRange + read(slot)
      const known = groups.get(key)
      if (known !== undefined) group = known
      else {
        group = groups.size
        if (group >= GROUPS_MAX) throw new TooManyGroups()
        groups.set(key, group)
      }
    }
    return group
  }
}

const valueColumns = {
  type: COLUMNS.type,
  reason: COLUMNS.reason,
  kind: COLUMNS.kind,
  controller: COLUMNS.source,
} as const

function readerOf(table: EventTable, field: GroupField): Reader {
  switch (field) {
    case 'object':
      return numbered((slot) => table.objectOf(slot))
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

/** Replaces large values by small numbers. There are no more of them than groups. */
function numbered(read: Reader): Reader {
  const numbers = new Map<number, number>()
  return (slot) => {
    const value = read(slot)
    let number = numbers.get(value)
    if (number === undefined) {
      number = numbers.size
      numbers.set(value, number)
    }
    return number
  }
}

/** Rows have the cluster and the namespace in one column. */
function partOfHome(table: EventTable, partOf: (home: string) => string): Reader {
  const byHome = new Map<number, number>()
  const byText = new Map<string, number>()
  return (slot) => {
    const home = table.valueOf(slot, COLUMNS.namespace)
    let number = byHome.get(home)
    if (number === undefined) {
      const text = partOf(table.texts.textOf(home))
      number = byText.get(text) ?? byText.size
      byText.set(text, number)
      byHome.set(home, number)
    }
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
    case 'cluster':
      return clusterIn(table.texts.textOf(table.valueOf(slot, COLUMNS.namespace)))
    case 'namespace':
      return namespaceIn(table.texts.textOf(table.valueOf(slot, COLUMNS.namespace)))
    default:
      return table.texts.textOf(table.valueOf(slot, valueColumns[field]))
  }
}
