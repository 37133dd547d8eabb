/**
 * The catalogue of the archive. Manifests and lists of days are objects in the store that are never
 * changed; the key in etcd that points to the current manifest is moved by a transaction that compares
 * its revision, and for the archiver also the key of its election. So the store needs no conditional
 * writes, two writers cannot both win, and a crash leaves only objects that no manifest names.
 */
import { createHash, randomBytes } from 'node:crypto'
import { promisify } from 'node:util'
import { gunzip, gzip } from 'node:zlib'
import { connectionMaxFor, type KnownHistory } from '../election/known-history.ts'
import type { EtcdClient, Txn, TxnResult } from '../etcd/client.ts'
import { EtcdError } from '../etcd/errors.ts'
import { pause } from '../lib/abort.ts'
import { BoundedMap } from '../lib/bounded-map.ts'
import { isObject, parsedJson } from '../lib/json.ts'
import type { Log } from '../lib/log/log.ts'
import { controlKey } from '../storage/etcd/keys.ts'
import { beginning, type Version } from '../storage/resource-version.ts'
import {
  type Bounds,
  type Day,
  type DayFiles,
  dayFolder,
  type EventFile,
  type Gap,
  type Manifest,
  type Pointer,
  type Purge,
  type StoredFile,
} from './manifest.ts'
import { type ObjectStore, StoreError } from './store/object-store.ts'
import { putVerified } from './store/verified-put.ts'

const CALL_TIMEOUT_MS = 5_000
const READ_EVERY_MS = 1_000
/** Far more than any manifest: 36,500 days of clusters take about 1 MB. */
export const MANIFEST_BYTES_MAX: number = 64 * 1024 * 1024
const INFLATED_BYTES_MAX = 512 * 1024 * 1024
/** Manifests and lists of days that are kept decoded. */
const CACHE_BYTES_MAX = 32 * 1024 * 1024
const MANIFESTS = 'manifests'
/** What older purges were is in older manifests. */
const PURGES_MAX = 100
const DAY_MS = 86_400_000
const GAPS_MAX = 8
/** Longer than unnamed objects are kept, so that they are not deleted early. */
const REMOVED_MS = 30 * 3_600_000

const zip = promisify<Buffer, Buffer>(gzip)
const unzip = promisify<Buffer, { readonly maxOutputLength: number }, Buffer>(gunzip)

/** The state that the pointer names, and the revision to compare it with. */
export interface Current {
  readonly pointer: Pointer
  readonly manifest: Manifest
  readonly modRevision: number
}

/** A change of the catalogue. Files of several days may be added and removed at once. */
export interface Edit {
  readonly added: readonly AddedFile[]
  /** Names of files. If the current manifest no longer has one of them, nothing is changed. */
  readonly removed: ReadonlySet<string>
  /** Undefined: it stays where it is. */
  readonly position?: Position | undefined
  readonly purge?: Purge | undefined
}

export interface Position extends Pick<Pointer, 'position' | 'positionAtMs'> {
  /** Set when not every change up to it was read. */
  readonly gap?: Gap | undefined
}

export interface AddedFile extends Pick<DayFiles, 'cluster' | 'date'> {
  readonly file: EventFile
}

export const NO_FILES: Pick<Edit, 'added' | 'removed'> = { added: [], removed: new Set() }

/** The key of an election and its revision, which a commit compares. */
export interface CommitFence {
  readonly key: string
  readonly revision: number
}

/** `moved`: another commit came first; read again. `lost`: the term is over. */
export type CommitOutcome = Current | 'moved' | 'lost'

export interface CatalogueOptions {
  readonly client: Pick<EtcdClient, 'range' | 'txn'>
  readonly prefix: string
  /** The name of this replica. */
  readonly replica: string
  readonly store: ObjectStore
  /** Without it, etcd is assumed never to be restored. */
  readonly etcdHistory?: KnownHistory | undefined
  readonly log: Log
}

