import { DuckDBBlobValue, type DuckDBConnection } from '@duckdb/node-api'
import type { ArchivedEvent } from '../engine/protocol.ts'
import type { Candidate } from './candidates.ts'
import { numberedRowsSql } from './numbered-rows.ts'
import { SqlValues } from './sql-values.ts'

/** Returns fewer than given when all would have more than `bytesMax` bytes, but at least one. */
export async function readBodies(
  connection: DuckDBConnection,
  rows: readonly Candidate[],
  bytesMax: number,
): Promise<readonly ArchivedEvent[]> {
  if (rows.length === 0) return []
  const values = new SqlValues()
  const sql = `
    SELECT position, encode(json), trailer, epoch_ms(written) FROM (
      SELECT *, sum(strlen(json)) OVER (ORDER BY position) AS bytes
      FROM (${numberedRowsSql(rows, ['json', 'trailer', 'written'], values)})
    )
    WHERE bytes <= ${Math.trunc(bytesMax)} OR position = 0 ORDER BY position`
  const read = await values.read(connection, sql)
  return read.getRows().map(([position, json, trailer, writtenAtMs]) => {
    const { key, uid, version, lastSeenMs } = rows[Number(position)] as Candidate
    const body = { json: bytesOf(json), trailer: bytesOf(trailer) }
    return { key, uid, ...body, version, writtenAtMs: Number(writtenAtMs), lastSeenMs }
  })
}

function bytesOf(value: unknown): Uint8Array {
  return value instanceof DuckDBBlobValue ? value.bytes : new Uint8Array(0)
}
