/** Groups events by the object they are about. */
import { type EventRow, type ObjectName, objectPath, overText } from '../model/event-row.ts'
import { counted } from '../model/numbers.ts'
import type { LaneSort } from '../model/query.ts'
import { localTime } from '../model/times.ts'

export interface Lane {
  readonly key: string
  readonly cluster: string
  readonly object: ObjectName
  /** Sorted by when they were last seen. */
  readonly events: readonly EventRow[]
  /** Number of occurrences of type Warning. */
  readonly warnings: number
  readonly lastMs: number
}

/** Returns one lane per object. `rows` must be sorted by last seen, newest first. */
export function lanesOf(rows: readonly EventRow[]): readonly Lane[] {
  const found = new Map<string, EventRow[]>()
  for (const row of rows) {
    const key = JSON.stringify([row.cluster, objectPath(row.regarding)])
    const events = found.get(key)
    if (events === undefined) found.set(key, [row])
    else events.push(row)
  }
  return [...found].map(([key, events]) => laneOf(key, events))
}

function laneOf(key: string, newestFirst: readonly EventRow[]): Lane {
  const events = newestFirst.toReversed()
  const { cluster = '', regarding = NO_OBJECT, lastMs = 0 } = events.at(-1) ?? {}
  const warnings = events.filter(({ isWarning }) => isWarning).map(({ count }) => count)
  return {
    key,
    cluster,
    object: regarding,
    events,
    warnings: warnings.reduce((sum, count) => sum + count, 0),
    lastMs,
  }
}

const NO_OBJECT: ObjectName = { kind: '', namespace: '', name: '', uid: '' }

export function sortedLanes(lanes: readonly Lane[], sort: LaneSort): readonly Lane[] {
  const newest = (a: Lane, b: Lane): number => b.lastMs - a.lastMs || byName(a, b)
  switch (sort) {
    case 'newest':
      return lanes.toSorted(newest)
    case 'warnings':
      return lanes.toSorted((a, b) => b.warnings - a.warnings || newest(a, b))
    case 'name':
      return lanes.toSorted(byName)
  }
}

function byName(a: Lane, b: Lane): number {
  const nameOf = ({ object, cluster }: Lane): readonly string[] => [
    object.namespace,
    object.kind,
    object.name,
    cluster,
  ]
  const [left, right] = [nameOf(a), nameOf(b)]
  for (const [index, text] of left.entries()) {
    const other = right[index] ?? ''
    if (text !== other) return text < other ? -1 : 1
  }
  return 0
}

/** A lane in words: `12 events, 3 Warnings, last BackOff at 2026-11-16 03:12:24`. */
export function laneSummary({ events, lastMs }: Lane): string {
  const warnings = events.filter(({ isWarning }) => isWarning).length
  const last = events.at(-1)?.reason ?? ''
  const parts = [counted(events.length, 'event'), counted(warnings, 'Warning')]
  return `${parts.join(', ')}, last ${last} at ${localTime(lastMs)}`
}

/** An event in words, for screen readers. */
export function eventSummary(row: EventRow): string {
  const { count, firstMs, lastMs, type, reason } = row
  const times = count === 1 ? '' : `, ${count} times${overText(lastMs - firstMs)}`
  return `${type} ${reason}${times}, ${localTime(lastMs)}`
}
