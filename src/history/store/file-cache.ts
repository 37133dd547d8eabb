/**
 * Files of a bucket on the local disk, at most `bytesMax` of them. A lease pins a file; the least recently used file
 * without a lease is deleted to make room. Callers that want the same file share one download.
 *
 * A file is named for its SHA-256, its size and its download: two downloads never have the same path, so deleting
 * one cannot hit the other. The folder belongs to one process; the next process takes over its files.
 */
import { createHash, randomBytes } from 'node:crypto'
import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { StoredFile } from '../manifest.ts'
import { fileError } from './file-errors.ts'
import { digestOf, piecesOf, writeNewFile } from './object-bytes.ts'
import { type ObjectStore, StoreError, type StoreOptions } from './object-store.ts'
import { abortedError, orAborted } from './store-abort.ts'

const CACHED = /^(?<key>[0-9a-f]{64}-(?<bytes>[0-9]{1,15}))\.[0-9a-f]{16}$/
const UNFINISHED = /^\.download-[0-9a-f]{16}$/

export interface FileCacheOptions {
  readonly store: ObjectStore
  /** Created if it does not exist. Not used if the store has its files on this machine. */
  readonly folder: string
  readonly bytesMax: number
}

export interface FileCacheCounters {
  /** Of files and of downloads. */
  readonly bytes: number
  readonly files: number
  /** Files that were opened without a download of their own. */
  readonly hits: number
  readonly misses: number
  readonly evictions: number
}

/** The file stays at its path until the lease is disposed of. */
export interface FileLease extends Disposable {
  readonly path: string
}

interface Entry {
  readonly key: string
  readonly bytes: number
  /** Leases, and callers that wait for one. */
  pins: number
  /** Undefined until it is downloaded. */
  path: string | undefined
  /** Of the download, or of the check of a file that was taken over. */
  loading: Promise<void> | undefined
  isLoaded: boolean
  /** No longer an entry of the cache; its bytes are not counted. */
  isDropped: boolean
  readonly abort: AbortController
}

export class FileCache {
  readonly #store: ObjectStore
  readonly #folder: string
  readonly #bytesMax: number
  readonly #entries = new Map<string, Entry>()
  /** Entries without pins, the least recently used first. */
  readonly #idle = new Set<Entry>()
  /** Downloads that nobody waits for any more. */
  readonly #ending = new Set<Promise<void>>()
  #bytes = 0
  #idleBytes = 0
  #hits = 0
  #misses = 0
  #evictions = 0

  /** Takes over what an earlier process left in the folder. */
  static async start(options: FileCacheOptions): Promise<FileCache> {
    const cache = new FileCache(options)
    if (options.store.localPath === undefined) await cache.#takeOver()
    return cache
  }

  private constructor({ store, folder, bytesMax }: FileCacheOptions) {
    this.#store = store
    this.#folder = folder
    this.#bytesMax = bytesMax
  }

  /** Whether files are read where the store has them, without copies. */
  get isInPlace(): boolean {
    return this.#store.localPath !== undefined
  }

  get counters(): FileCacheCounters {
    return {
      bytes: this.#bytes,
      files: this.#entries.size,
      hits: this.#hits,
      misses: this.#misses,
      evictions: this.#evictions,
    }
  }

