/**
 * Stands in for DuckDB's own program, which is not installed here, with the same library:
 * `duckdb -csv -c SQL` prints the rows, which must not need quotes.
 */
import assert from 'node:assert/strict'
import process from 'node:process'
import { DuckDBInstance } from '@duckdb/node-api'

const [format, option, sql = ''] = process.argv.slice(2)
assert.deepEqual([format, option], ['-csv', '-c'])
const instance = await DuckDBInstance.create()
const connection = await instance.connect()
const result = await connection.runAndReadAll(sql)
const lines = [result.columnNames(), ...result.getRowsJson()]
process.stdout.write(lines.map((line) => `${line.join()}\n`).join(''))
connection.closeSync()
instance.closeSync()
