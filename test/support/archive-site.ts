/** An archive on a real etcd and a directory, with events of which it is known what they were. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { EtcdClient, type Txn } from '../../src/etcd/client.ts'
import { ArchiveFiles } from '../../src/history/archive-files.ts'
import { Catalogue } from '../../src/history/catalogue.ts'
import type { WriteJobs } from '../../src/history/engine/protocol.ts'
import { writeJobsOf } from '../../src/history/engine/writer.ts'
import { DirectoryStore } from '../../src/history/store/directory-store.ts'
import type { ObjectStore } from '../../src/history/store/object-store.ts'
import { Archiver } from '../../src/history/write/archiver.ts'
import { Uploads } from '../../src/history/write/uploads.ts'
import { aborted } from '../../src/lib/abort.ts'
import { silentLog } from '../../src/lib/log/log.ts'
import { aLane } from '../../src/lib/run-queue.fixture.ts'
import { EtcdStorage } from '../../src/storage/etcd/etcd-storage.ts'
import type { Version } from '../../src/storage/resource-version.ts'
import type { EventKey } from '../../src/storage/storage.ts'
import { archiveRows, countedByUid, newestRows } from './archive-rows.ts'
import { CachedEventStorage } from './cached-event-storage.ts'
import { startEtcd } from './etcd.ts'
import { eventually } from './eventually.ts'

export const prefix: string = '/tidings'
const { signal: never } = new AbortController()

/** Where the process that archives may end. */
export const crashPoints = [
  'append',
  'flush',
  'put cluster=',
  'put rollups/',
  'put manifests/cluster=',
  'put manifests/0',
  'commit',
  'committed',
] as const

type CrashPoint = (typeof crashPoints)[number]

/** Ends everything at the n-th passing of a point, as `kill -9` does: what was called never returns. */
export class Crash {
  readonly ending: AbortController = new AbortController()
  readonly #at: CrashPoint | undefined
  #left: number
  hasHappened = false

  constructor(at?: CrashPoint, left = 1) {
    this.#at = at
    this.#left = left
  }

  async pass(point: string): Promise<void> {
    if (this.ending.signal.aborted) await new Promise(() => {})
    if (this.#at === undefined || !point.startsWith(this.#at) || --this.#left > 0) return
    this.hasHappened = true
    this.ending.abort()
    await new Promise(() => {})
  }
}

/** A real etcd, the cache on it, and a directory. */
export class ArchiveSite implements AsyncDisposable {
  readonly endpoints: readonly string[]
  readonly folder: string
  readonly store: DirectoryStore
  readonly client: EtcdClient
  cached: CachedEventStorage
  readonly #stack: AsyncDisposableStack
  readonly versions: Map<string, { version: Version; count: number }> = new Map()

  static async start(): Promise<ArchiveSite> {
    const stack = new AsyncDisposableStack()
    const etcd = stack.use(await startEtcd())
    const folder = await mkdtemp(join(tmpdir(), 'tidings-archiver-'))
    stack.defer(() => rm(folder, { recursive: true, force: true }))
    const site = new ArchiveSite(stack, etcd.endpoints, folder)
    await site.cached.synced
    return site
  }

  private constructor(stack: AsyncDisposableStack, endpoints: readonly string[], folder: string) {
    this.#stack = stack
    this.endpoints = endpoints
    this.folder = folder
    this.store = new DirectoryStore(join(folder, 'store'))
    this.client = new EtcdClient({ endpoints, defaultTimeoutMs: 5_000 })
    const written = new EtcdStorage({ client: this.client, prefix, onCorrupt: () => {} })
    this.cached = new CachedEventStorage({ inner: written, log: silentLog })
    const ending = new AbortController()
    const running = this.cached.run(ending.signal)
    stack.defer(async () => {
      ending.abort()
      await running
      await written.close()
      this.client.close()
    })
  }

  catalogue(
    client: Pick<EtcdClient, 'range' | 'txn'> = this.client,
    store: ObjectStore = this.store,
  ): Catalogue {
    return new Catalogue({ client, prefix, replica: 'host/1', store, log: silentLog })
  }

  /** Creates events, or raises the count of those that exist. */
  async write(names: readonly string[], lastSeen: string): Promise<void> {
    await Promise.all(
      names.map(async (name) => {
        const key: EventKey = { cluster: 'local', namespace: 'shop', name }
        const { count = 0 } = this.versions.get(name) ?? {}
        const body = bodyOf(key, count + 1, lastSeen)
        const stored = await this.cached.update(key, () => body, { isProbablyNew: count === 0 })
        this.versions.set(name, { version: stored.version, count: count + 1 })
      }),
    )
  }

