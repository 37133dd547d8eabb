/** Compares files with what the catalogue says of them. */
import type { DuckDBConnection } from '@duckdb/node-api'
import type { StoredFile } from '../manifest.ts'
import { EVENT_COLUMNS, ROLLUP_COLUMNS } from './columns.ts'
import { quoted } from './duckdb.ts'
import { digestOf, factsOf } from './event-file.ts'
import type { InputFile } from './protocol.ts'

/** What is wrong with a file and its rollup. */
export async function checkFile(
  connection: DuckDBConnection,
  { path, rollupPath, file }: InputFile,
): Promise<readonly string[]> {
  const faults = [
    ...(await bytesFaults(path, file)),
    ...(await bytesFaults(rollupPath, file.rollup)),
  ]
  try {
    faults.push(...(await contentFaults(connection, { path, rollupPath, file })))
  } catch (error) {
    faults.push(error instanceof Error ? error.message : String(error))
  }
  return faults
}

async function bytesFaults(path: string, { name, bytes, sha256 }: StoredFile): Promise<string[]> {
  try {
    const found = await digestOf(path)
    if (found.bytes !== bytes) return [`${name} has ${found.bytes} bytes, not ${bytes}`]
    return found.sha256 === sha256 ? [] : [`${name} has another checksum`]
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)]
  }
}

async function contentFaults(
  connection: DuckDBConnection,
  { path, rollupPath, file }: Pick<InputFile, 'path' | 'rollupPath' | 'file'>,
): Promise<string[]> {
  const events = `read_parquet(${quoted(path)})`
  const rollup = `read_parquet(${quoted(rollupPath)})`
  // A hash of all columns reads all of them.
  const read = async (
    from: string,
    columns: readonly { readonly name: string }[],
    sums: string,
  ) => {
    const names = columns.map(({ name }) => name).join(', ')
    const sql = `SELECT bit_xor(hash(${names})), ${sums} FROM ${from}`
    return (await connection.runAndReadAll(sql)).getRowsJson()[0]?.slice(1).map(String) ?? []
  }
  const [uids, occurrences, events_] = await read(
    events,
    EVENT_COLUMNS,
    `count(DISTINCT uid), sum(list_sum(list_transform(occurrences, lambda span: span.count))),
      count(*) FILTER (NOT again)`,
  )
  const sums = await read(rollup, ROLLUP_COLUMNS, 'sum(occurrences), sum(events)')
  const facts = await factsOf(connection, path)
  const faults: string[] = []
  if (facts === undefined) return ['it has no rows']
  for (const [name, value] of Object.entries(facts)) {
    const expected = JSON.stringify(file[name as keyof typeof facts])
    const found = JSON.stringify(value)
    if (found !== expected) faults.push(`${name} is ${found}, not ${expected}`)
  }
  if (uids !== String(facts.rows)) faults.push(`${facts.rows} rows are of ${uids} events`)
  if (sums.join() !== [occurrences, events_].join()) {
    faults.push(`the rollup counts ${sums.join(' and ')}, not ${occurrences} and ${events_}`)
  }
  return faults
}
