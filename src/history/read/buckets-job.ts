/** The counts of a histogram from the archive; runs in the process that reads. */
import type { DuckDBConnection, DuckDBValue } from '@duckdb/node-api'
import {
  type BucketCount,
  type EventHistogram,
  GROUPS_MAX,
  type GroupField,
  identifiedBy,
  OTHER_GROUP,
} from '../../storage/summary.ts'
import type { BucketsQuery, BucketsResult, InputFile } from '../engine/protocol.ts'
import { bucketsSql } from './bucket-sql.ts'
import { groupKeys } from './group-values.ts'
import { countBeforeSql } from './occurrence-sql.ts'
import { clusterSql, parquetSql } from './parquet-source.ts'
import { prunedFiles } from './pruned-files.ts'
import { rowFilter } from './requires-sql.ts'
import { areInRollups, rollupSql } from './rollups.ts'
import { SqlValues } from './sql-values.ts'

export async function readBuckets(
  connection: DuckDBConnection,
  query: BucketsQuery,
): Promise<BucketsResult> {
  const { bounds, by, requires, rowsMax = 0 } = query
  const occurred = { sinceMs: bounds[0], untilMs: bounds.at(-1) }
  const files = prunedFiles(query.files, { ...query, occurred })
  const rows = files.reduce((sum, { file }) => sum + file.rows, 0)
  const isRolledUp = rows > rowsMax && areInRollups({ times: bounds, groupBy: [by], requires })
  const { isExact } = rowFilter(query, new SqlValues())
  const found = { source: isRolledUp ? 'rollups' : 'rows', isExact } as const
  if (files.length === 0) return { ...found, buckets: bounds.slice(1).map(() => []) }
  const job = new BucketsJob(connection, query, files)
  try {
    await (isRolledUp ? job.countRollups() : job.countRows())
    return { ...found, buckets: await job.buckets() }
  } finally {
    await connection.run('DROP TABLE IF EXISTS found_cells; DROP TABLE IF EXISTS found_names')
  }
}

class BucketsJob {
  readonly #connection: DuckDBConnection
  readonly #query: BucketsQuery
  readonly #files: readonly InputFile[]
  readonly #groupBy: readonly GroupField[]
  /** The names of the keys. */
  readonly #keys: readonly string[]

  constructor(connection: DuckDBConnection, query: BucketsQuery, files: readonly InputFile[]) {
    this.#connection = connection
    this.#query = query
    this.#files = files
    this.#groupBy = identifiedBy(query.by, query)
    this.#keys = groupKeys(this.#groupBy, '').keys.map((_, index) => `key_${index}`)
  }

