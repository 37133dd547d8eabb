/**
 * The files of the simulated archive, and how they are written and merged: as the process with DuckDB does it
 * (src/history/engine), without DuckDB. What is in the row of a change is decided by production code.
 */
import { type DayNames, rowOf } from '../../../src/history/engine/archived-row.ts'
import type { ArchivedChange, Removal } from '../../../src/history/engine/protocol.ts'
import type { EventKey } from '../../../src/storage/storage.ts'

/** An event and day, with the newest state of that day. */
export interface Row {
  readonly uid: string
  readonly key: EventKey
  readonly version: number
  /** The number of the segment that had it first. */
  readonly sequence: number
  /** An earlier state of the event may be in another row. */
  readonly isAgain: boolean
  readonly type: string
  readonly lastSeenMs: number
  /** As often as the event was observed until then, in all rows of it. */
  readonly count: number
  /** The occurrences that no earlier row has, span by span. */
  readonly spans: readonly number[]
}

/** The content of a file with events. */
export interface RowFile {
  readonly cluster: string
  readonly date: string
  readonly rows: readonly Row[]
}

/** The content of the file beside it. */
export interface RollupFile {
  readonly occurrences: number
}

/** The row of a change, in a segment whose number is not known yet. */
export function segmentRow(
  change: ArchivedChange,
  days: DayNames,
): Row & { readonly date: string } {
  const { uid, key, date, version, isAgain, fields, spans } = rowOf(change, days)
  return {
    uid,
    key,
    date,
    version,
    sequence: 0,
    isAgain,
    type: fields.type,
    lastSeenMs: fields.lastSeenMs,
    count: fields.occurrences,
    spans: spans.map(({ count }) => count),
  }
}

/** Two states of one event and day, in any order. */
export function mergedRow(one: Row, other: Row): Row {
  const [older, newer] = isNewer(one, other) ? [other, one] : [one, other]
  return {
    ...newer,
    isAgain: one.isAgain && other.isAgain,
    spans: [...older.spans, ...newer.spans],
  }
}

/** Of two rows of an event, the newer is of a later segment. */
function isNewer(one: Row, other: Row): boolean {
  return (one.sequence - other.sequence || one.version - other.version) > 0
}

/** Whether the policy removes the row. */
export function isRemoved(row: Row, removals: readonly Removal[]): boolean {
  const removal = removals.find(({ requires }) => hasAll(row, requires))
  return removal !== undefined && row.lastSeenMs < removal.seenBeforeMs
}

/** As far as the policies of the simulation require anything. */
function hasAll(row: Row, { namespaces, values = [] }: Removal['requires']): boolean {
  const isIn = namespaces?.some(({ text }) => text === row.key.namespace) ?? true
  return isIn && values.every(({ patterns }) => patterns.some(({ text }) => text === row.type))
}
