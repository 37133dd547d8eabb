/** The groups of a summary from the archive; runs in the process that reads. */
import type { DuckDBConnection, DuckDBValue } from '@duckdb/node-api'
import { beginningOf } from '../../lib/text/shortened.ts'
import { NOTE_MAX, type TimeWindow } from '../../storage/summary.ts'
import type { ArchivedGroup, GroupsQuery, GroupsResult, InputFile } from '../engine/protocol.ts'
import {
  type ColumnsOf,
  type CountedPart,
  type CountedQuery,
  countedParts,
  type RowPart,
} from './counted-rows.ts'
import { groupKeys } from './group-values.ts'
import { numberedRowsSql, type RowPlace } from './numbered-rows.ts'
import { clusterSql } from './parquet-source.ts'
import { prunedFiles } from './pruned-files.ts'
import { rowFilter } from './requires-sql.ts'
import { areInRollups, HOUR_MS, rollupSql } from './rollups.ts'
import { SqlValues } from './sql-values.ts'
import { isSteady } from './steady-fields.ts'

/** Up to so many rows, the uids of all events are compared; otherwise see `eventSql`. */
const COMPARED_ROWS_MAX = 2_000_000
/** Events of a group that were last seen at the same time, of which one is shown. */
const TIES_MAX = 100

export async function readGroups(
  connection: DuckDBConnection,
  query: GroupsQuery,
  comparedRowsMax: number = COMPARED_ROWS_MAX,
): Promise<GroupsResult> {
  const { isExact } = rowFilter(query, new SqlValues())
  const job = new GroupsJob(connection, query, comparedRowsMax)
  const { source } = job
  try {
    const hasGroups = await (source === 'rollups' ? job.countRollups() : job.countRows())
    if (!hasGroups) return { source, isExact, groups: [], hidden: 0 }
    return { source, isExact, ...(await job.groups(await job.samples())) }
  } finally {
    await connection.run('DROP TABLE IF EXISTS found_groups')
  }
}

/** What is shown of the event of a group that was seen last. */
interface Sample {
  /** Of the group. */
  readonly id: number
  readonly lastMs: number
  readonly note: string
  readonly workloadRule: string
}

/** The table `found_groups` has the keys and numbers of groups. */
class GroupsJob {
  readonly source: GroupsResult['source']
  readonly #connection: DuckDBConnection
  readonly #query: GroupsQuery
  readonly #isCompared: boolean
  /** The names of the keys. */
  readonly #keys: readonly string[]

  constructor(connection: DuckDBConnection, query: GroupsQuery, comparedRowsMax: number) {
    const { groupBy, requires, window, newSince = {}, rowsMax = 0 } = query
    this.#connection = connection
    this.#query = query
    this.#keys = groupKeys(groupBy, '').keys.map((_, index) => `key_${index}`)
    const rows = this.#filesIn(window).reduce((sum, { file }) => sum + file.rows, 0)
    this.#isCompared =
      rows <= comparedRowsMax || window.sinceMs === undefined || !isSteady(groupBy, requires)
    const bounds = [window.sinceMs, window.untilMs, newSince.sinceMs, newSince.untilMs]
    const times = bounds.filter((ms) => ms !== undefined)
    const isRolledUp = rows > rowsMax && areInRollups({ times, groupBy, requires })
    this.source = isRolledUp ? 'rollups' : 'rows'
  }

