/** Reads the archive with another implementation of Parquet than the one that wrote it. */
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet'
import { compressors } from 'hyparquet-compressors'
import type { Catalogue } from '../../src/history/catalogue.ts'
import type { EventFile } from '../../src/history/manifest.ts'
import type { DirectoryStore } from '../../src/history/store/directory-store.ts'

export interface ArchiveRow {
  readonly cluster: string
  readonly date: string
  readonly file: string
  readonly uid: string
  readonly namespace: string
  readonly name: string
  readonly again: boolean
  readonly count: bigint
  readonly sequence: bigint
  readonly resource_version: bigint
  readonly last_seen: Date
  readonly json: string
  readonly occurrences: readonly {
    readonly first: Date
    readonly last: Date
    readonly count: bigint
    readonly is_open: boolean
  }[]
}

/** Every row of every file that the current manifest names. */
export async function archiveRows(
  catalogue: Catalogue,
  store: DirectoryStore,
): Promise<readonly ArchiveRow[]> {
  const { signal } = new AbortController()
  const current = await catalogue.read(signal)
  const rows: ArchiveRow[] = []
  for (const day of current?.manifest.days ?? []) {
    const { cluster, date, files } = await catalogue.files(day, signal)
    for (const file of files) rows.push(...(await rowsOf(store, file, { cluster, date })))
  }
  return rows
}

async function rowsOf(
  store: DirectoryStore,
  { name, rows }: EventFile,
  day: { readonly cluster: string; readonly date: string },
): Promise<readonly ArchiveRow[]> {
  const file = await asyncBufferFromFile(store.localPath(name))
  const found = await parquetReadObjects({ file, compressors })
  if (found.length !== rows) throw new Error(`${name} has ${found.length} rows, not ${rows}`)
  return found.map((row) => ({ ...(row as unknown as ArchiveRow), ...day, file: name }))
}

/** The newest row of each event and day. */
export function newestRows(rows: readonly ArchiveRow[]): ReadonlyMap<string, ArchiveRow> {
  const newest = new Map<string, ArchiveRow>()
  for (const row of rows) {
    const key = `${row.cluster} ${row.date} ${row.uid}`
    const known = newest.get(key)
    if (known === undefined || known.sequence < row.sequence) newest.set(key, row)
  }
  return newest
}

/** How often all rows of each event say that it was observed. */
export function countedByUid(rows: readonly ArchiveRow[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const { uid, occurrences } of rows) {
    const sum = occurrences.reduce((total, { count }) => total + Number(count), 0)
    counts.set(uid, (counts.get(uid) ?? 0) + sum)
  }
  return counts
}