export class Catalogue {
  readonly #options: CatalogueOptions
  readonly #key: Buffer
  readonly #decoded = new BoundedMap<Decoded>(CACHE_BYTES_MAX, (_, { bytes }) => bytes)
  #pointer: Pointer | undefined
  #isKnown = false
  #lastFault: string | undefined
  #latest: Manifest | undefined
  #totals: ArchiveTotals = totalsOf(undefined)

  constructor(options: CatalogueOptions) {
    this.#options = options
    this.#key = Buffer.from(controlKey(options.prefix, 'archive'))
  }

  /**
   * The pointer as this replica last read it; undefined when there is none, or it is not known. It
   * may be out of date, so that its position is too low, but never too high.
   */
  get pointer(): Pointer | undefined {
    return this.#pointer
  }

  /** Whether it has been read, and etcd is still known to be the same. */
  get isKnown(): boolean {
    return this.#isKnown
  }

  get position(): Version {
    return this.#pointer?.position ?? beginning
  }

  /** Forgets the pointer: etcd may have been restored from a snapshot with an earlier one. */
  forget(): void {
    this.#pointer = undefined
    this.#isKnown = false
  }

  /**
   * Reads the pointer and what it points to now and then, until aborted. Retention needs the pointer:
   * it does not wait for a store that does not answer.
   */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([
      this.#repeat('position', () => this.readPointer(signal), signal),
      this.#repeat('manifest', () => this.#refresh(signal), signal),
    ])
  }

  async #repeat(what: string, read: () => Promise<unknown>, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await read()
      } catch (error) {
        if (!(error instanceof EtcdError || error instanceof StoreError)) throw error
        if (!signal.aborted) this.#couldNotRead(what, error)
      }
      await pause(READ_EVERY_MS, signal)
    }
  }

  /** Says once what is wrong with the store. */
  #couldNotRead(what: string, error: EtcdError | StoreError): void {
    const { log } = this.#options
    const message = `Could not read the ${what} of the archive; will retry`
    if (error instanceof StoreError && error.message !== this.#lastFault) {
      this.#lastFault = error.message
      log.warn(message, { err: error })
    } else log.v(2, message, { err: error })
  }

  async #refresh(signal: AbortSignal): Promise<void> {
    const pointer = this.#pointer
    const manifest = pointer && (await this.manifest(pointer.manifest, signal))
    this.#lastFault = undefined
    if (manifest === this.#latest) return
    this.#latest = manifest
    this.#totals = totalsOf(manifest)
  }

  /** What the archive had when it was last read. */
  get totals(): ArchiveTotals {
    return this.#totals
  }

  /** The start of the oldest day of a cluster, or of all clusters. */
  oldestMsIn(cluster: string | undefined): number | undefined {
    const { oldest } = this.#totals
    return cluster === undefined ? this.#totals.oldestMs : oldest.get(cluster)
  }

  /** A consistent read. Rejects with an EtcdError. */
  async readPointer(
    signal?: AbortSignal,
  ): Promise<{ readonly pointer: Pointer; readonly modRevision: number } | undefined> {
    const { kvs } = await this.#options.client.range(
      { key: this.#key },
      { signal, timeoutMs: CALL_TIMEOUT_MS },
    )
    const [kv] = kvs
    this.#isKnown = true
    if (kv === undefined) {
      this.#pointer = undefined
      return undefined
    }
    const pointer = decodePointer(kv.value)
    this.#pointer = pointer
    return { pointer, modRevision: kv.modRevision }
  }

  /** Undefined when nothing was ever archived. Rejects with an EtcdError or a StoreError. */
  async read(signal: AbortSignal): Promise<Current | undefined> {
    const found = await this.readPointer(signal)
    if (found === undefined) return undefined
    return { ...found, manifest: await this.manifest(found.pointer.manifest, signal) }
  }

  async manifest(file: StoredFile, signal: AbortSignal): Promise<Manifest> {
    return (await this.#object(file, signal)) as Manifest
  }

  /**
   * The name of a state of the archive, for tokens of lists. Undefined for a text that is not one, or
   * a manifest that was deleted.
   */
  async manifestOf(state: string, signal: AbortSignal): Promise<Manifest | undefined> {
    const [, name, sha256 = ''] = /^(\d{12}-[0-9a-f]{12})\.([0-9a-f]{64})$/.exec(state) ?? []
    if (name === undefined) return undefined
    try {
      return await this.manifest({ name: manifestName(name), bytes: 0, sha256 }, signal)
    } catch (error) {
      if (error instanceof StoreError && error.kind === 'missing') return undefined
      throw error
    }
  }

  async files(day: Day, signal: AbortSignal): Promise<DayFiles> {
    return (await this.#object(day.list, signal)) as DayFiles
  }

  /**
   * Writes the lists of the days that change and the next manifest, then moves the pointer. Rejects
   * with a StoreError, or with an EtcdError when it is not known whether the pointer was moved.
   */
  async commit(
    current: Current | undefined,
    edit: Edit,
    options: { readonly signal: AbortSignal; readonly fence?: CommitFence | undefined },
  ): Promise<CommitOutcome> {
    const { signal, fence } = options
    const manifest = await this.#edited(current, edit, signal)
    if (manifest === undefined) return 'moved'
    const { sequence, position, positionAtMs } = manifest
    const stored = await this.#put(manifestName(numbered(sequence)), manifest, signal)
    const gaps = [
      ...(current?.pointer.gaps ?? []),
      ...(edit.position?.gap ? [edit.position.gap] : []),
    ]
    const pointer: Pointer = {
      replica: this.#options.replica,
      manifest: stored,
      sequence,
      position,
      positionAtMs,
      gaps: gaps.slice(-GAPS_MAX),
    }
    const outcome = await this.#move(current?.modRevision ?? 0, pointer, fence)
    return typeof outcome === 'string' ? outcome : { pointer, manifest, modRevision: outcome }
  }

  /** Moves the position alone, when nothing was to be archived. */
  async advance(
    current: Current,
    { position, positionAtMs }: Position,
    fence: CommitFence,
  ): Promise<CommitOutcome> {
    const { replica } = this.#options
    const pointer = { ...current.pointer, replica, position, positionAtMs }
    const outcome = await this.#move(current.modRevision, pointer, fence)
    return typeof outcome === 'string' ? outcome : { ...current, pointer, modRevision: outcome }
  }

  /** Points to a manifest that was found in the store; for an etcd that has none, or an older one. */
  async adopt(
    manifest: StoredFile,
    content: Pick<Pointer, 'sequence' | 'position' | 'positionAtMs'>,
    expectedModRevision: number,
  ): Promise<number | 'moved' | 'lost'> {
    const { replica } = this.#options
    const pointer: Pointer = { replica, manifest, ...content, gaps: [] }
    return this.#move(expectedModRevision, pointer, undefined)
  }

  /** Undefined when a file to remove is not there. */
  async #edited(
    current: Current | undefined,
    edit: Edit,
    signal: AbortSignal,
  ): Promise<Manifest | undefined> {
    const { manifest, pointer } = current ?? {}
    const days = new Map((manifest?.days ?? []).map((day) => [dayFolder(day), day] as const))
    const sequence = (pointer?.sequence ?? 0) + 1
    const names = pointer === undefined ? [] : [pointer.manifest.name]
    for (const folder of touchedBy(edit)) {
      const before = days.get(folder)
      const next = await this.#editedDay(folder, { before, edit, signal })
      if (next === undefined) return undefined
      names.push(...next.removed)
      if (next.files.length === 0) days.delete(folder)
      else days.set(folder, await this.#putDay(next, sequence, signal))
    }
    const { position = beginning, positionAtMs = 0 } = edit.position ?? pointer ?? {}
    return {
      form: 1,
      sequence,
      position,
      positionAtMs,
      days: [...days.values()].sort((one, other) => (dayFolder(one) < dayFolder(other) ? -1 : 1)),
      removed: removedAfter(manifest, names),
      purges: [...(manifest?.purges ?? []), ...(edit.purge ? [edit.purge] : [])].slice(-PURGES_MAX),
    }
  }

  /** The files of a day after the edit, and the objects that it no longer names. */
  async #editedDay(
    folder: string,
    { before, edit, signal }: { before: Day | undefined; edit: Edit; signal: AbortSignal },
  ): Promise<(DayFiles & { readonly removed: readonly string[] }) | undefined> {
    const files = before === undefined ? [] : (await this.files(before, signal)).files
    const added = edit.added.filter((one) => dayFolder(one) === folder)
    const day = added[0] ?? before
    const removed = files.filter(({ name }) => edit.removed.has(name))
    const isWanted = (name: string) => name.startsWith(`${folder}/`)
    if (day === undefined || removed.length < [...edit.removed].filter(isWanted).length) {
      return undefined
    }
    const kept = files.filter(({ name }) => !edit.removed.has(name))
    const { cluster, date } = day
    return {
      cluster,
      date,
      files: [...kept, ...added.map(({ file }) => file)],
      removed: [
        ...removed.flatMap(({ name, rollup }) => [name, rollup.name]),
        ...(before === undefined ? [] : [before.list.name]),
      ],
    }
  }

  async #putDay(
    { cluster, date, files }: DayFiles,
    sequence: number,
    signal: AbortSignal,
  ): Promise<Day> {
    const day: DayFiles = { cluster, date, files }
    const name = `${MANIFESTS}/${dayFolder(day)}/${numbered(sequence)}.json.gz`
    const list = await this.#put(name, day, signal)
    return {
      cluster,
      date,
      list,
      files: files.length,
      ...removedFrom(files),
      rows: sum(files.map(({ rows }) => rows)),
      bytes: sum(files.map(({ bytes, rollup }) => bytes + rollup.bytes)),
      seen: union(files.map(({ seen }) => seen)),
      occurred: union(files.map(({ occurred }) => occurred)),
    }
  }

  async #put(name: string, content: unknown, signal: AbortSignal): Promise<StoredFile> {
    const text = Buffer.from(JSON.stringify(content))
    const bytes = await zip(text)
    const file = { name, bytes: bytes.length, sha256: sha256Of(bytes) }
    await putVerified(this.#options.store, file, bytes, { signal })
    this.#decoded.set(MANIFESTS, name, { content, bytes: text.length })
    return file
  }

  async #object(file: StoredFile, signal: AbortSignal): Promise<unknown> {
    const known = this.#decoded.get(MANIFESTS, file.name)
    if (known !== undefined) return known.content
    const bytesMax = MANIFEST_BYTES_MAX
    const bytes = await this.#options.store.get(file.name, { signal, bytesMax })
    if (sha256Of(bytes) !== file.sha256) {
      throw new StoreError('unavailable', `${file.name} does not have the checksum of its manifest`)
    }
    const { content, size } = await decodedObject(bytes, file.name)
    this.#decoded.set(MANIFESTS, file.name, { content, bytes: size })
    return content
  }

  /** The revision of the moved pointer. */
  async #move(
    from: number,
    pointer: Pointer,
    fence: CommitFence | undefined,
  ): Promise<number | 'moved' | 'lost'> {
    const value = Buffer.from(JSON.stringify(pointer))
    const compare = [{ key: this.#key, target: 'modRevision' as const, to: from }]
    if (fence !== undefined) {
      const key = Buffer.from(fence.key)
      compare.push({ key, target: 'modRevision', to: fence.revision })
    }
    const { succeeded, revision } = await this.#txn({
      compare,
      success: [{ type: 'put', key: this.#key, value }],
    })
    if (succeeded) {
      this.#pointer = pointer
      return revision
    }
    const found = await this.readPointer()
    return (found?.modRevision ?? 0) === from ? 'lost' : 'moved'
  }

  async #txn(txn: Txn): Promise<TxnResult> {
    const { client, etcdHistory } = this.#options
    try {
      const connectionMax = connectionMaxFor(etcdHistory)
      return await client.txn(txn, { timeoutMs: CALL_TIMEOUT_MS, connectionMax })
    } catch (error) {
      if (error instanceof EtcdError && error.kind === 'outdated') etcdHistory?.verify()
      throw error
    }
  }
}