  /** Returns whether there are any groups. */
  async countRows(): Promise<boolean> {
    const { window, newSince } = this.#query
    const values = new SqlValues()
    const now = this.#partsIn({ window }, values, (part, files) => [
      `type = 'Warning' AS is_warning`,
      `hash(regarding_kind, regarding_namespace, regarding_name, ${clusterSql(files, values)}) AS object`,
      `epoch_ms(first_seen) AS first_ms`,
      ...this.#eventSql(part, values),
    ])
    const earlier =
      newSince === undefined ? [] : this.#partsIn({ window: newSince }, values, () => [])
    const rows = [
      ...now.map(({ sql }) => sql),
      ...earlier.map(
        ({ sql }) => `SELECT ${[...this.#keys, 'occurred AS before'].join()} FROM (${sql})`,
      ),
    ]
    return await this.#fill(rows, NUMBERS, values)
  }

  /** Events that began before the window are not in rollups, but are few. */
  async countRollups(): Promise<boolean> {
    const { window, newSince } = this.#query
    const values = new SqlValues()
    const hour = `if(occurrences > 0, epoch_ms(hour), NULL)`
    const now = [
      'occurrences AS occurred',
      'events AS began',
      `type = 'Warning' AS is_warning`,
      `${hour} AS first_ms`,
      `${hour} AS last_ms`,
    ]
    const started = this.#partsIn({ window, isEarlier: true }, values, () => [
      'hash(uid) AS event',
      'epoch_ms(first_seen) AS first_ms',
    ])
    const startedColumns = [
      ...this.#keys,
      'if(occurred > 0, event, NULL) AS event',
      'if(occurred > 0, first_ms, NULL) AS first_ms',
      'is_estimated',
    ]
    const rows = [
      ...this.#rollupsIn(window, now, values),
      ...(newSince === undefined
        ? []
        : this.#rollupsIn(newSince, ['occurrences AS before'], values)),
      ...started.map(({ sql }) => `SELECT ${startedColumns.join()} FROM (${sql})`),
    ]
    return await this.#fill(rows, ROLLUP_NUMBERS, values)
  }

  #rollupsIn(window: TimeWindow, columns: readonly string[], values: SqlValues): readonly string[] {
    const { sinceMs, untilMs } = window
    const files = this.#filesIn(window)
    if (files.length === 0) return []
    const { branches } = rowFilter(this.#query, values, [
      ...(sinceMs === undefined ? [] : [`hour >= ${values.time(sinceMs)}`]),
      ...(untilMs === undefined ? [] : [`hour < ${values.time(untilMs)}`]),
    ])
    const selected = [...this.#keyColumns(files, values), ...columns].join()
    const source = rollupSql(files, values)
    return branches.map((where) => `SELECT ${selected} FROM ${source} WHERE ${where}`)
  }

  async #fill(
    rows: readonly string[],
    numbers: readonly string[],
    values: SqlValues,
  ): Promise<boolean> {
    const { groupsMax, order } = this.#query
    if (rows.length === 0) return false
    const keys = this.#keys
    const first = order === 'newest' ? ['warnings > 0 DESC', 'first_ms DESC'] : []
    const ordered = [...first, 'occurrences DESC', 'before DESC', ...keys].join()
    await values.read(
      this.#connection,
      `CREATE OR REPLACE TEMP TABLE found_groups AS
        SELECT row_number() OVER (ORDER BY ${ordered}) AS id, count(*) OVER () AS total, *
        FROM (
          SELECT ${[...keys, ...numbers].join()}
          FROM (${[NO_ROWS, ...rows].join(' UNION ALL BY NAME ')})
          ${keys.length === 0 ? '' : `GROUP BY ${keys.join()}`} HAVING occurrences + before > 0
        )
        ORDER BY id LIMIT ${Math.trunc(groupsMax)}`,
    )
    return true
  }

  /**
   * `event` distinguishes events by their uids, which takes more time than all the rest. It is not
   * needed where each event that began in the window is counted in its first row, and not again.
   */
  #eventSql(part: RowPart, values: SqlValues): readonly string[] {
    const { sinceMs } = this.#query.window
    const isFirst = !this.#isCompared && part === 'first'
    const isCounted = `again AND first_seen >= ${values.time(sinceMs ?? 0)}`
    const event =
      this.#isCompared || part === 'earlier'
        ? 'hash(uid)'
        : part === 'any'
          ? `if(${isCounted}, NULL, hash(uid))`
          : 'NULL::UBIGINT'
    return [`${event} AS event`, `${isFirst} AS is_first`]
  }

  /** Finds the events that were seen last, in the files that have them. */
  async samples(): Promise<readonly Sample[]> {
    const { window } = this.#query
    const times = await this.#lastTimes()
    const [seenSinceMs] = times
    if (seenSinceMs === undefined) return []
    const lengthMs = this.source === 'rollups' ? HOUR_MS : 1
    const files = this.#filesIn(window).filter(
      ({ file: { seen } }) =>
        (window.untilMs !== undefined && seen[1] >= window.untilMs) ||
        (firstFrom(times, seen[0] - lengthMs + 1) ?? Number.POSITIVE_INFINITY) <= seen[1],
    )
    const read: (readonly InputFile[])[] = []
    const values = new SqlValues()
    const parts = this.#partsIn({ window, files, seenSinceMs }, values, (_, own) => [
      `${read.push(own) - 1} AS part`,
      'file_index',
      'file_row_number',
    ])
    if (parts.length === 0) return []
    const rows = parts.map(({ sql }) => sql).join(' UNION ALL ')
    const isSame = [
      ...this.#keys.map((key) => `found.${key} = seen.${key}`),
      'seen.last_ms >= found.last_ms',
    ]
    const found = await values.read(
      this.#connection,
      `SELECT id, seen.last_ms, part, file_index, file_row_number
        FROM found_groups AS found JOIN (${rows}) AS seen ON ${isSame.join(' AND ')}
        QUALIFY rank() OVER (PARTITION BY id ORDER BY seen.last_ms DESC) = 1
          AND row_number() OVER (PARTITION BY id ORDER BY seen.last_ms DESC) <= ${TIES_MAX}`,
    )
    const places = found.getRows().map(([id, lastMs, part, index, row]) => {
      const file = read[Number(part)]?.[Number(index)] as InputFile
      return { id: Number(id), lastMs: Number(lastMs), file, row: Number(row) }
    })
    return await this.#firstOf(places)
  }

  /** When the last occurrences of groups were, or the hours that have them; in order. */
  async #lastTimes(): Promise<readonly number[]> {
    const found = await this.#connection.runAndReadAll(
      'SELECT DISTINCT last_ms FROM found_groups WHERE last_ms IS NOT NULL ORDER BY last_ms',
    )
    return found.getRows().map(([ms]) => Number(ms))
  }

  /** Of the events of each group, that with the first key. */
  async #firstOf(places: readonly LastRow[]): Promise<readonly Sample[]> {
    if (places.length === 0) return []
    const values = new SqlValues()
    const columns = [
      ...['namespace', 'name', 'sequence', 'resource_version', 'workload_rule'],
      `left(note, ${NOTE_MAX + 1}) AS note`,
    ]
    const ids = values.integers(places.map(({ id }) => id))
    const clusters = values.texts(places.map(({ file }) => file.cluster))
    const found = await values.read(
      this.#connection,
      `SELECT position, note, workload_rule FROM (
          SELECT *, ${ids}[position + 1] AS id, ${clusters}[position + 1] AS cluster
          FROM (${numberedRowsSql(places, columns, values)})
        )
        QUALIFY row_number() OVER (PARTITION BY id ORDER BY cluster || '/', namespace || '/', name,
          sequence DESC, resource_version DESC) = 1`,
    )
    return found.getRows().map(([position, note, rule]) => {
      const { id, lastMs } = places[Number(position)] as LastRow
      const shown = beginningOf(String(note), NOTE_MAX)
      return { id, lastMs, note: shown, workloadRule: String(rule) }
    })
  }

  async groups(samples: readonly Sample[]): Promise<Pick<GroupsResult, 'groups' | 'hidden'>> {
    const { groupBy, newSince, bytesMax } = this.#query
    const { shown, textsOf } = groupKeys(groupBy, '')
    const found = await this.#connection.runAndReadAll(
      `SELECT id, total, occurrences, before, is_estimated, warnings, events, objects, first_ms,
        coalesce(last_ms, 0), ${shown.join()} FROM found_groups ORDER BY id`,
    )
    const byId = new Map(samples.map((sample) => [sample.id, sample]))
    const groups: ArchivedGroup[] = []
    let total = 0
    let bytes = 0
    for (const row of found.getRows()) {
      const [id, all, ...numbers] = row.slice(0, FIRST_SHOWN)
      const [occurrences, before, isEstimated, warnings, events, objects, firstMs, knownMs] =
        numbers
      total = Number(all)
      const sample = byId.get(Number(id))
      const { note = '', workloadRule = '', lastMs = Number(knownMs) } = sample ?? {}
      const values = textsOf(row.slice(FIRST_SHOWN) as readonly DuckDBValue[])
      bytes += 2 * values.reduce((sum, value) => sum + value.length, note.length)
      if (bytes > bytesMax && groups.length > 0) break
      groups.push({
        values,
        ...(groupBy.includes('workload') && { workloadRule }),
        occurrences: Number(occurrences),
        ...(newSince !== undefined && { before: Number(before) }),
        isEstimated: isEstimated === true,
        warnings: Number(warnings),
        events: Number(events),
        objects: objects === null ? undefined : Number(objects),
        firstMs: Number(firstMs) || undefined,
        lastMs: lastMs || undefined,
        note,
      })
    }
    return { groups, hidden: total - groups.length }
  }

  #filesIn(window: TimeWindow): readonly InputFile[] {
    return prunedFiles(this.#query.files, { ...this.#query, occurred: window })
  }

  /** The rows with occurrences in the window, with their keys and these columns. */
  #partsIn(
    { window, files = this.#filesIn(window), ...others }: PartsQuery,
    values: SqlValues,
    columnsOf: ColumnsOf,
  ): readonly CountedPart[] {
    const { requires, namespace } = this.#query
    const columns: ColumnsOf = (part, own) => [
      ...this.#keyColumns(own, values),
      ...columnsOf(part, own),
    ]
    return countedParts({ requires, namespace, window, files, ...others }, columns, values)
  }

  #keyColumns(files: readonly InputFile[], values: SqlValues): readonly string[] {
    const { keys } = groupKeys(this.#query.groupBy, clusterSql(files, values))
    return keys.map((sql, index) => `${sql} AS key_${index}`)
  }
}

