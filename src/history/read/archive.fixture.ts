/** Files of the archive for tests, from events as they are stored. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api'
import { placeAndWorkload } from '../../incidents/marks.ts'
import { patternOf } from '../../incidents/pattern.ts'
import { countBefore, type Span } from '../../storage/occurrences.ts'
import type { StoredEvent } from '../../storage/storage.ts'
import { served } from '../../storage/stored-form.ts'
import { EVENT_COLUMNS, ROLLUP_COLUMNS, SORT_COLUMNS } from '../engine/columns.ts'
import type { InputFile } from '../engine/protocol.ts'
import type { Bounds } from '../manifest.ts'
import { compareBytes } from './byte-order.ts'

/** A state of an event in a file. */
export interface MadeRow {
  readonly stored: StoredEvent
  /** `YYYY-MM-DD`: the folder of the file. */
  readonly date: string
  readonly again: boolean
  readonly sequence: number
  readonly spans: readonly Span[]
}

/** A folder of files, and a DuckDB that reads them. */
export class MadeArchive implements AsyncDisposable {
  readonly connection: DuckDBConnection
  readonly #instance: DuckDBInstance
  readonly #folder: string = mkdtempSync(join(tmpdir(), 'made-archive-'))
  #files = 0

  static async open(): Promise<MadeArchive> {
    const instance = await DuckDBInstance.create(':memory:', { threads: '1' })
    return new MadeArchive(instance, await instance.connect())
  }

