/** The files of the archive: their store, copies of them, and processes that read and write them. */
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type EngineCounters, type EngineOptions, EngineProcess } from './engine/engine-process.ts'
import type { ReaderJobs, WriterJobs } from './engine/protocol.ts'
import { FileCache } from './store/file-cache.ts'
import type { ObjectStore } from './store/object-store.ts'
import { openStore } from './store/open-store.ts'
import { Uploads } from './write/uploads.ts'

/** What each process may write to disk when its memory is full. */
const SPILL_BYTES = 1024 ** 3
const COPIES = 'files'

export interface ArchiveFilesOptions {
  /** `file:///path` or `s3://bucket/prefix`. */
  readonly url: string
  /** A folder for copies of files, and for files that are being written. Default: temporary. */
  readonly cacheDir: string | undefined
  readonly cacheBytes: number
}

type EngineLimits = Pick<EngineOptions, 'memoryBytes'> &
  Partial<Pick<EngineOptions, 'threads' | 'connections' | 'idleMsMax'>>

interface Place {
  readonly folder: string
  readonly isTemporary: boolean
}

export class ArchiveFiles implements AsyncDisposable {
  readonly store: ObjectStore
  readonly cache: FileCache
  readonly uploads: Uploads
  readonly #folder: string
  readonly #isTemporary: boolean
  readonly #engines = new Map<string, EngineProcess<never>>()

  private constructor(store: ObjectStore, cache: FileCache, { folder, isTemporary }: Place) {
    this.store = store
    this.cache = cache
    this.uploads = new Uploads(store)
    this.#folder = folder
    this.#isTemporary = isTemporary
  }

  /** Rejects when the URL is not valid, or a folder cannot be created. */
  static async open(options: ArchiveFilesOptions): Promise<ArchiveFiles> {
    // biome-ignore lint/style/noProcessEnv: credentials of a bucket are in the environment.
    const store = await openStore(options.url, process.env)
    const folder = options.cacheDir ?? (await mkdtemp(join(tmpdir(), 'tidings-history-')))
    await mkdir(folder, { recursive: true, mode: 0o700 })
    const copies = { store, folder: join(folder, COPIES), bytesMax: options.cacheBytes }
    const cache = await FileCache.start(copies)
    return new ArchiveFiles(store, cache, { folder, isTemporary: options.cacheDir === undefined })
  }

  /** A process that writes files; it is started when it is first used. */
  async writer(name: string, limits: EngineLimits): Promise<EngineProcess<WriterJobs>> {
    return this.#engine<WriterJobs>('writer', name, limits)
  }

  async reader(name: string, limits: EngineLimits): Promise<EngineProcess<ReaderJobs>> {
    return this.#engine<ReaderJobs>('reader', name, limits)
  }

  get engines(): readonly (readonly [name: string, counters: EngineCounters])[] {
    return [...this.#engines].map(([name, engine]) => [name, engine.counters])
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#engines.values()].map((engine) => engine.close()))
    if (this.#isTemporary) await rm(this.#folder, { recursive: true, force: true })
  }

  async #engine<Jobs extends object>(
    role: EngineOptions['role'],
    name: string,
    { memoryBytes, idleMsMax, threads = 1, connections = 1 }: EngineLimits,
  ): Promise<EngineProcess<Jobs & never>> {
    const folder = join(this.#folder, name)
    // What an earlier process was writing is of no use.
    await rm(folder, { recursive: true, force: true })
    await mkdir(folder, { recursive: true, mode: 0o700 })
    const engine = new EngineProcess<Jobs & never>({
      role,
      folder,
      readFolders: [this.store.localFolder ?? join(this.#folder, COPIES)],
      memoryBytes,
      spillBytes: SPILL_BYTES,
      threads,
      connections,
      idleMsMax,
    })
    this.#engines.set(name, engine)
    return engine
  }
}
