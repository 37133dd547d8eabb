/**
 * Rows as vectors of DuckDB. A million rows of the archive have forty million values, so values of a
 * fixed width are copied a column at a time, and short texts with them: DuckDB holds a text of up to
 * twelve bytes in place (`duckdb_string_t`). Only longer ones take a call each.
 */

import { type DuckDBConnection, DuckDBDataChunk, type DuckDBType } from '@duckdb/node-api'
import duckdb, { type Vector } from '@duckdb/node-bindings'

/** How many rows are added at a time: few enough to be in the cache of the processor. */
export const BATCH_ROWS = 256

const CHUNK_ROWS = duckdb.vector_size()
const CHUNKS_MAX = 8
/** A text begins with its length. */
const TEXT_BYTES = 16
const LENGTH_BYTES = 4
const SHORT_MAX = TEXT_BYTES - LENGTH_BYTES
const ASCII_MAX = 0x7f
const TWO_32 = 2 ** 32

/** The place of the first row in a vector. */
export interface Place {
  readonly vector: Vector
  readonly at: number
}

/** Fills the vector of a column with the values of these rows. */
export type ColumnWriter<Row> = (place: Place, rows: readonly Row[]) => void

export interface ChunkColumn<Row> {
  readonly name: string
  readonly type: DuckDBType
  readonly write: ColumnWriter<Row>
}

/**
 * Rows in tables of DuckDB. To add rows to a table that has some takes it more than twice as long as
 * to add them to an empty one, so there are several. Chunks are used again, since their memory is not
 * known to the garbage collector.
 */
export class StagedRows<Row> {
  readonly #name: string
  readonly #columns: readonly ChunkColumn<Row>[]
  readonly #chunks: DuckDBDataChunk[] = []
  /** How many of the chunks are complete. */
  #filled = 0
  /** How many rows the next one has. */
  #rows = 0
  #tables = 0

  /** Names of tables begin with `name`. */
  constructor(name: string, columns: readonly ChunkColumn<Row>[]) {
    this.#name = name
    this.#columns = columns
  }

