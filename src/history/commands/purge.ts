/**
 * `tidings history purge`: removes the events of a namespace from the archive. Each file is rewritten
 * without them, and replaced in the manifest by a commit of its own, so an interrupted purge is
 * completed by running it again. The old files are deleted at the end.
 */
import { exactly } from '../../api/selectors/value-pattern.ts'
import type { Log } from '../../lib/log/log.ts'
import type { Catalogue, Current } from '../catalogue.ts'
import type { WriteJobs } from '../engine/protocol.ts'
import type { DayFiles, EventFile, Purge } from '../manifest.ts'
import type { FileCache } from '../store/file-cache.ts'
import type { ObjectStore } from '../store/object-store.ts'
import { InputFiles } from '../write/input-files.ts'
import type { Uploads } from '../write/uploads.ts'

export interface PurgeOptions {
  readonly cluster: string
  readonly namespace: string
  /** Only events that were last seen before. Undefined: all. */
  readonly beforeMs: number | undefined
  /** Who asked for it, for the record in the manifest. */
  readonly by: string
  readonly catalogue: Catalogue
  readonly store: ObjectStore
  readonly cache: FileCache
  readonly jobs: Pick<WriteJobs, 'merge'>
  readonly uploads: Uploads
  readonly print: (line: string) => void
  readonly log: Log
  readonly signal: AbortSignal
}

/** Returns the number of rows that were removed. */
export async function purge(options: PurgeOptions): Promise<number> {
  const { catalogue, signal, print } = options
  await catalogue.read(signal).then((current) => {
    const isThere = current?.manifest.days.some(({ cluster }) => cluster === options.cluster)
    if (isThere !== true) print(`history has no events of the cluster ${options.cluster}`)
  })
  const done = new Set<string>()
  let rows = 0
  for (;;) {
    const current = await catalogue.read(signal)
    const found = current && (await nextFile(current, options, done))
    if (current === undefined || found === undefined) break
    const removed = await purgeFile(current, found, options)
    // Another commit came first: the file may have been merged since.
    if (removed === undefined) continue
    done.add(found.file.name)
    rows += removed
    if (removed > 0) print(`${found.file.name}: removed ${removed} rows`)
  }
  await deleteReplaced(options)
  const { cluster, namespace } = options
  print(`removed ${rows} rows of ${cluster}/${namespace} from the archive`)
  return rows
}

/**
 * Files that were replaced are kept for a day, for lists that began before. They may have the rows,
 * also those of a purge that was interrupted.
 */
async function deleteReplaced({ cluster, catalogue, store, signal }: PurgeOptions): Promise<void> {
  const current = await catalogue.read(signal)
  for (const { name } of current?.manifest.removed ?? []) {
    if (name.startsWith(`cluster=${cluster}/`) || name.startsWith(`rollups/cluster=${cluster}/`)) {
      await store.delete(name, { signal })
    }
  }
}

interface Found {
  readonly day: Pick<DayFiles, 'cluster' | 'date'>
  readonly file: EventFile
}

async function nextFile(
  { manifest }: Current,
  { cluster, namespace, beforeMs = Number.POSITIVE_INFINITY, catalogue, signal }: PurgeOptions,
  done: ReadonlySet<string>,
): Promise<Found | undefined> {
  for (const day of manifest.days) {
    if (day.cluster !== cluster || day.seen[0] >= beforeMs) continue
    const { files } = await catalogue.files(day, signal)
    const file = files.find(
      ({ name, namespaces: [from, to], seen }) =>
        !done.has(name) && from <= namespace && namespace <= to && seen[0] < beforeMs,
    )
    if (file !== undefined) return { day, file }
  }
  return undefined
}

/** The number of rows that were removed; undefined when the manifest has changed. */
async function purgeFile(
  current: Current,
  { day, file }: Found,
  options: PurgeOptions,
): Promise<number | undefined> {
  const { catalogue, cache, jobs, uploads, signal } = options
  const { cluster, namespace, beforeMs = Number.POSITIVE_INFINITY, by } = options
  using inputs = new InputFiles()
  await inputs.add(cache, day, file, signal)
  const removals = [{ requires: { namespaces: exactly(namespace) }, seenBeforeMs: beforeMs }]
  const { written, removedRows } = await jobs.merge(day, inputs.files, removals, { signal })
  if (removedRows === 0) return 0
  const kept =
    written === undefined ? [] : [{ ...written, file: { ...written.file, removed: file.removed } }]
  await uploads.all(kept, signal)
  const record: Purge = {
    atMs: Date.now(),
    by,
    cluster,
    namespace,
    ...(options.beforeMs !== undefined && { beforeMs }),
    rows: removedRows,
  }
  const edit = { added: kept, removed: new Set([file.name]), purge: record }
  const outcome = await catalogue.commit(current, edit, { signal })
  if (typeof outcome === 'string') return undefined
  options.log.info('Purged events from the archive', { ...record, file: file.name })
  return removedRows
}
