/**
 * Merges files of one cluster and day into one with the newest row of each event. Most events have
 * one row, so only the others are grouped; all of it may be larger than the memory.
 */
import type { DuckDBConnection } from '@duckdb/node-api'
import { PERIODS_MS } from '../../storage/occurrences.ts'
import { EVENT_COLUMNS, ROW_SPANS_MAX } from './columns.ts'
import { quoted } from './duckdb.ts'
import { publish, writeEventFile } from './event-file.ts'
import type { MergeArgument, Merged, Removal } from './protocol.ts'

/** A condition on the columns of a file, and the values of its placeholders. */
export interface Where {
  readonly sql: string
  readonly values: {
    run(connection: DuckDBConnection, sql: string): Promise<unknown>
  }
}

/** Exactly the rows that are removed. */
export type RemovalFilter = (removals: readonly Removal[]) => Where

export interface MergeOptions {
  /** Where the file is written. */
  readonly folder: string
  readonly removalFilter: RemovalFilter
  readonly signal: AbortSignal
}

/** Names a row. */
const PLACE = 'filename, file_row_number'

export async function mergeFiles(
  connection: DuckDBConnection,
  { day, inputs, removals }: MergeArgument,
  { folder, removalFilter, signal }: MergeOptions,
): Promise<Merged> {
  const events = readEvents([...new Set(inputs.map(({ path }) => path))])
  try {
    await connection.run(`CREATE OR REPLACE TEMP TABLE removed (${PLACE_COLUMNS})`)
    if (removals.length > 0) {
      const { sql, values } = removalFilter(removals)
      await values.run(
        connection,
        `INSERT INTO removed SELECT ${PLACE} FROM ${events} WHERE ${sql}`,
      )
      signal.throwIfAborted()
    }
    const counted = await connection.runAndReadAll('SELECT count(*) FROM removed')
    const removed = Number(counted.value(0, 0))
    const kept = removed === 0 ? events : `${events} ANTI JOIN removed USING (${PLACE})`
    await connection.run(repeatedEvents(kept))
    signal.throwIfAborted()
    await compactLists(connection, signal)
    signal.throwIfAborted()
    const sequence = Math.max(...inputs.map(({ file }) => file.sequences[1]))
    const rows = { ...day, select: newestRows(kept), sequence }
    const written = await writeEventFile(connection, rows, folder)
    if (written !== undefined) await publish([written])
    return { written, removedRows: removed }
  } finally {
    for (const table of ['removed', 'repeated', 'shorter']) {
      await connection.run(`DROP TABLE IF EXISTS ${table}`)
    }
  }
}

const PLACE_COLUMNS = 'filename VARCHAR, file_row_number BIGINT'

/** A file that was written before a column existed has none. */
function readEvents(paths: readonly string[]): string {
  const list = paths.map(quoted).join(', ')
  return `read_parquet([${list}], filename = true, file_row_number = true, union_by_name = true)`
}

/** The events with several rows: the place of the newest row, and the occurrences of all of them. */
function repeatedEvents(kept: string): string {
  return `
    CREATE OR REPLACE TEMP TABLE repeated AS
    SELECT uid, bool_and(again) AS again,
      list(filename ORDER BY sequence DESC, resource_version DESC)[1] AS filename,
      list(file_row_number ORDER BY sequence DESC, resource_version DESC)[1] AS file_row_number,
      flatten(list(occurrences ORDER BY sequence, resource_version)) AS occurrences
    FROM ${kept}
    WHERE uid IN (SELECT uid FROM ${kept} GROUP BY uid HAVING count(*) > 1)
    GROUP BY uid`
}

function newestRows(kept: string): string {
  const columns = EVENT_COLUMNS.map(({ name, type }) => {
    const isJoined = name === 'again' || name === 'occurrences'
    const value = isJoined ? `coalesce(repeated.${name}, event.${name})` : `event.${name}`
    // Times of files are read as microseconds.
    return isJoined || type === 'TIMESTAMP_MS' ? `CAST(${value} AS ${type}) AS ${name}` : value
  })
  return `
    SELECT ${columns.join(', ')}
    FROM (SELECT * FROM ${kept}) AS event LEFT JOIN repeated ON event.uid = repeated.uid
    WHERE repeated.uid IS NULL OR (event.filename = repeated.filename
      AND event.file_row_number = repeated.file_row_number)`
}

/** Events that were observed all day have more spans than a row may. */
async function compactLists(connection: DuckDBConnection, signal: AbortSignal): Promise<void> {
  for (const periodMs of PERIODS_MS) {
    signal.throwIfAborted()
    const long = await connection.runAndReadAll(`SELECT 1 FROM repeated WHERE ${IS_LONG} LIMIT 1`)
    if (long.currentRowCount === 0) return
    await connection.run(shorterLists(periodMs))
    await connection.run(`
      UPDATE repeated SET occurrences = shorter.occurrences FROM shorter
      WHERE repeated.uid = shorter.uid`)
  }
}

const IS_LONG = `len(occurrences) > ${ROW_SPANS_MAX}`

/** Spans that lie in one period become one, as in `compacted`. */
function shorterLists(periodMs: number): string {
  const periodOf = (time: string) =>
    Number.isFinite(periodMs) ? `epoch_ms(${time}) // ${periodMs}` : '0'
  return `
    CREATE OR REPLACE TEMP TABLE shorter AS
    SELECT uid, list({first: first, last: last, count: count, is_open: is_open} ORDER BY last)
      AS occurrences
    FROM (
      SELECT uid, min(span.first) AS first, max(span.last) AS last, sum(span.count)::BIGINT AS count,
        arg_min(span.is_open, span.first) AS is_open
      FROM (
        SELECT uid, unnest(occurrences) AS span, generate_subscripts(occurrences, 1) AS position
        FROM repeated WHERE ${IS_LONG}
      )
      GROUP BY uid, ${periodOf('span.first')},
        if(${periodOf('span.first')} = ${periodOf('span.last')}, 0, position)
    )
    GROUP BY uid`
}