  private constructor(instance: DuckDBInstance, connection: DuckDBConnection) {
    this.#instance = instance
    this.connection = connection
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.connection.closeSync()
    this.#instance.closeSync()
    rmSync(this.#folder, { recursive: true })
  }

  /** Writes one file for each cluster, day and segment. */
  async write(rows: readonly MadeRow[]): Promise<readonly InputFile[]> {
    const groups = Map.groupBy(
      rows,
      ({ stored, date, sequence }) => `${stored.key.cluster}/${date}/${sequence}`,
    )
    const files: InputFile[] = []
    for (const group of groups.values()) files.push(await this.writeFile(group))
    return files
  }

  /** Writes rows of one cluster and day to one file. */
  async writeFile(rows: readonly MadeRow[]): Promise<InputFile> {
    const [first] = rows
    if (first === undefined) throw new RangeError('a file has at least one row')
    const path = join(this.#folder, `${this.#files++}.parquet`)
    const columns = EVENT_COLUMNS.map(({ name, type }) => `${columnOf(name, type)} AS ${name}`)
    await this.connection.run(
      `COPY (SELECT ${columns.join()} FROM (SELECT unnest($1::JSON[]) AS r) ORDER BY ${SORT_COLUMNS.join()})
        TO '${path}' (FORMAT parquet, COMPRESSION zstd)`,
      [JSON.stringify(rows.map(valuesOf))],
    )
    const rollupPath = `${path}.rollup`
    const hours = ROLLUP_COLUMNS.map(({ name, type }) => `${columnOf(name, type)} AS ${name}`)
    await this.connection.run(
      `COPY (SELECT ${hours.join()} FROM (SELECT unnest($1::JSON[]) AS r)) TO '${rollupPath}' (FORMAT parquet)`,
      [JSON.stringify(rows.flatMap(rollupOf))],
    )
    const { stored, date } = first
    const digest = { bytes: 0, sha256: '' }
    const spans = rows.flatMap((row) => row.spans)
    const seen = rows.map((row) => row.stored.fields.lastSeenMs)
    return {
      cluster: stored.key.cluster,
      date,
      path,
      rollupPath,
      file: {
        name: path,
        ...digest,
        rows: rows.length,
        sequences: bounds(rows.map(({ sequence }) => sequence)),
        seen: bounds(seen),
        occurred:
          spans.length === 0
            ? bounds(seen)
            : bounds(spans.flatMap(({ firstMs, lastMs }) => [firstMs, lastMs])),
        namespaces: textBounds(rows.map((row) => row.stored.key.namespace)),
        kinds: textBounds(rows.map((row) => row.stored.fields.regarding.kind)),
        objects: textBounds(rows.map((row) => row.stored.fields.regarding.name)),
        rollup: { name: '', ...digest },
      },
    }
  }
}

const HOUR_MS = 3_600_000

function hourOf(ms: number): number {
  return Math.floor(ms / HOUR_MS) * HOUR_MS
}

/** The rollup of one row; a reader adds those of the same hour. */
function rollupOf({ stored, spans, again }: MadeRow): readonly Record<string, unknown>[] {
  const { key, fields } = stored
  const own = {
    namespace: key.namespace,
    type: fields.type,
    reason: fields.reason,
    kind: fields.regarding.kind,
    controller: fields.reportingController || fields.sourceComponent,
  }
  const found: Record<string, unknown>[] = []
  for (const span of spans) {
    for (let hour = hourOf(span.firstMs); hour <= span.lastMs; hour += HOUR_MS) {
      const occurrences = countBefore(span, hour + HOUR_MS) - countBefore(span, hour)
      if (occurrences > 0) found.push({ ...own, hour, occurrences, events: 0 })
    }
  }
  const begin = hourOf(spans[0]?.firstMs ?? fields.lastSeenMs)
  return again ? found : [...found, { ...own, hour: begin, occurrences: 0, events: 1 }]
}

function bounds(numbers: readonly number[]): Bounds<number> {
  return [Math.min(...numbers), Math.max(...numbers)]
}

function textBounds(texts: readonly string[]): Bounds<string> {
  const sorted = texts.toSorted(compareBytes)
  return [sorted[0] ?? '', sorted.at(-1) ?? '']
}

/** Reads a column from the JSON of `valuesOf`. */
function columnOf(name: string, type: string): string {
  const text = `(r->>'${name}')`
  if (name === 'trailer') return `from_hex(${text})`
  if (name === 'labels') return 'MAP {}::MAP(VARCHAR, VARCHAR)'
  if (name === 'occurrences' && type !== 'BIGINT') {
    const time = (member: string) => `make_timestamp_ms((s->>'${member}')::BIGINT)::TIMESTAMP_MS`
    return `[{'first': ${time('firstMs')}, 'last': ${time('lastMs')}, 'count': (s->>'count')::BIGINT,
      'is_open': coalesce((s->>'isOpen')::BOOLEAN, false)} FOR s IN (r->'occurrences')::JSON[]]::${type}`
  }
  if (type === 'TIMESTAMP_MS') return `make_timestamp_ms(${text}::BIGINT)::TIMESTAMP_MS`
  return `${text}::${type}`
}

function valuesOf({ stored, again, sequence, spans }: MadeRow): Record<string, unknown> {
  const { key, fields } = stored
  const { regarding, related } = fields
  const { workload, node } = placeAndWorkload(stored)
  return {
    again,
    namespace: key.namespace,
    regarding_kind: regarding.kind,
    regarding_name: regarding.name,
    last_seen: fields.lastSeenMs,
    first_seen: fields.firstSeenMs,
    written: stored.writtenAtMs,
    name: key.name,
    uid: fields.uid,
    type: fields.type,
    reason: fields.reason,
    action: fields.action,
    controller: fields.reportingController || fields.sourceComponent,
    reporting_controller: fields.reportingController,
    reporting_instance: fields.reportingInstance,
    source_component: fields.sourceComponent,
    source_host: fields.sourceHost,
    note: fields.note,
    count: fields.occurrences,
    occurrences: spans,
    workload_kind: workload.kind,
    workload_name: workload.name,
    workload_rule: workload.rule,
    node,
    pattern: patternOf(fields.note),
    regarding_namespace: regarding.namespace,
    regarding_uid: regarding.uid,
    regarding_api_version: regarding.apiVersion,
    regarding_resource_version: regarding.resourceVersion,
    regarding_field_path: regarding.fieldPath,
    related_kind: related.kind,
    related_namespace: related.namespace,
    related_name: related.name,
    related_uid: related.uid,
    related_api_version: related.apiVersion,
    related_resource_version: related.resourceVersion,
    related_field_path: related.fieldPath,
    resource_version: stored.version,
    sequence,
    trailer: (stored.trailer ?? Buffer.alloc(0)).toString('hex'),
    json: served(stored).toString(),
  }
}
