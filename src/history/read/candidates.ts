/** Rows that may be on a page, without their JSON: the narrow columns are a tenth of a file. */
import type { DuckDBConnection } from '@duckdb/node-api'
import type { EventKey } from '../../storage/storage.ts'
import type { TimeWindow } from '../../storage/summary.ts'
import type { InputFile } from '../engine/protocol.ts'
import { clusterSql, isOneCluster, parquetSql } from './parquet-source.ts'
import { type FilteredRows, rowFilter } from './requires-sql.ts'
import { SqlValues } from './sql-values.ts'

export interface Candidate {
  readonly file: InputFile
  /** The number of the row in the file. */
  readonly row: number
  readonly key: EventKey
  readonly uid: string
  readonly lastSeenMs: number
  readonly sequence: number
  readonly version: number
  /** Of the regarded object. */
  readonly kind: string
  readonly object: string
}

/** A row that a page begins after. */
export interface Position {
  readonly key?: EventKey | undefined
  /** Undefined: after all events with that key. */
  readonly uid?: string | undefined
  /** Undefined in the order of keys. */
  readonly seenMs?: number | undefined
}

export interface CandidateQuery extends FilteredRows {
  /** Of one cluster in the order of keys. */
  readonly files: readonly InputFile[]
  readonly order: 'key' | 'oldest' | 'newest'
  readonly after: Position | undefined
  readonly max: number
  /** Only rows that were last seen within it. Default: any. */
  readonly seen?: TimeWindow | undefined
  /** Only rows in these namespaces. */
  readonly namespaces?: readonly string[] | undefined
}

const COLUMNS = [
  'last_seen',
  'namespace',
  'name',
  'uid',
  'sequence',
  'resource_version',
  'regarding_kind',
  'regarding_name',
]

/** The first rows in that order, each state of an event being one. */
export async function readCandidates(
  connection: DuckDBConnection,
  query: CandidateQuery,
): Promise<readonly Candidate[]> {
  const { files, order, max, namespaces } = query
  if (files.length === 0 || max < 1) return []
  const values = new SqlValues()
  const source = parquetSql(files, values)
  const cluster = clusterSql(files, values)
  const { branches } = rowFilter(query, values, [
    ...(namespaces === undefined
      ? []
      : [`namespace IN (${namespaces.map((namespace) => values.text(namespace)).join()})`]),
    ...seenConditions(query.seen ?? {}, values),
    ...positionConditions(query, cluster, values),
  ])
  const columns = ['file_index', 'file_row_number', ...COLUMNS].join()
  const rows = branches.map((where) => `SELECT ${columns} FROM ${source} WHERE ${where}`)
  const direction = order === 'newest' ? ' DESC' : ''
  const ordered = [
    ...orderOf(query, cluster).map((sql) => `${sql}${direction}`),
    // Of states at one position the newest comes first: a page that continues behind it misses none.
    'sequence DESC',
    'resource_version DESC',
  ]
  const sql = `SELECT * REPLACE (epoch_ms(last_seen) AS last_seen) FROM (${rows.join(' UNION ALL ')})
    ORDER BY ${ordered.join()} LIMIT ${Math.trunc(max)}`
  const found = await values.read(connection, sql)
  return found.getRows().map((row) => {
    const [index, number, lastSeenMs, namespace, name, uid, sequence, version, kind, object] = row
    const file = files[Number(index)] as InputFile
    return {
      file,
      row: Number(number),
      key: { cluster: file.cluster, namespace: String(namespace), name: String(name) },
      uid: String(uid),
      lastSeenMs: Number(lastSeenMs),
      sequence: Number(sequence),
      version: Number(version),
      kind: String(kind),
      object: String(object),
    }
  })
}

/** Keys are in the order of the bytes of `cluster/namespace/name`, in which `a-b/` is before `a/`. */
function orderOf({ order, namespace, files }: CandidateQuery, cluster: string): string[] {
  return [
    ...(order === 'key' ? [] : ['last_seen']),
    ...(isOneCluster(files) ? [] : [`${cluster} || '/'`]),
    ...(namespace === undefined ? ["namespace || '/'"] : []),
    'name',
    'uid',
  ]
}

export function seenConditions(
  { sinceMs, untilMs }: TimeWindow,
  values: SqlValues,
): readonly string[] {
  return [
    ...(sinceMs === undefined ? [] : [`last_seen >= ${values.time(sinceMs)}`]),
    ...(untilMs === undefined ? [] : [`last_seen < ${values.time(untilMs)}`]),
  ]
}

function positionConditions(
  { after, order }: CandidateQuery,
  cluster: string,
  values: SqlValues,
): readonly string[] {
  if (after === undefined) return []
  const { key, uid, seenMs } = after
  const isBehind = order === 'newest' ? '<' : '>'
  const time = seenMs === undefined ? undefined : values.time(seenMs)
  if (key === undefined) {
    return time === undefined ? [] : [`last_seen ${order === 'newest' ? '<' : '>='} ${time}`]
  }
  const path = `${cluster} || '/' || namespace || '/' || name`
  const known = values.text(`${key.cluster}/${key.namespace}/${key.name}`)
  const behindKey =
    uid === undefined
      ? `${path} ${isBehind} ${known}`
      : `(${path} ${isBehind} ${known} OR (${path} = ${known} AND uid ${isBehind} ${values.text(uid)}))`
  if (time === undefined) return [behindKey]
  return [`last_seen ${isBehind}= ${time}`, `(last_seen ${isBehind} ${time} OR ${behindKey})`]
}
