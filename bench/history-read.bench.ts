/**
 * What questions about history cost, in CPU time: the jobs of the reading process, the SQL that a person
 * would write for the same files, and hyparquet for one of the days. All in this process with one thread,
 * in alternation; the least of the rounds counts.
 *
 *   npm run bench -- history-read                        5 days of 100,000 events
 *   node bench/history-read.bench.ts --days 50 --events 1000000 [--folder F] [--rounds 3]
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api'
import { asyncBufferFromFile, parquetQuery } from 'hyparquet'
import { compressors } from 'hyparquet-compressors'
import type { InputFile } from '../src/history/engine/protocol.ts'
import { readBuckets } from '../src/history/read/buckets-job.ts'
import { readGroups } from '../src/history/read/groups-job.ts'
import { readPage } from '../src/history/read/page-job.ts'
import type { Requires } from '../src/storage/requires.ts'
import { DAY_MS, makeDays, STEADY_OBJECT } from './history/made-days.ts'

const { values } = parseArgs({
  options: {
    days: { type: 'string', default: '5' },
    events: { type: 'string', default: '100000' },
    rounds: { type: 'string', default: '3' },
    folder: { type: 'string' },
  },
})
const days = Number(values.days)
const events = Number(values.events)
const firstDay = Math.floor(Date.UTC(2026, 8, 1) / DAY_MS)
const endMs = (firstDay + days) * DAY_MS
const folder = values.folder ?? (await mkdtemp(join(tmpdir(), 'tidings-history-read-')))
const instance = await DuckDBInstance.create(':memory:', { threads: '1', memory_limit: '512MB' })
const connection = await instance.connect()
const files = await makeDays(connection, { folder, cluster: 'local', firstDay, days, events })
const { namespace, kind, name } = STEADY_OBJECT
const HOUR_MS = 3_600_000

/** The files of the last days. */
function last(count: number): readonly InputFile[] {
  return files.slice(-count)
}

const sinceMs = (count: number) => Math.max(firstDay * DAY_MS, endMs - count * DAY_MS)
const exactly = (text: string) => [{ text, isPrefix: false }]

function page(
  wanted: readonly InputFile[],
  requires: Requires,
  more: { readonly namespace?: string; readonly order: 'newest' | 'oldest' },
) {
  return readPage(connection, {
    cluster: 'local',
    namespace: more.namespace,
    files: wanted,
    requires,
    order: more.order,
    after: undefined,
    afterMs: undefined,
    limit: 500,
    bytesMax: 8 * 1024 ** 2,
  })
}

function bare(wanted: readonly InputFile[], sql: string): Promise<unknown> {
  const list = wanted.map(({ path }) => `'${path}'`).join(', ')
  return connection.runAndReadAll(sql.replace('FILES', `read_parquet([${list}])`))
}

interface Question {
  readonly about: string
  readonly job: () => Promise<unknown>
  readonly sql: () => Promise<unknown>
  readonly hyparquet?: () => Promise<unknown>
}

const day = last(1)
const [file] = day
const buffer = file && (await asyncBufferFromFile(file.path))

async function query(filter: object, columns: string[], orderBy?: string): Promise<unknown> {
  if (buffer === undefined) throw new RangeError('no day was made')
  const order = orderBy === undefined ? {} : { orderBy, descending: true, rowEnd: 500 }
  return await parquetQuery({ file: buffer, compressors, filter, columns, ...order } as never)
}

const object = `regarding_kind = '${kind}' AND regarding_name = '${name}'`
const bounds = Array.from(
  { length: days * 24 + 1 },
  (_, hour) => firstDay * DAY_MS + hour * HOUR_MS,
)
const since = (count: number) => `make_timestamp_ms(${sinceMs(count)})`