export interface ArchiveTotals {
  readonly files: number
  readonly rows: number
  readonly bytes: number
  readonly oldestMs: number | undefined
  /** The start of the oldest day, by cluster. */
  readonly oldest: ReadonlyMap<string, number>
}

function totalsOf(manifest: Manifest | undefined): ArchiveTotals {
  const days = manifest?.days ?? []
  const oldest = new Map<string, number>()
  for (const { cluster, date, seen } of days) {
    // Events that were seen long before they were written are in the files of a later day.
    const startMs = Math.min(Date.parse(date), Math.floor(Math.max(0, seen[0]) / DAY_MS) * DAY_MS)
    oldest.set(cluster, Math.min(oldest.get(cluster) ?? startMs, startMs))
  }
  return {
    files: sum(days.map(({ files }) => files)),
    rows: sum(days.map(({ rows }) => rows)),
    bytes: sum(days.map(({ bytes }) => bytes)),
    oldestMs: oldest.size === 0 ? undefined : Math.min(...oldest.values()),
    oldest,
  }
}

interface Decoded {
  readonly content: unknown
  readonly bytes: number
}

/** Decodes a manifest or the list of a day. Throws a StoreError for anything else. */
export async function decodedObject(
  bytes: Buffer,
  name: string,
): Promise<{ readonly content: unknown; readonly size: number }> {
  try {
    const text = await unzip(bytes, { maxOutputLength: INFLATED_BYTES_MAX })
    return { content: JSON.parse(text.toString()), size: text.length }
  } catch (error) {
    throw new StoreError('unavailable', `${name} is not a manifest`, error)
  }
}