  /**
   * Fails with `full` if the files with leases leave no room for this one or the disk has none, and with
   * `unavailable` if the store has other bytes than described.
   */
  async open(file: StoredFile, options: StoreOptions): Promise<FileLease> {
    const inPlace = this.#store.localPath?.(file.name)
    if (inPlace !== undefined) return new Lease(inPlace, () => {})
    if (options.signal.aborted) throw abortedError(`open ${file.name}`, options.signal)
    await this.#untilEnded(file, options)
    const entry = this.#pinned(file)
    const path = await this.#loaded(entry, file, options)
    if (await isFile(path, file.bytes)) return new Lease(path, () => this.#unpin(entry))
    // Another program deleted it.
    this.#drop(entry)
    this.#unpin(entry)
    return await this.open(file, options)
  }

  /** Waits for downloads that nobody wants any more, if this file needs their room. */
  async #untilEnded(file: StoredFile, { signal }: StoreOptions): Promise<void> {
    const key = keyOf(file)
    while (this.#ending.size > 0 && !this.#entries.has(key) && !this.#hasRoom(file)) {
      await orAborted(`open ${file.name}`, signal, Promise.race(this.#ending))
    }
  }

  async #loaded(entry: Entry, file: StoredFile, { signal }: StoreOptions): Promise<string> {
    try {
      entry.loading ??= this.#load(entry, file, [])
      await orAborted(`open ${file.name}`, signal, entry.loading)
      return entry.path ?? ''
    } catch (error) {
      this.#unpin(entry)
      throw error
    }
  }

  #pinned(file: StoredFile): Entry {
    const key = keyOf(file)
    const found = this.#entries.get(key)
    if (found !== undefined) {
      this.#hits++
      found.pins++
      if (this.#idle.delete(found)) this.#idleBytes -= found.bytes
      return found
    }
    const removals = this.#makeRoom(file)
    this.#misses++
    const entry = this.#add(key, file.bytes, undefined)
    entry.pins++
    entry.loading = this.#load(entry, file, removals)
    return entry
  }

  #add(key: string, bytes: number, path: string | undefined): Entry {
    const entry: Entry = {
      key,
      bytes,
      path,
      pins: 0,
      loading: undefined,
      isLoaded: false,
      isDropped: false,
      abort: new AbortController(),
    }
    this.#entries.set(key, entry)
    this.#bytes += bytes
    return entry
  }