const QUESTIONS: readonly Question[] = [
  {
    about: 'newest 500 Warnings of a namespace in a day',
    job: () =>
      page(
        day,
        {
          sinceMs: sinceMs(1),
          untilMs: endMs,
          values: [{ field: 'type', operator: '=', patterns: exactly('Warning') }],
          isAll: true,
        },
        { namespace, order: 'newest' },
      ),
    sql: () =>
      bare(
        day,
        `SELECT json FROM FILES WHERE namespace = '${namespace}' AND type = 'Warning' ORDER BY last_seen DESC LIMIT 500`,
      ),
    hyparquet: () =>
      query(
        { namespace: { $eq: namespace }, type: { $eq: 'Warning' } },
        ['namespace', 'type', 'last_seen', 'json'],
        'last_seen',
      ),
  },
  {
    about: `story of an object, ${days} days, with its namespace`,
    job: () =>
      page(
        files,
        { sinceMs: sinceMs(days), regarding: [{ kind, name }] },
        { namespace, order: 'oldest' },
      ),
    sql: () =>
      bare(
        files,
        `SELECT json FROM FILES WHERE namespace = '${namespace}' AND ${object} ORDER BY last_seen LIMIT 500`,
      ),
  },
  {
    about: `story of an object, ${days} days, without it`,
    job: () =>
      page(files, { sinceMs: sinceMs(days), regarding: [{ kind, name }] }, { order: 'oldest' }),
    sql: () => bare(files, `SELECT json FROM FILES WHERE ${object} ORDER BY last_seen LIMIT 500`),
    hyparquet: () =>
      query(
        { regarding_kind: { $eq: kind }, regarding_name: { $eq: name } },
        ['regarding_kind', 'regarding_name', 'last_seen', 'json'],
        'last_seen',
      ),
  },
  {
    about: `histogram by the hour, ${days} days`,
    job: () =>
      readBuckets(connection, {
        cluster: 'local',
        namespace: undefined,
        files,
        requires: undefined,
        bounds,
        by: 'type',
        namesMax: undefined,
      }),
    sql: () =>
      bare(
        files,
        `SELECT date_trunc('hour', last_seen) AS hour, type, sum(list_sum(list_transform(occurrences, lambda s: s.count))) FROM FILES GROUP BY ALL`,
      ),
    hyparquet: () => query({}, ['type', 'last_seen']),
  },
  {
    about: 'top reasons of 30 days',
    job: () =>
      readGroups(connection, {
        cluster: 'local',
        namespace: undefined,
        files: last(30),
        requires: undefined,
        window: { sinceMs: sinceMs(30), untilMs: endMs },
        newSince: undefined,
        groupBy: ['reason'],
        groupsMax: 100,
        bytesMax: 1024 ** 2,
        rowsMax: 5_000_000,
      }),
    sql: () =>
      bare(
        last(30),
        `SELECT reason, sum(list_sum(list_transform(occurrences, lambda s: s.count))) AS n, count(DISTINCT uid) FROM FILES GROUP BY reason ORDER BY n DESC`,
      ),
  },
  {
    about: 'text in notes of a namespace in a week',
    job: () =>
      page(
        last(7),
        {
          sinceMs: sinceMs(7),
          untilMs: endMs,
          texts: [{ texts: ['memory'], isIn: true, isAnywhere: false }],
          isAll: true,
        },
        { namespace, order: 'newest' },
      ),
    sql: () =>
      bare(
        last(7),
        `SELECT json FROM FILES WHERE namespace = '${namespace}' AND last_seen >= ${since(7)} AND (contains(lower(note), 'memory') OR contains(lower(reason), 'memory')) ORDER BY last_seen DESC LIMIT 500`,
      ),
    hyparquet: () => query({ namespace: { $eq: namespace } }, ['namespace', 'note', 'last_seen']),
  },
]

async function cpuMs(work: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1_000
}

const print = (line: string) => process.stdout.write(`${line}\n`)
const bytes = files.reduce((sum, one) => sum + one.file.bytes + one.file.rollup.bytes, 0)
print(`${days} days of ${events} events, ${(bytes / days / events).toFixed(1)} bytes an event`)
print('CPU ms: job, bare SQL, ratio; hyparquet for one day')
for (const { about, job, sql, hyparquet } of QUESTIONS) {
  const least = { job: Number.POSITIVE_INFINITY, sql: Number.POSITIVE_INFINITY }
  for (let round = 0; round < Number(values.rounds); round++) {
    least.job = Math.min(least.job, await cpuMs(job))
    least.sql = Math.min(least.sql, await cpuMs(sql))
  }
  const other = hyparquet === undefined ? '' : `; ${(await cpuMs(hyparquet)).toFixed(0)}`
  const ratio = (least.job / least.sql).toFixed(2)
  print(`${about}: ${least.job.toFixed(0)}, ${least.sql.toFixed(0)}, ${ratio}${other}`)
}
release(connection)
if (values.folder === undefined) await rm(folder, { recursive: true, force: true })

function release(one: DuckDBConnection): void {
  one.closeSync()
  instance.closeSync()
}