  /** Whole hours, so that each row is of one bucket. */
  async countRollups(): Promise<void> {
    const values = new SqlValues()
    const [since, until] = this.#ends(values)
    const { branches } = rowFilter(this.#query, values, [`hour >= ${since}`, `hour < ${until}`])
    const columns = [...this.#keyColumns(values), 'occurrences', 'events', 'false AS is_estimated']
    const rows = branches.map(
      (where) =>
        `SELECT ${columns.join()}, ${this.#bucketOf('epoch_ms(hour)', values)} AS bucket
          FROM ${rollupSql(this.#files, values)} WHERE ${where}`,
    )
    await this.#fill(rows, 'sum(events)', values)
  }

  async countRows(): Promise<void> {
    const values = new SqlValues()
    const [since, until] = this.#ends(values)
    const columns = [...this.#keyColumns(values), 'hash(uid) AS event']
    const seen = `last_seen >= ${since}`
    const spans = this.#spanParts(columns, values)
    const rows = [
      // Seen once, so at the last time.
      ...this.#rows(
        [
          ...columns,
          '1 AS occurrences',
          'false AS is_estimated',
          `${this.#bucketOf('epoch_ms(last_seen)', values)} AS bucket`,
        ],
        ['NOT again', 'count = 1', seen, `last_seen < ${until}`],
        values,
      ),
      ...spans,
    ]
    await this.#fill(rows, 'count(DISTINCT event) FILTER (occurrences > 0)', values)
  }

  /** A row for each bucket that has a part of a span. */
  #spanParts(columns: readonly string[], values: SqlValues): readonly string[] {
    const [since, until] = this.#ends(values)
    const own = [
      ...columns,
      'again',
      'unnest(occurrences) AS span',
      'generate_subscripts(occurrences, 1) AS place',
    ]
    const buckets = bucketsSql(this.#query.bounds, values)
    const count = this.#query.bounds.length - 1
    const mayReachBack = `(first_seen < ${until} OR last_seen < ${until})`
    return [['again'], ['NOT again', 'count > 1']]
      .flatMap((part) => this.#rows(own, [...part, `last_seen >= ${since}`, mayReachBack], values))
      .map(
        (sql) => `
        SELECT ${[...this.#keys, 'event', 'occurrences', 'bucket'].join()},
          span.count > 1 AND (first_bucket <> last_bucket OR (NOT again AND place = 1)) AS is_estimated
        FROM (
          SELECT *, ${countBeforeSql('span', 'bucket_end')}
            - ${countBeforeSql('span', 'bucket_start')} AS occurrences
          FROM (
            SELECT *, ${buckets.startOf('bucket')} AS bucket_start, ${buckets.startOf('bucket + 1')} AS bucket_end
            FROM (SELECT *, unnest(range(greatest(first_bucket, 0), least(last_bucket, ${count - 1}) + 1)) AS bucket
            FROM (
              SELECT *, ${this.#bucketOf('epoch_ms(span.first)', values)} AS first_bucket,
                ${this.#bucketOf('epoch_ms(span.last)', values)} AS last_bucket
              FROM (${sql})
            ))
          )
        )
`,
      )
  }

  #rows(columns: readonly string[], also: readonly string[], values: SqlValues): readonly string[] {
    const source = parquetSql(this.#files, values)
    const { branches } = rowFilter(this.#query, values, also)
    return branches.map((where) => `SELECT ${columns.join()} FROM ${source} WHERE ${where}`)
  }

  #keyColumns(values: SqlValues): readonly string[] {
    const { keys } = groupKeys(this.#groupBy, clusterSql(this.#files, values))
    return keys.map((sql, index) => `${sql} AS key_${index}`)
  }

  #bucketOf(ms: string, values: SqlValues): string {
    return bucketsSql(this.#query.bounds, values).of(ms)
  }

  /** Where the first bucket begins and the last one ends. */
  #ends(values: SqlValues): readonly [since: string, until: string] {
    const { bounds } = this.#query
    return [values.time(bounds[0] ?? 0), values.time(bounds.at(-1) ?? 0)]
  }

  /** Fills the table `found_cells` with the counts of each value and bucket. */
  async #fill(rows: readonly string[], events: string, values: SqlValues): Promise<void> {
    const keys = this.#keys.join()
    await values.read(
      this.#connection,
      `CREATE OR REPLACE TEMP TABLE found_cells AS
        SELECT ${keys}, bucket, sum(occurrences)::BIGINT AS occurrences, ${events} AS events,
          bool_or(is_estimated AND occurrences > 0) AS is_estimated
        FROM (${rows.join(' UNION ALL BY NAME ')}) GROUP BY ${keys}, bucket
        HAVING occurrences + events > 0`,
    )
  }

  async buckets(): Promise<EventHistogram['buckets'] | undefined> {
    const { namesMax, bounds } = this.#query
    const [counted] = await this.#read('SELECT count(*) FROM found_cells')
    if (namesMax === undefined && Number(counted?.[0]) > GROUPS_MAX) return undefined
    const names = await this.#names(namesMax ?? GROUPS_MAX)
    const cells = await this.#read(
      `SELECT bucket, coalesce(rank, 0) AS name, sum(occurrences)::BIGINT, sum(events)::BIGINT,
          bool_or(is_estimated)
        FROM found_cells LEFT JOIN found_names USING (${this.#keys.join()}) GROUP BY bucket, name`,
    )
    const buckets = bounds.slice(1).map(() => new Map<string, BucketCount>())
    for (const [bucket, rank, occurrences, events, isEstimated] of cells) {
      const name = names.get(Number(rank)) ?? OTHER_GROUP
      const count = { name, occurrences: Number(occurrences), events: Number(events) }
      const found = buckets[Number(bucket)]
      found?.set(name, sumOf(found.get(name), { ...count, ...(isEstimated === true && ESTIMATED) }))
    }
    return buckets.map((found) =>
      [...found.values()].sort((one, other) => (one.name < other.name ? -1 : 1)),
    )
  }

  /** Fills the table `found_names` with the ranks of values, from 1 on. Returns their texts by rank. */
  async #names(max: number): Promise<ReadonlyMap<number, string>> {
    const { shown, textsOf } = groupKeys(this.#groupBy, '')
    const keys = this.#keys.join()
    await this.#connection.run(
      `CREATE OR REPLACE TEMP TABLE found_names AS
        SELECT ${keys}, row_number() OVER (ORDER BY sum(occurrences) DESC, ${keys}) AS rank
        FROM found_cells GROUP BY ${keys} ORDER BY rank LIMIT ${Math.trunc(max)}`,
    )
    const named = await this.#read(`SELECT rank, ${shown.join()} FROM found_names`)
    return new Map(named.map(([rank, ...texts]) => [Number(rank), textsOf(texts).join('/')]))
  }

  async #read(sql: string): Promise<readonly (readonly DuckDBValue[])[]> {
    const found = await this.#connection.runAndReadAll(sql)
    return found.getRows()
  }
}

const ESTIMATED = { estimated: true } as const

/** A value with the name of the others is counted among them. */
function sumOf(one: BucketCount | undefined, other: BucketCount): BucketCount {
  if (one === undefined) return other
  return {
    name: one.name,
    occurrences: one.occurrences + other.occurrences,
    events: one.events + other.events,
    ...((one.estimated ?? other.estimated) && ESTIMATED),
  }
}
