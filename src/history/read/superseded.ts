/**
 * An event appears in a list once, with its newest state in the window of the list. A state that was
 * followed by another one on the same day is history of that day, and appears nowhere.
 */
import type { DuckDBConnection } from '@duckdb/node-api'
import type { TimeWindow } from '../../storage/summary.ts'
import type { InputFile } from '../engine/protocol.ts'
import type { Bounds } from '../manifest.ts'
import { compareBytes } from './byte-order.ts'
import { type Candidate, seenConditions } from './candidates.ts'
import { clusterSql, parquetSql } from './parquet-source.ts'
import { isWithin } from './pruned-files.ts'
import { SqlValues } from './sql-values.ts'

/** More values are not compared with the Bloom filters of row groups. */
const LISTED_MAX = 64

export interface ListedFiles {
  readonly files: readonly InputFile[]
  readonly window: TimeWindow
}

/** The candidates that no newer state of the same event replaces, in the same order. */
export async function withoutSuperseded(
  connection: DuckDBConnection,
  { files, window }: ListedFiles,
  candidates: readonly Candidate[],
): Promise<readonly Candidate[]> {
  const newer = filesWithNewer(files, window, candidates)
  if (newer.length === 0) return candidates
  const values = new SqlValues()
  const dates = values.texts(newer.map(({ date }) => date))
  const inWindow = seenConditions(window, values)
  const sql = `
    WITH known AS (
      SELECT unnest(${values.texts(candidates.map(({ uid }) => uid))}) AS uid,
        unnest(${values.texts(candidates.map(({ file }) => file.cluster))}) AS cluster,
        unnest(${values.texts(candidates.map(({ file }) => file.date))}) AS date,
        unnest(${values.integers(candidates.map(({ sequence }) => sequence))}) AS sequence,
        unnest(${values.integers(candidates.map(({ version }) => version))}) AS version,
        unnest(range(${candidates.length})) AS position
    ),
    newer AS (
      SELECT uid, sequence, resource_version AS version, last_seen,
        ${clusterSql(newer, values)} AS cluster, ${dates}[file_index::BIGINT + 1] AS date
      FROM ${parquetSql(newer, values)}
      WHERE again
        AND ${listed('namespace', candidates, ({ key }) => key.namespace, values)}
        AND ${listed('regarding_kind', candidates, ({ kind }) => kind, values)}
        AND ${listed('regarding_name', candidates, ({ object }) => object, values)}
    )
    SELECT DISTINCT position FROM newer JOIN known USING (uid, cluster)
    WHERE (newer.sequence > known.sequence
        OR (newer.sequence = known.sequence AND newer.version > known.version))
      AND (newer.date = known.date OR (${['true', ...inWindow].join(' AND ')}))`
  const found = await values.read(connection, sql)
  const superseded = new Set(found.getRows().map(([position]) => Number(position)))
  return candidates.filter((_, position) => !superseded.has(position))
}

/** Neither name has a slash. */
function folderOf({ cluster, date }: InputFile): string {
  return `${cluster}/${date}`
}

/** Namespace and object of an event never change: they say where its other states can be. */
function listed(
  column: string,
  candidates: readonly Candidate[],
  read: (candidate: Candidate) => string,
  values: SqlValues,
): string {
  const found = [...new Set(candidates.map(read))]
  if (found.length > LISTED_MAX) return 'true'
  return `${column} IN (${found.map((value) => values.text(value)).join()})`
}

function filesWithNewer(
  files: readonly InputFile[],
  window: TimeWindow,
  candidates: readonly Candidate[],
): readonly InputFile[] {
  if (candidates.length === 0) return []
  const folders = new Set(candidates.map(({ file }) => folderOf(file)))
  const clusters = new Set(candidates.map(({ key }) => key.cluster))
  const sequenceMin = Math.min(...candidates.map(({ sequence }) => sequence))
  const namespaces = boundsOf(candidates.map(({ key }) => key.namespace))
  const kinds = boundsOf(candidates.map(({ kind }) => kind))
  const objects = boundsOf(candidates.map(({ object }) => object))
  const found = files.filter(
    (input) =>
      input.file.sequences[1] >= sequenceMin &&
      clusters.has(input.cluster) &&
      (folders.has(folderOf(input)) || isWithin(input.file.seen, window)) &&
      overlap(input.file.namespaces, namespaces) &&
      overlap(input.file.kinds, kinds) &&
      overlap(input.file.objects, objects),
  )
  // A file has one row of each event.
  const [only] = found
  return found.length === 1 && candidates.every(({ file }) => file === only) ? [] : found
}

function boundsOf(texts: readonly string[]): Bounds<string> {
  const sorted = [...new Set(texts)].sort(compareBytes)
  return [sorted[0] ?? '', sorted.at(-1) ?? '']
}

function overlap(one: Bounds<string>, other: Bounds<string>): boolean {
  return compareBytes(one[0], other[1]) <= 0 && compareBytes(other[0], one[1]) <= 0
}