type PartsQuery = Pick<CountedQuery, 'window' | 'isEarlier' | 'seenSinceMs'> &
  Partial<Pick<CountedQuery, 'files'>>

/** The first of sorted times that is not before this one. */
function firstFrom(times: readonly number[], ms: number): number | undefined {
  let [low, high] = [0, times.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((times[middle] ?? 0) < ms) low = middle + 1
    else high = middle
  }
  return times[low]
}

/** A row with the last occurrence of a group. */
interface LastRow extends RowPlace, Pick<Sample, 'id' | 'lastMs'> {}

const FIRST_SHOWN = 10

/** Has the columns that others may not have. */
const NO_ROWS = `SELECT NULL::BIGINT AS before, NULL::BIGINT AS occurred, NULL::BIGINT AS began,
  NULL::UBIGINT AS event, NULL::UBIGINT AS object, NULL::BIGINT AS first_ms, NULL::BIGINT AS last_ms,
  NULL::BOOLEAN AS is_first, NULL::BOOLEAN AS is_warning, NULL::BOOLEAN AS is_estimated WHERE false`

/** Of the rows of a group. */
const NUMBERS: readonly string[] = [
  'coalesce(sum(occurred), 0)::BIGINT AS occurrences',
  'coalesce(sum(before), 0)::BIGINT AS before',
  'coalesce(sum(occurred) FILTER (is_warning), 0)::BIGINT AS warnings',
  'count(DISTINCT event) FILTER (occurred > 0) + count(*) FILTER (is_first AND occurred > 0) AS events',
  'count(DISTINCT object) FILTER (occurred > 0) AS objects',
  'coalesce(min(first_ms) FILTER (first_ms <> 0 AND occurred > 0), 0) AS first_ms',
  'max(last_ms) AS last_ms',
  'coalesce(bool_or(is_estimated), false) AS is_estimated',
]

/** Of the rollups of a group. */
const ROLLUP_NUMBERS: readonly string[] = [
  'coalesce(sum(occurred), 0)::BIGINT AS occurrences',
  'coalesce(sum(before), 0)::BIGINT AS before',
  'coalesce(sum(occurred) FILTER (is_warning), 0)::BIGINT AS warnings',
  'coalesce(sum(began), 0)::BIGINT + count(DISTINCT event) AS events',
  'NULL AS objects',
  'coalesce(min(first_ms) FILTER (first_ms <> 0), 0) AS first_ms',
  'max(last_ms) AS last_ms',
  'coalesce(bool_or(is_estimated), false) AS is_estimated',
]
