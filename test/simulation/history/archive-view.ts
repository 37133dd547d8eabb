/** The archive as its manifest describes it, read from the store itself. */
import { gunzipSync } from 'node:zlib'
import type {
  Day,
  DayFiles,
  EventFile,
  Manifest,
  Pointer,
  StoredFile,
} from '../../../src/history/manifest.ts'
import type { RollupFile, Row, RowFile } from './archived-rows.ts'
import type { Bucket } from './bucket.ts'

/** A row and the file that has it. */
export interface PlacedRow extends Row {
  readonly date: string
  readonly file: string
}

interface ReadFile {
  readonly rows: readonly PlacedRow[]
}

export class ArchiveView {
  readonly #bucket: Bucket
  /** Everything that the current manifest names, itself included. */
  #named: ReadonlyMap<string, StoredFile> = new Map()
  #files = new Map<string, ReadFile>()
  readonly #rows = new Map<string, Set<PlacedRow>>()
  /** Lists of days by their names: they never change. */
  #lists = new Map<string, DayFiles>()

  constructor(bucket: Bucket) {
    this.#bucket = bucket
  }

  isNamed(name: string): boolean {
    return this.#named.has(name)
  }

  get fileCount(): number {
    return this.#files.size
  }

  rowsOf(uid: string): readonly PlacedRow[] {
    return [...(this.#rows.get(uid) ?? [])]
  }

  get uids(): Iterable<string> {
    return this.#rows.keys()
  }

  /**
   * Reads what the pointer names. Returns the events whose rows have changed, or says what is missing.
   */
  moveTo(pointer: Pointer): ReadonlySet<string> | string {
    const problems: string[] = []
    const named = new Map<string, StoredFile>()
    const read = <Content>(file: StoredFile): Content | undefined => {
      named.set(file.name, file)
      const found = this.#bucket.get(file.name)
      if (found === undefined) problems.push(`${file.name} is missing`)
      else if (found.sha256 !== file.sha256 || found.bytes.length !== file.bytes) {
        problems.push(`${file.name} has other bytes than the manifest says`)
      } else return decoded(file.name, found.bytes) as Content
      return undefined
    }
    const manifest = read<Manifest>(pointer.manifest)
    const lists = new Map<string, DayFiles>()
    const files = new Map<string, ReadFile>()
    for (const day of manifest?.days ?? []) {
      const list = this.#known(day.list, named) ?? read<DayFiles>(day.list)
      if (list === undefined) continue
      lists.set(day.list.name, list)
      problems.push(...wrongTotals(day, list))
      for (const file of list.files) {
        const content = this.#files.get(file.name) ?? readFile(file, read)
        if (content !== undefined) files.set(file.name, content)
        this.#checkPresent(file, named, problems)
      }
    }
    if (manifest !== undefined && manifest.sequence !== pointer.sequence) {
      problems.push(`the manifest has the sequence ${manifest.sequence}`)
    }
    if (problems.length > 0) return problems.join('; ')
    this.#named = named
    this.#lists = lists
    return this.#replaceFiles(files)
  }

  /** A list that was read before, if it is still in the store. */
  #known(list: StoredFile, named: Map<string, StoredFile>): DayFiles | undefined {
    if (this.#bucket.get(list.name)?.sha256 !== list.sha256) return undefined
    named.set(list.name, list)
    return this.#lists.get(list.name)
  }

  #checkPresent(file: EventFile, named: Map<string, StoredFile>, problems: string[]): void {
    for (const one of [file, file.rollup]) {
      if (named.has(one.name)) continue
      named.set(one.name, one)
      if (this.#bucket.get(one.name)?.sha256 !== one.sha256) {
        problems.push(`${one.name} is missing, or has other bytes`)
      }
    }
  }

  #replaceFiles(files: Map<string, ReadFile>): ReadonlySet<string> {
    const changed = new Set<string>()
    for (const [name, { rows }] of this.#files) {
      if (files.has(name)) continue
      for (const row of rows) {
        changed.add(row.uid)
        this.#rows.get(row.uid)?.delete(row)
      }
    }
    for (const [name, { rows }] of files) {
      if (this.#files.has(name)) continue
      for (const row of rows) {
        changed.add(row.uid)
        const known = this.#rows.get(row.uid)
        if (known === undefined) this.#rows.set(row.uid, new Set([row]))
        else known.add(row)
      }
    }
    this.#files = files
    return changed
  }
}

function decoded(name: string, bytes: Buffer): unknown {
  return JSON.parse((name.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString())
}

function readFile(
  file: EventFile,
  read: <Content>(file: StoredFile) => Content | undefined,
): ReadFile | undefined {
  const content = read<RowFile>(file)
  read<RollupFile>(file.rollup)
  if (content === undefined) return undefined
  return { rows: content.rows.map((row) => ({ ...row, date: content.date, file: file.name })) }
}

/** What a manifest says of a day follows from its list. */
function wrongTotals(day: Day, { files }: DayFiles): readonly string[] {
  const rows = files.reduce((total, file) => total + file.rows, 0)
  const last = Math.max(...files.map(({ seen }) => seen[1]))
  if (day.files === files.length && day.rows === rows && day.seen[1] === last) return []
  return [`the manifest is wrong about ${day.cluster} on ${day.date}: ${JSON.stringify(day)}`]
}
