import {
  BIGINT,
  DOUBLE,
  type DuckDBConnection,
  type DuckDBResultReader,
  DuckDBTimestampMillisecondsValue,
  type DuckDBType,
  type DuckDBValue,
  LIST,
  listValue,
  TIMESTAMP_MS,
  VARCHAR,
} from '@duckdb/node-api'

/** Times beyond are not representable in DuckDB, nor as a `Date`. */
const MS_MAX = 8.64e15

/**
 * The values of a statement, which are never part of its text. Each method returns a placeholder, which
 * may be used several times, or not at all.
 */
export class SqlValues {
  readonly #values: DuckDBValue[] = []
  readonly #types: DuckDBType[] = []

  text(value: string): string {
    return this.#add(value, VARCHAR)
  }

  texts(values: readonly string[]): string {
    return this.#add(listValue(values), LIST(VARCHAR))
  }

  /** Of a bound: whole times are not before it exactly when they are not before the next whole one. */
  time(ms: number): string {
    const whole = Math.ceil(Math.max(-MS_MAX, Math.min(MS_MAX, ms)))
    return this.#add(new DuckDBTimestampMillisecondsValue(BigInt(whole)), TIMESTAMP_MS)
  }

  integer(value: number): string {
    return this.#add(BigInt(value), BIGINT)
  }

  integers(values: readonly number[]): string {
    return this.#add(listValue(values.map(BigInt)), LIST(BIGINT))
  }

  numbers(values: readonly number[]): string {
    return this.#add(listValue(values), LIST(DOUBLE))
  }

  async run(connection: DuckDBConnection, sql: string): Promise<void> {
    await connection.run(sql, this.#values, this.#types)
  }

  /** Values that the statement does not use are left out. */
  async read(connection: DuckDBConnection, sql: string): Promise<DuckDBResultReader> {
    const used: number[] = []
    const text = sql.replaceAll(/\$(\d+)/g, (_, digits: string) => {
      const index = Number(digits) - 1
      const known = used.indexOf(index)
      return `$${known < 0 ? used.push(index) : known + 1}`
    })
    const values = used.map((index) => this.#values[index] ?? null)
    return await connection.runAndReadAll(
      text,
      values,
      used.map((index) => this.#types[index] ?? VARCHAR),
    )
  }

  #add(value: DuckDBValue, type: DuckDBType): string {
    this.#types.push(type)
    return `$${this.#values.push(value)}`
  }
}