/** Throws for a value that no archiver wrote. */
function decodePointer(value: Buffer): Pointer {
  const pointer = parsedJson(value)
  if (!isObject(pointer) || !isObject(pointer['manifest'])) {
    throw new EtcdError({ kind: 'invalid', message: 'the key of the archive has a foreign value' })
  }
  return pointer as unknown as Pointer
}

function manifestName(numbered: string): string {
  return `${MANIFESTS}/${numbered}.json.gz`
}

/** The number of the manifest with this name; undefined for other objects. */
export function sequenceIn(name: string): number | undefined {
  const [, digits] = /^manifests\/(\d{12})-[0-9a-f]{12}\.json\.gz$/.exec(name) ?? []
  return digits === undefined ? undefined : Number(digits)
}

/** The state of the archive with this manifest; see `manifestOf`. */
export function stateOf({ name, sha256 }: StoredFile): string {
  return `${name.slice(MANIFESTS.length + 1, -'.json.gz'.length)}.${sha256}`
}

/** With these objects, and without those that were removed long ago. */
function removedAfter(
  manifest: Manifest | undefined,
  names: readonly string[],
): Manifest['removed'] {
  const now = Date.now()
  const before = (manifest?.removed ?? []).filter(({ atMs }) => now - atMs < REMOVED_MS)
  return [...before, ...names.map((name) => ({ name, atMs: now }))]
}

/** What was removed from all files. */
function removedFrom(files: readonly EventFile[]): Pick<Day, 'removed'> {
  const [first] = files
  const isSame = files.every(({ removed }) => removed === first?.removed)
  return isSame && first?.removed !== undefined ? { removed: first.removed } : {}
}

/** Unique: a name that a crashed attempt has used is never used again. */
function numbered(sequence: number): string {
  return `${String(sequence).padStart(12, '0')}-${randomBytes(6).toString('hex')}`
}

function touchedBy({ added, removed }: Edit): ReadonlySet<string> {
  const folders = added.map(dayFolder)
  for (const name of removed) folders.push(name.slice(0, name.lastIndexOf('/')))
  return new Set(folders)
}

function sha256Of(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}

function union(bounds: readonly Bounds<number>[]): Bounds<number> {
  return [
    bounds.reduce((least, [from]) => Math.min(least, from), Number.POSITIVE_INFINITY),
    bounds.reduce((most, [, to]) => Math.max(most, to), Number.NEGATIVE_INFINITY),
  ]
}
