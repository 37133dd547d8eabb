/** `tidings history verify`: compares every object of the archive with what the catalogue says of it. */
import { createHash } from 'node:crypto'
import type { Catalogue, Current } from '../catalogue.ts'
import type { WriteJobs } from '../engine/protocol.ts'
import type { Day, DayFiles, StoredFile } from '../manifest.ts'
import type { FileCache } from '../store/file-cache.ts'
import { type ObjectStore, StoreError } from '../store/object-store.ts'
import { InputFiles } from '../write/input-files.ts'

export interface VerifyOptions {
  readonly catalogue: Catalogue
  readonly store: ObjectStore
  readonly cache: FileCache
  readonly jobs: Pick<WriteJobs, 'check'>
  readonly print: (line: string) => void
  readonly signal: AbortSignal
}

export interface Verified {
  readonly files: number
  readonly rows: number
  readonly faults: number
}

/** Prints a line for each fault. Rejects when the catalogue itself cannot be read. */
export async function verify(options: VerifyOptions): Promise<Verified> {
  const { catalogue, print, signal } = options
  const current = await catalogue.read(signal)
  if (current === undefined) {
    print('nothing has been archived yet')
    return { files: 0, rows: 0, faults: 0 }
  }
  const found = { files: 0, rows: 0, faults: 0 }
  for (const day of current.manifest.days) {
    for (const fault of await faultsOf(day, options)) {
      found.faults++
      print(fault)
    }
    found.files += day.files
    found.rows += day.rows
  }
  print(summaryOf(current, found))
  return found
}

async function faultsOf(day: Day, options: VerifyOptions): Promise<readonly string[]> {
  try {
    const listed = await options.catalogue.files(day, options.signal)
    const faults: string[] = []
    for (const file of listed.files) {
      const broken = [
        ...(await brokenObject(file, options)),
        ...(await brokenObject(file.rollup, options)),
      ]
      faults.push(...broken)
      if (broken.length === 0) faults.push(...(await brokenContent(listed, file, options)))
    }
    return faults
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    return [`${day.list.name}: ${error.message}`]
  }
}

async function brokenObject(
  { name, bytes, sha256 }: StoredFile,
  { store, signal }: VerifyOptions,
): Promise<readonly string[]> {
  const hash = createHash('sha256')
  let size = 0
  try {
    for await (const piece of store.read(name, { signal })) {
      hash.update(piece)
      size += piece.length
    }
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    return [`${name}: ${error.message}`]
  }
  if (size !== bytes) return [`${name}: has ${size} bytes, and ${bytes} in the manifest`]
  return hash.digest('hex') === sha256
    ? []
    : [`${name}: does not have the checksum in the manifest`]
}

async function brokenContent(
  day: DayFiles,
  file: DayFiles['files'][number],
  { cache, jobs, signal }: VerifyOptions,
): Promise<readonly string[]> {
  using inputs = new InputFiles()
  await inputs.add(cache, day, file, signal)
  const faulty = await jobs.check(inputs.files, { signal })
  return faulty.flatMap(({ name, faults }) => faults.map((fault) => `${name}: ${fault}`))
}

function summaryOf({ manifest, pointer }: Current, { files, rows, faults }: Verified): string {
  const position = `archived up to resourceVersion ${pointer.position}`
  const days = `${manifest.days.length} days of clusters, ${files} files, ${rows} rows`
  return `${days}, ${position}: ${faults === 0 ? 'no faults' : `${faults} faults`}`
}
