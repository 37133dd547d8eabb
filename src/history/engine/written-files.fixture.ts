/** A writer process for tests, the changes that it is given, and an independent reader of its files. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } from 'hyparquet'
import { compressors } from 'hyparquet-compressors'
import { EngineProcess } from './engine-process.ts'
import type { ArchivedChange, WriteJobs, WriterJobs, WrittenFile } from './protocol.ts'
import { writeJobsOf } from './writer.ts'

const MIB = 1024 ** 2

export interface TestWriter extends AsyncDisposable {
  readonly engine: EngineProcess<WriterJobs>
  readonly jobs: WriteJobs
  readonly folder: string
}

export function testWriter(limits: { readonly memoryMib?: number } = {}): TestWriter {
  const folder = mkdtempSync(join(tmpdir(), 'tidings-writer-'))
  const engine = new EngineProcess<WriterJobs>({
    role: 'writer',
    folder,
    readFolders: [],
    memoryBytes: (limits.memoryMib ?? 256) * MIB,
    spillBytes: 4_096 * MIB,
    threads: 1,
    connections: 1,
  })
  return {
    engine,
    jobs: writeJobsOf(engine),
    folder,
    [Symbol.asyncDispose]: async () => {
      await engine.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** What a client sends, without `metadata.name` and `metadata.namespace`. */
export interface TestEvent {
  readonly metadata?: Readonly<Record<string, unknown>>
  readonly [field: string]: unknown
}

export interface TestChange extends Partial<Omit<ArchivedChange, 'body' | 'previous'>> {
  readonly event?: TestEvent | undefined
  readonly previous?: ArchivedChange | { readonly unknownBeforeMs: number } | undefined
}

/** Unless it says otherwise, of one event in a namespace `shop`. */
export function change({ event = {}, previous, ...rest }: TestChange = {}): ArchivedChange {
  const key = rest.key ?? { cluster: 'local', namespace: 'shop', name: 'web-0.1' }
  return {
    key,
    body: bodyOf(key, event),
    trailer: NO_TRAILER,
    version: 1_000,
    writtenAtMs: Date.UTC(2026, 5, 5, 12),
    ...rest,
    previous:
      previous === undefined || 'unknownBeforeMs' in previous
        ? previous
        : { body: previous.body, trailer: previous.trailer },
  }
}

const NO_TRAILER = Buffer.alloc(0)

function bodyOf({ namespace, name }: ArchivedChange['key'], event: TestEvent): Buffer {
  const { metadata, ...fields } = event
  return Buffer.from(JSON.stringify({ metadata: { name, namespace, ...metadata }, ...fields }))
}

/** An event of the old style. */
export function counted(count: number, first: string, last: string): TestEvent {
  return {
    metadata: { uid: 'u-1', creationTimestamp: first },
    deprecatedFirstTimestamp: first,
    deprecatedLastTimestamp: last,
    deprecatedCount: count,
  }
}

export type Row = Readonly<Record<string, unknown>>

/** The rows of a file, as another implementation of Parquet reads them. */
export async function readRows(path: string): Promise<readonly Row[]> {
  const file = await asyncBufferFromFile(path)
  return await parquetReadObjects({ file, compressors, utf8: false })
}

/** The columns of a file. */
export async function readSchema(
  path: string,
): Promise<readonly { readonly name: string; readonly type: string | undefined }[]> {
  const { schema } = await parquetMetadataAsync(await asyncBufferFromFile(path))
  const columns = []
  // The first element is the file. A column with members is followed by them.
  for (let at = 1; at < schema.length; at = endOf(schema, at)) {
    const { name, converted_type: converted, type } = schema[at] ?? { name: '' }
    columns.push({ name, type: converted ?? type })
  }
  return columns
}

function endOf(schema: readonly { readonly num_children?: number }[], at: number): number {
  let end = at + 1
  for (let child = 0; child < (schema[at]?.num_children ?? 0); child++) end = endOf(schema, end)
  return end
}

/** The spans of a row in short: milliseconds, and whether the span is open. */
export function spansIn(row: Row | undefined): readonly (readonly (number | boolean)[])[] {
  const spans = row?.['occurrences'] as readonly {
    readonly first: Date
    readonly last: Date
    readonly count: bigint
    readonly is_open: boolean
  }[]
  return spans.map(({ first, last, count, is_open: isOpen }) => [
    first.getTime(),
    last.getTime(),
    Number(count),
    isOpen,
  ])
}

/** Writes one segment with these changes. */
export async function writeSegment(
  { jobs }: TestWriter,
  changes: readonly ArchivedChange[],
  sequence = 1,
): Promise<readonly WrittenFile[]> {
  await jobs.reset()
  assert.deepEqual(await jobs.append(changes), { rejected: [] })
  return await jobs.flush(sequence)
}

/** The rows of the only file of a segment. */
export async function writtenRows(
  writer: TestWriter,
  changes: readonly ArchivedChange[],
): Promise<readonly Row[]> {
  const files = await writeSegment(writer, changes)
  assert.equal(files.length, 1)
  return await readRows(files[0]?.path ?? '')
}