  #unpin(entry: Entry): void {
    entry.pins--
    if (entry.pins > 0 || entry.isDropped) return
    if (entry.isLoaded) {
      this.#rest(entry)
    } else {
      // Nobody waits for it any more. A caller that comes now begins another download.
      this.#entries.delete(entry.key)
      entry.abort.abort()
      this.#end(entry)
    }
  }

  #end({ loading }: Entry): void {
    // Nobody is left to get its error.
    const ended = Promise.resolve(loading).catch(() => {})
    const ending = ended.finally(() => this.#ending.delete(ending))
    this.#ending.add(ending)
  }

  #rest(entry: Entry): void {
    this.#idle.add(entry)
    this.#idleBytes += entry.bytes
  }

  #drop(entry: Entry): void {
    if (entry.isDropped) return
    entry.isDropped = true
    this.#bytes -= entry.bytes
    if (this.#entries.get(entry.key) === entry) this.#entries.delete(entry.key)
    if (this.#idle.delete(entry)) this.#idleBytes -= entry.bytes
  }

  async #load(entry: Entry, file: StoredFile, removals: readonly Promise<void>[]): Promise<void> {
    try {
      await Promise.all(removals)
      if (entry.path === undefined || !(await isIntact(entry.path, file))) {
        entry.path = await this.#fetch(file, entry)
      }
      entry.isLoaded = true
    } catch (error) {
      this.#drop(entry)
      throw error
    }
    if (entry.pins > 0) return
    // The last caller left at the very end.
    this.#drop(entry)
    await remove(entry.path)
  }

  /** On a disk that is smaller than the cache may be, other files make room. */
  async #fetch(file: StoredFile, entry: Entry): Promise<string> {
    if (entry.path !== undefined) {
      this.#misses++
      await remove(entry.path)
    }
    for (;;) {
      try {
        return await this.#download(file, entry)
      } catch (error) {
        const removals = isFull(error) ? this.#evict(file.bytes) : []
        if (removals.length === 0) throw error
        await Promise.all(removals)
      }
    }
  }

  async #download(file: StoredFile, { key, abort }: Entry): Promise<string> {
    const id = randomBytes(8).toString('hex')
    const unfinished = join(this.#folder, `.download-${id}`)
    const path = join(this.#folder, `${key}.${id}`)
    const pieces = this.#store.read(file.name, { signal: abort.signal })
    await writeNewFile(unfinished, verified(file, pieces))
    try {
      await rename(unfinished, path)
      return path
    } catch (error) {
      await remove(unfinished)
      throw fileError('write', path, error)
    }
  }

  /** Throws before anything is deleted if that would not suffice. */
  #makeRoom(file: StoredFile): readonly Promise<void>[] {
    if (this.#hasRoom(file)) return this.#evict(this.#bytes + file.bytes - this.#bytesMax)
    const message = `${file.name} of ${file.bytes} bytes does not fit: the cache is limited to ${this.#bytesMax} bytes`
    const inUse = this.#bytes - this.#idleBytes
    throw new StoreError('full', `${message}, and files of ${inUse} bytes are in use`)
  }

  #hasRoom({ bytes }: StoredFile): boolean {
    return this.#bytes - this.#idleBytes + bytes <= this.#bytesMax
  }

  /** Deletes files without leases until they had this many bytes, or none are left. */
  #evict(bytes: number): readonly Promise<void>[] {
    const removals: Promise<void>[] = []
    let freed = 0
    for (const entry of this.#idle) {
      if (freed >= bytes) break
      freed += entry.bytes
      this.#evictions++
      this.#drop(entry)
      if (entry.path !== undefined) removals.push(remove(entry.path))
    }
    return removals
  }

  async #takeOver(): Promise<void> {
    try {
      await mkdir(this.#folder, { recursive: true })
      const left = await Promise.all((await readdir(this.#folder)).map((name) => this.#left(name)))
      left.sort((a, b) => (a?.modifiedAtMs ?? 0) - (b?.modifiedAtMs ?? 0))
      for (const file of left) {
        if (file === undefined) continue
        if (this.#entries.has(file.key)) await remove(file.path)
        else this.#rest(this.#add(file.key, file.bytes, file.path))
      }
      await Promise.all(this.#evict(this.#bytes - this.#bytesMax))
    } catch (error) {
      throw fileError('use', this.#folder, error)
    }
  }

  /** A whole file of an earlier process. Deletes one that is not whole, and leaves alone what is not ours. */
  async #left(name: string): Promise<LeftFile | undefined> {
    const path = join(this.#folder, name)
    const { key = '', bytes = '' } = CACHED.exec(name)?.groups ?? {}
    if (key === '' && !UNFINISHED.test(name)) return undefined
    const { size, mtimeMs } = await stat(path)
    if (key !== '' && size === Number(bytes)) {
      return { key, path, bytes: size, modifiedAtMs: mtimeMs }
    }
    await remove(path)
    return undefined
  }
}

interface LeftFile {
  readonly key: string
  readonly path: string
  readonly bytes: number
  readonly modifiedAtMs: number
}

class Lease implements FileLease {
  readonly path: string
  #release: (() => void) | undefined

  constructor(path: string, release: () => void) {
    this.path = path
    this.#release = release
  }

  [Symbol.dispose](): void {
    this.#release?.()
    this.#release = undefined
  }
}

/** A part of a path: a manifest that was tampered with must not lead out of the folder. */
function keyOf({ name, bytes, sha256 }: StoredFile): string {
  const key = `${sha256}-${bytes}`
  if (CACHED.test(`${key}.${'0'.repeat(16)}`)) return key
  throw new StoreError('unavailable', `the manifest describes ${name} without its SHA-256 or size`)
}

/** The pieces, all of them and no others. */
async function* verified(file: StoredFile, pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const hash = createHash('sha256')
  let bytes = 0
  for await (const piece of pieces) {
    bytes += piece.length
    if (bytes > file.bytes) throw damaged(file, `has more than ${file.bytes} bytes`)
    hash.update(piece)
    yield piece
  }
  if (bytes !== file.bytes) throw damaged(file, `has ${bytes} bytes, not ${file.bytes}`)
  if (hash.digest('hex') !== file.sha256) {
    throw damaged(file, `does not have the SHA-256 ${file.sha256}`)
  }
}

function damaged({ name }: StoredFile, finding: string): StoreError {
  return new StoreError('unavailable', `${name} is damaged: in the store it ${finding}`)
}

/** A file may be damaged if the machine failed while it was written. */
async function isIntact(path: string, file: StoredFile): Promise<boolean> {
  try {
    await using handle = await open(path)
    return (await digestOf(piecesOf(handle))).sha256 === file.sha256
  } catch {
    // Whatever it is, a download replaces it.
    return false
  }
}

async function isFile(path: string, bytes: number): Promise<boolean> {
  try {
    return (await stat(path)).size === bytes
  } catch {
    return false
  }
}

async function remove(path: string): Promise<void> {
  await rm(path, { force: true }).catch((error) => {
    throw fileError('delete', path, error)
  })
}

function isFull(error: unknown): boolean {
  return error instanceof StoreError && error.kind === 'full'
}
