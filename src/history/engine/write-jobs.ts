/** The jobs of the process that writes. */
import type { DuckDBConnection } from '@duckdb/node-api'
import { checkFile } from './check.ts'
import { resultFolder } from './duckdb.ts'
import { EngineError } from './engine-error.ts'
import { discard, publish, writeEventFile } from './event-file.ts'
import type { JobContext, JobTable } from './job-runner.ts'
import { mergeFiles, type RemovalFilter } from './merge.ts'
import { unpackChanges } from './packed-changes.ts'
import type { FaultyFile, WriterJobs, WrittenFile } from './protocol.ts'
import { Segment, type SegmentPart } from './segment.ts'

export function writeJobs(removalFilter: RemovalFilter): JobTable<WriterJobs> {
  const current = new CurrentSegment()
  return {
    reset: (connection) => current.begin(connection),
    append: (connection, changes) => {
      return current.use((segment) => segment.append(connection, unpackChanges(changes)))
    },
    flush: (connection, sequence, context) => {
      return current.use(async (segment) => {
        const parts = await segment.finish(connection, sequence)
        const written = await writeParts(connection, { parts, sequence, context })
        await current.begin(connection)
        return written
      })
    },
    merge(connection, argument, { settings, signal }) {
      const folder = resultFolder(settings)
      return mergeFiles(connection, argument, { folder, removalFilter, signal })
    },
    async check(connection, files, { signal }) {
      const faulty: FaultyFile[] = []
      for (const file of files) {
        signal.throwIfAborted()
        const faults = await checkFile(connection, file)
        if (faults.length > 0) faulty.push({ name: file.file.name, faults })
      }
      return faulty
    },
  }
}

/** Begins with `reset`, and is lost when a call fails that may have left it incomplete. */
class CurrentSegment {
  readonly #segment = new Segment()
  #isLost = true

  async begin(connection: DuckDBConnection): Promise<void> {
    await this.#segment.clear(connection)
    this.#isLost = false
  }

  async use<T>(work: (segment: Segment) => Promise<T>): Promise<T> {
    if (this.#isLost) {
      throw new EngineError('lost', 'the process has no segment, or only a part of it')
    }
    this.#isLost = true
    const result = await work(this.#segment)
    this.#isLost = false
    return result
  }
}

interface Parts {
  readonly parts: readonly SegmentPart[]
  readonly sequence: number
  readonly context: JobContext
}

/** Writes all files or none. */
async function writeParts(
  connection: DuckDBConnection,
  { parts, sequence, context: { settings, signal } }: Parts,
): Promise<readonly WrittenFile[]> {
  const folder = resultFolder(settings)
  const written: WrittenFile[] = []
  try {
    for (const part of parts) {
      signal.throwIfAborted()
      const file = await writeEventFile(connection, { ...part, sequence }, folder)
      if (file !== undefined) written.push(file)
    }
  } catch (error) {
    await discard(written)
    throw error
  }
  await publish(written)
  return written
}
