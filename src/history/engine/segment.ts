/**
 * The changes that are written next. Their rows are in a table of DuckDB, which moves to disk what
 * exceeds its memory; here is only what is needed to recognise a later state of the same event.
 */
import { type DuckDBConnection, UINTEGER } from '@duckdb/node-api'
import { compacted, type Span } from '../../storage/occurrences.ts'
import { type ArchivedRow, DayNames, rowOf, UnreadableChange } from './archived-row.ts'
import { BATCH_ROWS, type ChunkColumn, StagedRows, uint32s } from './chunk.ts'
import { EVENT_COLUMNS, ROW_SPANS_MAX } from './columns.ts'
import type { Appended, ArchivedChange, RejectedChange } from './protocol.ts'
import { SEGMENT_COLUMNS, type SegmentRow } from './segment-columns.ts'

/** The rows of one cluster and day. */
export interface SegmentPart {
  readonly cluster: string
  readonly date: string
  /** Selects them with the columns of a file. */
  readonly select: string
}

/** Bodies of rows that are not in the table yet. */
const PENDING_BYTES_MAX = 4 * 1024 * 1024

const NUMBER_COLUMN: ChunkColumn<number> = {
  name: 'number',
  type: UINTEGER,
  write: uint32s((number) => number),
}

/** The latest state of an event and day. */
interface Latest {
  /** Of its row. */
  number: number
  isAgain: boolean
  spans: readonly Span[]
}

interface Part {
  readonly cluster: string
  readonly date: string
  readonly number: number
  /** By uid. */
  readonly latest: Map<string, Latest>
}

export class Segment {
  readonly #days = new DayNames()
  readonly #parts: Part[] = []
  /** Their parts, by cluster and date. */
  readonly #clusters: Map<string, Map<string, Part>> = new Map()
  readonly #rows = new StagedRows('segment', SEGMENT_COLUMNS)
  readonly #replaced = new StagedRows('replaced', [NUMBER_COLUMN])
  /** The last rows, which are not in the table yet. */
  #pending: SegmentRow[] = []
  #pendingBytes = 0
  /** The number of the next row. */
  #next = 0
  /** Rows in the table that a later one replaces. */
  readonly #superseded: number[] = []

  async append(connection: DuckDBConnection, changes: Iterable<ArchivedChange>): Promise<Appended> {
    const rejected: RejectedChange[] = []
    for (const change of changes) {
      try {
        this.#add(rowOf(change, this.#days))
      } catch (error) {
        if (!(error instanceof UnreadableChange)) throw error
        rejected.push({ key: change.key, version: change.version, reason: error.message })
      }
      if (this.#pending.length >= BATCH_ROWS || this.#pendingBytes >= PENDING_BYTES_MAX) {
        await this.#writePending(connection)
      }
    }
    return { rejected }
  }

  /** No change can be appended afterwards, until it is cleared. */
  async finish(connection: DuckDBConnection, sequence: number): Promise<readonly SegmentPart[]> {
    await this.#writePending(connection)
    for (let at = 0; at < this.#superseded.length; at += BATCH_ROWS) {
      await this.#replaced.add(connection, this.#superseded.slice(at, at + BATCH_ROWS))
    }
    const rows = await this.#rows.relation(connection)
    const replaced = await this.#replaced.relation(connection)
    const columns = EVENT_COLUMNS.map(({ name }) => selected(name, sequence)).join(', ')
    return this.#parts.map(({ cluster, date, number }) => ({
      cluster,
      date,
      select: `SELECT ${columns} FROM ${rows} AS row
        ANTI JOIN ${replaced} AS replaced USING (number) WHERE part = ${number}`,
    }))
  }

  /** Begins again. */
  async clear(connection: DuckDBConnection): Promise<void> {
    await this.#rows.clear(connection)
    await this.#replaced.clear(connection)
    this.#parts.length = 0
    this.#clusters.clear()
    this.#superseded.length = 0
    this.#pending = []
    this.#pendingBytes = 0
    this.#next = 0
  }

  #add(row: ArchivedRow): void {
    const part = this.#partOf(row)
    const latest = part.latest.get(row.uid)
    if (latest === undefined) {
      const added = { number: this.#next++, isAgain: row.isAgain, spans: row.spans }
      part.latest.set(row.uid, added)
      this.#push({ number: added.number, part: part.number, row, latest: added })
      return
    }
    latest.isAgain &&= row.isAgain
    latest.spans = compacted([...latest.spans, ...row.spans], ROW_SPANS_MAX)
    const at = this.#pending.length - (this.#next - latest.number)
    const pending = this.#pending[at]
    if (pending !== undefined) {
      this.#pending[at] = { ...pending, row }
      this.#pendingBytes += row.json.length - pending.row.json.length
    } else {
      this.#superseded.push(latest.number)
      latest.number = this.#next++
      this.#push({ number: latest.number, part: part.number, row, latest })
    }
  }

  #push(added: SegmentRow): void {
    this.#pending.push(added)
    this.#pendingBytes += added.row.json.length
  }

  #partOf({ key: { cluster }, date }: ArchivedRow): Part {
    const dates = this.#clusters.get(cluster) ?? new Map<string, Part>()
    const known = dates.get(date)
    if (known !== undefined) return known
    const part: Part = { cluster, date, number: this.#parts.length, latest: new Map() }
    this.#parts.push(part)
    this.#clusters.set(cluster, dates.set(date, part))
    return part
  }

  async #writePending(connection: DuckDBConnection): Promise<void> {
    const rows = this.#pending
    this.#pending = []
    this.#pendingBytes = 0
    if (rows.length > 0) await this.#rows.add(connection, rows)
  }
}

function selected(name: string, sequence: number): string {
  if (name === 'sequence') return `${sequence}::BIGINT AS sequence`
  if (name === 'controller') {
    return `if(reporting_controller = '', source_component, reporting_controller) AS controller`
  }
  return name
}
