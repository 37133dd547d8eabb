/**
 * The program of the processes with DuckDB, which `EngineProcess` starts. Nothing imports it, and
 * nothing else loads DuckDB.
 */
import { type AnyJob, runJobs } from './engine/job-runner.ts'
import { writeJobs } from './engine/write-jobs.ts'
import { readBuckets } from './read/buckets-job.ts'
import { readGroups } from './read/groups-job.ts'
import { readPage } from './read/page-job.ts'
import { removalFilter } from './read/removal-sql.ts'

/** The jobs of each role, by name. */
const writer: Readonly<Record<string, AnyJob>> = { ...writeJobs(removalFilter) }
const reader: Readonly<Record<string, AnyJob>> = {
  page: readPage,
  groups: (connection, query: never) => readGroups(connection, query),
  buckets: (connection, query: never) => readBuckets(connection, query),
}

runJobs({ writer, reader })