  /** At most BATCH_ROWS of them. */
  async add(connection: DuckDBConnection, rows: readonly Row[]): Promise<void> {
    if (this.#rows + rows.length > CHUNK_ROWS) this.#complete()
    if (this.#filled === CHUNKS_MAX) await this.#flush(connection)
    const chunk = this.#next()
    for (const [index, { write }] of this.#columns.entries()) {
      write({ vector: duckdb.data_chunk_get_vector(chunk.chunk, index), at: this.#rows }, rows)
    }
    this.#rows += rows.length
  }

  /** All rows, as a relation. */
  async relation(connection: DuckDBConnection): Promise<string> {
    this.#complete()
    if (this.#filled > 0 || this.#tables === 0) await this.#flush(connection)
    const names = Array.from({ length: this.#tables }, (_, index) => this.#tableOf(index))
    return `(${names.map((name) => `FROM ${name}`).join(' UNION ALL ')})`
  }

  async clear(connection: DuckDBConnection): Promise<void> {
    this.#filled = 0
    this.#rows = 0
    for (; this.#tables > 0; this.#tables--) {
      await connection.run(`DROP TABLE IF EXISTS ${this.#tableOf(this.#tables - 1)}`)
    }
  }

  #next(): DuckDBDataChunk {
    const known = this.#chunks[this.#filled]
    const chunk = known ?? DuckDBDataChunk.create(this.#columns.map(({ type }) => type))
    this.#chunks[this.#filled] = chunk
    if (this.#rows === 0) chunk.reset()
    return chunk
  }

  #complete(): void {
    const chunk = this.#chunks[this.#filled]
    if (chunk === undefined || this.#rows === 0) return
    chunk.rowCount = this.#rows
    this.#filled++
    this.#rows = 0
  }

  async #flush(connection: DuckDBConnection): Promise<void> {
    const table = this.#tableOf(this.#tables++)
    const columns = this.#columns.map(({ name, type }) => `${name} ${type}`)
    await connection.run(`CREATE OR REPLACE TABLE ${table} (${columns.join(', ')})`)
    const appender = await connection.createAppender(table)
    for (const chunk of this.#chunks.slice(0, this.#filled)) appender.appendDataChunk(chunk)
    appender.closeSync()
    this.#filled = 0
  }

  #tableOf(index: number): string {
    return `${this.#name}_${index}`
  }
}

export function texts<Row>(read: (row: Row) => string): ColumnWriter<Row> {
  return (place, rows) => {
    const bytes = new Uint8Array(rows.length * TEXT_BYTES)
    const lengths = new Uint32Array(bytes.buffer)
    const long: number[] = []
    for (let index = 0; index < rows.length; index++) {
      const text = read(rows[index] as Row)
      if (text === '') continue
      if (writeShort(bytes, index * TEXT_BYTES + LENGTH_BYTES, text)) {
        lengths[(index * TEXT_BYTES) / LENGTH_BYTES] = text.length
      } else long.push(index)
    }
    copyTo(place, bytes, TEXT_BYTES)
    for (const index of long) {
      const text = read(rows[index] as Row)
      duckdb.vector_assign_string_element(place.vector, place.at + index, text)
    }
  }
}

/** Whether the text is short and ASCII. Otherwise what was written is overwritten. */
function writeShort(bytes: Uint8Array, at: number, text: string): boolean {
  if (text.length > SHORT_MAX) return false
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (code > ASCII_MAX) return false
    bytes[at + index] = code
  }
  return true
}

/** Whole numbers as `BIGINT`, or times as `TIMESTAMP_MS`. */
export function int64s<Row>(read: (row: Row) => number): ColumnWriter<Row> {
  return (place, rows) => {
    const words = new Uint32Array(2 * rows.length)
    for (let index = 0; index < rows.length; index++) {
      const value = read(rows[index] as Row)
      const high = Math.floor(value / TWO_32)
      words[2 * index] = value - high * TWO_32
      words[2 * index + 1] = high
    }
    copyTo(place, words, 2 * words.BYTES_PER_ELEMENT)
  }
}

export function uint32s<Row>(read: (row: Row) => number): ColumnWriter<Row> {
  return (place, rows) => {
    const values = new Uint32Array(rows.length)
    for (let index = 0; index < rows.length; index++) values[index] = read(rows[index] as Row)
    copyTo(place, values, values.BYTES_PER_ELEMENT)
  }
}

export function booleans<Row>(read: (row: Row) => boolean): ColumnWriter<Row> {
  return (place, rows) => {
    const values = new Uint8Array(rows.length)
    for (let index = 0; index < rows.length; index++) {
      values[index] = Number(read(rows[index] as Row))
    }
    copyTo(place, values, values.BYTES_PER_ELEMENT)
  }
}

export function blobs<Row>(read: (row: Row) => Uint8Array): ColumnWriter<Row> {
  return (place, rows) => {
    copyTo(place, new Uint8Array(rows.length * TEXT_BYTES), TEXT_BYTES)
    for (let index = 0; index < rows.length; index++) {
      const bytes = read(rows[index] as Row)
      if (bytes.length === 0) continue
      duckdb.vector_assign_string_element_len(place.vector, place.at + index, bytes)
    }
  }
}

/** Lists of structs, as `MAP` is one too: of each field, how it is filled. */
export function structLists<Row, Item>(
  read: (row: Row) => readonly Item[],
  fields: readonly ColumnWriter<Item>[],
): ColumnWriter<Row> {
  return (place, rows) => {
    const { vector } = place
    const at = duckdb.list_vector_get_size(vector)
    const items: Item[] = []
    const lists: number[] = []
    for (const row of rows) {
      const list = read(row)
      lists.push(at + items.length, list.length)
      for (const item of list) items.push(item)
    }
    writeLists({ vector, at: 2 * place.at }, lists)
    if (items.length === 0) return
    duckdb.list_vector_reserve(vector, at + items.length)
    duckdb.list_vector_set_size(vector, at + items.length)
    const child = duckdb.list_vector_get_child(vector)
    for (const [index, write] of fields.entries()) {
      write({ vector: duckdb.struct_vector_get_child(child, index), at }, items)
    }
  }
}

/** Where each list begins among the items of all lists, and its length. */
const writeLists: ColumnWriter<number> = int64s((value) => value)

function copyTo(
  { vector, at }: Place,
  values: Uint8Array<ArrayBuffer> | Uint32Array<ArrayBuffer>,
  bytesEach: number,
): void {
  const { buffer, byteOffset, byteLength } = values
  duckdb.copy_data_to_vector(vector, at * bytesEach, buffer, byteOffset, byteLength)
}
