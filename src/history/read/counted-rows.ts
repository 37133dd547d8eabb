/**
 * The rows with occurrences in a window, and how many. In files that are in the window as a whole, the
 * first rows of events are too, if the event began in it: their number is that of the event, and the
 * list of their occurrences is not read. The other rows are few, and are found by conditions that
 * DuckDB compares with the minimum and maximum of row groups. Files at the ends of the window are read
 * once, with all lists: nearly every piece of them has rows of either kind.
 */
import type { TimeWindow } from '../../storage/summary.ts'
import type { InputFile } from '../engine/protocol.ts'
import type { Bounds } from '../manifest.ts'
import { type WindowSql, windowCountSql, windowSql } from './occurrence-sql.ts'
import { parquetSql } from './parquet-source.ts'
import { type FilteredRows, rowFilter } from './requires-sql.ts'
import type { SqlValues } from './sql-values.ts'

export interface CountedQuery extends FilteredRows {
  /** Those that may have occurrences within the window. */
  readonly files: readonly InputFile[]
  readonly window: TimeWindow
  /** Only events that began before the window. Default: all. */
  readonly isEarlier?: boolean | undefined
  /** Only rows that were last seen then or later. Default: any. */
  readonly seenSinceMs?: number | undefined
}

/** Rows of some of the files, as a relation. */
export interface CountedPart {
  readonly files: readonly InputFile[]
  /**
   * Has the columns that were asked for, and `occurred`, the number of occurrences within the window,
   * which may be 0; `last_ms`, when the last of them was; and `is_estimated`. A row of a file may be
   * several of these, one for each span.
   */
  readonly sql: string
}

/** Expressions of the columns of these files. */
export type ColumnsOf = (part: RowPart, files: readonly InputFile[]) => readonly string[]

/**
 * `first`: first rows of events that began in the window and were last seen in it, each once. `later`:
 * other rows of events that began in the window. `earlier`: events that began before it. `any`: all.
 */
export type RowPart = 'first' | 'later' | 'earlier' | 'any'

interface PartSql {
  readonly part: RowPart
  readonly where: readonly string[]
  readonly files: readonly InputFile[]
}

/** Without rows, there are no parts. */
export function countedParts(
  query: CountedQuery,
  columnsOf: ColumnsOf,
  values: SqlValues,
): readonly CountedPart[] {
  const { window, seenSinceMs } = query
  const also = seenSinceMs === undefined ? [] : [`last_seen >= ${values.time(seenSinceMs)}`]
  const needed = partsOf(query, values).filter(({ files }) => files.length > 0)
  return needed.flatMap(({ part, files, where }) => {
    const select = part === 'first' ? firstSql : spansSql(window, values)
    const columns = columnsOf(part, files)
    const source = parquetSql(files, values)
    const { branches } = rowFilter(query, values, [...where, ...also])
    return branches.map((branch) => ({
      files,
      sql: select(columns, `FROM ${source} WHERE ${branch}`),
    }))
  })
}

function partsOf(
  { files, window, isEarlier }: CountedQuery,
  values: SqlValues,
): readonly PartSql[] {
  const { since, until } = boundsSql(window, values)
  const seen = since === undefined ? [] : [`last_seen >= ${since}`]
  const began = since === undefined ? [] : [`first_seen >= ${since}`]
  // As in memory, an event that was last seen before the window has no occurrences in it.
  const mayOccur = [
    ...seen,
    ...(until === undefined ? [] : [`(first_seen < ${until} OR last_seen < ${until})`]),
  ]
  const earlier: PartSql = {
    part: 'earlier',
    where: [`first_seen < ${since}`, ...mayOccur],
    files: since === undefined ? [] : files,
  }
  if (isEarlier === true) return [earlier]
  const inside = files.filter(({ file }) => isInside(file.seen, window))
  return [
    { part: 'first', where: ['NOT again', ...began], files: inside },
    { part: 'later', where: ['again', ...began], files: inside },
    { ...earlier, files: since === undefined ? [] : inside },
    { part: 'any', where: mayOccur, files: files.filter((file) => !inside.includes(file)) },
  ]
}

function isInside([from, to]: Bounds<number>, { sinceMs, untilMs }: TimeWindow): boolean {
  return (sinceMs === undefined || from >= sinceMs) && (untilMs === undefined || to < untilMs)
}

/** Placeholders of times. */
function boundsSql({ sinceMs, untilMs }: TimeWindow, values: SqlValues): WindowSql {
  return {
    since: sinceMs === undefined ? undefined : values.time(sinceMs),
    until: untilMs === undefined ? undefined : values.time(untilMs),
  }
}

type Select = (columns: readonly string[], from: string) => string

const firstSql: Select = (columns, from) => {
  const counted = ['count AS occurred', 'epoch_ms(last_seen) AS last_ms', 'false AS is_estimated']
  return `SELECT ${[...columns, ...counted].join()} ${from}`
}

/** As in memory, all occurrences of an event that began and was last seen in the window are in it. */
function spansSql(window: TimeWindow, values: SqlValues): Select {
  const { count, lastMs, isEstimated } = windowCountSql('span', windowSql(window, values))
  const { since, until } = boundsSql(window, values)
  const isWhole = [
    'NOT again',
    ...(since === undefined ? [] : [`last_seen >= ${since} AND first_seen >= ${since}`]),
    ...(until === undefined ? [] : [`last_seen < ${until}`]),
  ]
  const read = [
    'unnest(occurrences) AS span',
    `${isWhole.join(' AND ')} AS is_whole`,
    'epoch_ms(last_seen) AS seen_ms',
  ]
  return (columns, from) => `
    SELECT * EXCLUDE (span, is_whole, seen_ms), if(is_whole, span.count, ${count}) AS occurred,
      if(is_whole, seen_ms, ${lastMs}) AS last_ms, NOT is_whole AND ${isEstimated} AS is_estimated
    FROM (SELECT ${[...columns, ...read].join()} ${from})`
}
