import type { InputFile } from '../engine/protocol.ts'
import { parquetSql } from './parquet-source.ts'
import type { SqlValues } from './sql-values.ts'

/** A row of a file. */
export interface RowPlace {
  readonly file: InputFile
  /** Its number in the file. */
  readonly row: number
}

/**
 * These columns of these rows, and `position`, their index. A list of constants for each file is
 * compared with the bounds of row groups, as a join with the numbers is not: others are not read.
 */
export function numberedRowsSql(
  places: readonly RowPlace[],
  columns: readonly string[],
  values: SqlValues,
): string {
  const byFile = [...Map.groupBy(places.entries(), ([, { file }]) => file)]
  const parts = byFile.map(([file, rows], number) => {
    const wanted = rows.map(([, { row }]) => Math.trunc(row))
    return `SELECT ${number} AS file_number, file_row_number AS row_number, ${columns.join()}
      FROM ${parquetSql([file], values)} WHERE file_row_number IN (${wanted.join()})`
  })
  const numbers = byFile.flatMap(([, rows], number) => rows.map(() => number))
  const known = byFile.flatMap(([, rows]) => rows)
  return `
    SELECT * EXCLUDE (file_number, row_number) FROM (${parts.join(' UNION ALL ')}) JOIN (
      SELECT unnest(${values.integers(numbers)}) AS file_number,
        unnest(${values.integers(known.map(([, { row }]) => row))}) AS row_number,
        unnest(${values.integers(known.map(([position]) => position))}) AS position
    ) USING (file_number, row_number)`
}