  /** Archives until the crash, or until the returned object is disposed of. */
  async archive(
    crash: Crash,
    client: Pick<EtcdClient, 'range' | 'txn'> = this.client,
  ): Promise<AsyncDisposable & { archiver: Archiver }> {
    const files = await ArchiveFiles.open({
      url: `file://${this.folder}/store`,
      cacheDir: join(this.folder, randomUUID()),
      cacheBytes: 2 ** 30,
    })
    const jobs = crashingJobs(
      writeJobsOf(await files.writer('w', { memoryBytes: 128 * 2 ** 20 })),
      crash,
    )
    const store = crashingStore(this.store, crash)
    const archiver = new Archiver({
      client: this.client,
      prefix,
      replica: 'host/1',
      storage: this.cached,
      catalogue: this.catalogue(crashingClient(client, crash), store),
      store,
      jobs,
      uploads: new Uploads(store),
      upkeep: { run: (term) => aborted(term.signal) },
      isArchived: () => true,
      segmentMs: 300,
      segmentBytes: 64 * 2 ** 20,
      leaseTtlSeconds: 1,
      lane: aLane(),
      log: silentLog,
    })
    // After a crash it waits for what never returns, like a process that is gone.
    const running = archiver.run(crash.ending.signal)
    return {
      archiver,
      [Symbol.asyncDispose]: async () => {
        crash.ending.abort()
        if (!crash.hasHappened) await running
        await files[Symbol.asyncDispose]()
      },
    }
  }

  /** Continues with another cache, which remembers no changes. */
  async replaceCache(): Promise<AsyncDisposable> {
    const before = this.cached
    const written = new EtcdStorage({ client: this.client, prefix, onCorrupt: () => {} })
    const cached = new CachedEventStorage({ inner: written, log: silentLog })
    const ending = new AbortController()
    const running = cached.run(ending.signal)
    await cached.synced
    this.cached = cached
    return {
      [Symbol.asyncDispose]: async () => {
        this.cached = before
        ending.abort()
        await running
        await written.close()
      },
    }
  }

  /** Waits until everything that was written is archived. */
  async archived(): Promise<void> {
    const newest = Math.max(...[...this.versions.values()].map(({ version }) => version))
    const catalogue = this.catalogue()
    const isArchived = async () =>
      ((await catalogue.readPointer(never))?.pointer.position ?? 0) >= newest
    await eventually('everything is archived', isArchived, 30_000)
  }

  /** Each event is in the archive with its newest state, and each occurrence once. */
  async check(): Promise<void> {
    const rows = await archiveRows(this.catalogue(), this.store)
    const counted = countedByUid(rows)
    const newest = new Map([...newestRows(rows).values()].map((row) => [row.name, row]))
    assert.equal(newest.size, this.versions.size)
    for (const [name, { version, count }] of this.versions) {
      const row = newest.get(name)
      assert.equal(Number(row?.resource_version), version, name)
      assert.equal(JSON.parse(row?.json ?? '').metadata.resourceVersion, String(version))
      assert.equal(counted.get(row?.uid ?? ''), count, name)
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#stack.disposeAsync()
  }
}

function bodyOf({ namespace, name }: EventKey, count: number, lastSeen: string): Buffer {
  return Buffer.from(
    JSON.stringify({
      metadata: {
        name,
        namespace,
        uid: `uid-of-${name}`,
        creationTimestamp: '2026-01-01T00:00:00Z',
      },
      eventTime: '2026-01-01T00:00:00.000000Z',
      series: { count, lastObservedTime: lastSeen },
      reason: 'BackOff',
      type: 'Warning',
      regarding: { kind: 'Pod', namespace, name: `pod-${name}` },
      note: `seen ${count} times`,
    }),
  )
}

function crashingStore(store: DirectoryStore, crash: Crash): ObjectStore {
  return {
    put: async (name, content, options) => {
      await crash.pass(`put ${name}`)
      await store.put(name, content, options)
    },
    get: (name, options) => store.get(name, options),
    read: (name, options) => store.read(name, options),
    download: (name, path, options) => store.download(name, path, options),
    list: (start, options) => store.list(start, options),
    delete: (name, options) => store.delete(name, options),
    localPath: (name) => store.localPath(name),
  }
}

function crashingJobs(jobs: WriteJobs, crash: Crash): WriteJobs {
  return {
    ...jobs,
    append: async (changes, options) => {
      await crash.pass('append')
      return jobs.append(changes, options)
    },
    flush: async (sequence, options) => {
      await crash.pass('flush')
      return jobs.flush(sequence, options)
    },
  }
}

function crashingClient(
  client: Pick<EtcdClient, 'range' | 'txn'>,
  crash: Crash,
): Pick<EtcdClient, 'range' | 'txn'> {
  return {
    range: (request, options) => client.range(request, options),
    txn: async (txn: Txn, options) => {
      await crash.pass('commit')
      const result = await client.txn(txn, options)
      await crash.pass('committed')
      return result
    },
  }
}
