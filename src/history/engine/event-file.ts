/** Writes files of events with their rollups, and tells what is in them. */
import { createHash, randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { DuckDBConnection } from '@duckdb/node-api'
import { type Bounds, dayFolder, type EventFile, rollupFolder } from '../manifest.ts'
import { SORT_COLUMNS } from './columns.ts'
import { PARTIAL, quoted } from './duckdb.ts'
import type { WrittenFile } from './protocol.ts'
import { rollupOf } from './rollup-sql.ts'

/**
 * Groups of 8,192 rows take 2 % more bytes than these, and a query of one object reads 33,000 rows
 * instead of 53,000; but the footer, which every query reads, is twice as long: 0.75 bytes a row.
 */
const GROUP_ROWS = 16_384
/** A group is in memory as a whole while it is written. Groups of usual events are smaller. */
const GROUP_BYTES_MAX = '32 MiB'
/** Of the levels of zstd, the first is the fastest by far, and its files are hardly larger. */
const OPTIONS = 'FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1'
/** Of the shortened bounds in the catalogue. */
const BOUND_LENGTH_MAX = 128

export interface EventRows {
  readonly cluster: string
  readonly date: string
  /** Selects the rows, with the columns of a file, in any order. */
  readonly select: string
  /** For the name of the file. */
  readonly sequence: number
}

/** What a file of events contains. */
export type EventFacts = Pick<
  EventFile,
  'rows' | 'sequences' | 'seen' | 'occurred' | 'namespaces' | 'kinds' | 'objects'
>

/**
 * Undefined when there are no rows. Until `publish`, the files have a suffix and go with the process.
 * Leaves nothing behind if it fails.
 */
export async function writeEventFile(
  connection: DuckDBConnection,
  { cluster, date, select, sequence }: EventRows,
  folder: string,
): Promise<WrittenFile | undefined> {
  const id = `${String(sequence).padStart(10, '0')}-${randomUUID().slice(-12)}`
  const path = join(folder, `${id}.parquet`)
  const rollupPath = join(folder, `${id}.rollup.parquet`)
  try {
    const target = quoted(path + PARTIAL)
    const sorted = `${select} ORDER BY ${SORT_COLUMNS.join(', ')}`
    const groups = `ROW_GROUP_SIZE ${GROUP_ROWS}, ROW_GROUP_SIZE_BYTES '${GROUP_BYTES_MAX}'`
    await connection.run(`COPY (${sorted}) TO ${target} (${OPTIONS}, ${groups})`)
    const facts = await factsOf(connection, path + PARTIAL)
    if (facts === undefined) {
      await discard([{ path, rollupPath }])
      return undefined
    }
    const rollup = rollupOf(`read_parquet(${target})`)
    await connection.run(`COPY (${rollup}) TO ${quoted(rollupPath + PARTIAL)} (${OPTIONS})`)
    const day = { cluster, date }
    const rollupDigest = await digestOf(rollupPath + PARTIAL)
    const file: EventFile = {
      name: `${dayFolder(day)}/${id}.parquet`,
      ...(await digestOf(path + PARTIAL)),
      ...facts,
      rollup: { name: `${rollupFolder(day)}/${id}.parquet`, ...rollupDigest },
    }
    return { cluster, date, path, rollupPath, file }
  } catch (error) {
    await discard([{ path, rollupPath }])
    throw error
  }
}

type Paths = Pick<WrittenFile, 'path' | 'rollupPath'>

/** From now on, the files are the server's. */
export async function publish(files: readonly Paths[]): Promise<void> {
  for (const path of pathsOf(files)) await rename(path + PARTIAL, path)
}

/** Removes files that were not published. */
export async function discard(files: readonly Paths[]): Promise<void> {
  for (const path of pathsOf(files)) await rm(path + PARTIAL, { force: true })
}

function pathsOf(files: readonly Paths[]): readonly string[] {
  return files.flatMap(({ path, rollupPath }) => [path, rollupPath])
}

export async function digestOf(path: string): Promise<{ bytes: number; sha256: string }> {
  const hash = createHash('sha256')
  let bytes = 0
  for await (const chunk of createReadStream(path)) {
    hash.update(chunk)
    bytes += chunk.length
  }
  return { bytes, sha256: hash.digest('hex') }
}

/** Of a file of events, from its columns. Undefined when it has no rows. */
export async function factsOf(
  connection: DuckDBConnection,
  path: string,
): Promise<EventFacts | undefined> {
  const reader = await connection.runAndReadAll(
    `SELECT count(*) AS rows,
        min(sequence) AS sequence_min, max(sequence) AS sequence_max,
        epoch_ms(min(last_seen)) AS seen_min, epoch_ms(max(last_seen)) AS seen_max,
        epoch_ms(min(list_min(list_transform(occurrences, lambda span: span.first)))) AS occurred_min,
        epoch_ms(max(list_max(list_transform(occurrences, lambda span: span.last)))) AS occurred_max,
        min(namespace) AS namespace_min, max(namespace) AS namespace_max,
        min(regarding_kind) AS kind_min, max(regarding_kind) AS kind_max,
        min(regarding_name) AS object_min, max(regarding_name) AS object_max
      FROM read_parquet(${quoted(path)})`,
  )
  const [facts] = reader.getRowObjects()
  if (facts === undefined || facts['rows'] === 0n) return undefined
  const numbers = (name: string): Bounds<number> => {
    return [Number(facts[`${name}_min`]), Number(facts[`${name}_max`])]
  }
  const texts = (name: string): Bounds<string> => {
    return [lowerBound(String(facts[`${name}_min`])), upperBound(String(facts[`${name}_max`]))]
  }
  const seen = numbers('seen')
  return {
    rows: Number(facts['rows']),
    sequences: numbers('sequence'),
    seen,
    // No row may have occurrences of its own.
    occurred: facts['occurred_min'] === null ? seen : numbers('occurred'),
    namespaces: texts('namespace'),
    kinds: texts('kind'),
    objects: texts('object'),
  }
}

/** Bounds in the order of UTF-8, in which DuckDB compares texts. They may be wider than the texts. */
export function lowerBound(text: string): string {
  return text.length <= BOUND_LENGTH_MAX ? text : startOf(text)
}

export function upperBound(text: string): string {
  return text.length <= BOUND_LENGTH_MAX ? text : `${startOf(text)}\u{10ffff}`
}

function startOf(text: string): string {
  const start = text.slice(0, BOUND_LENGTH_MAX)
  // The first half of a character alone is none.
  return start.isWellFormed() ? start : start.slice(0, -1)
}
