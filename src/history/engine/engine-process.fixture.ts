/** Jobs for the tests of processes. */
import { type Job, runJobs } from './job-runner.ts'

export interface TestJobs {
  echo(value: unknown): Promise<unknown>
  sql(statement: string): Promise<unknown>
  block(ms: number): Promise<string>
  fail(message: string): Promise<never>
  exit(code: number): Promise<never>
  grow(bytes: number): Promise<Buffer>
}

const echo: Job<unknown, unknown> = async (_, value) => value
const sql: Job<string, unknown> = async (connection, statement) => {
  return (await connection.runAndReadAll(statement)).getRowsJson()
}
/** As a native library that neither returns nor can be interrupted. */
const block: Job<number, string> = async (_, ms) => {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
  return 'blocked'
}
const fail: Job<string, never> = async (_, message) => {
  throw new Error(message)
}
const exit: Job<number, never> = async (_, code) => {
  process.stderr.write('these are my last words\n')
  process.exit(code)
}
const grow: Job<number, Buffer> = async (_, bytes) => Buffer.alloc(bytes)

const jobs = { echo, sql, block, fail, exit, grow }
runJobs({ writer: jobs, reader: jobs })
