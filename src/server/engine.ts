import { hostname } from 'node:os'
import type { Registry } from '@prometheus-io/client'
import type { Event } from '../api/event.ts'
import { CachedStorage } from '../cache/cached-storage.ts'
import type { ClustersSource } from '../clusters/clusters-file.ts'
import type { EtcdClient } from '../etcd/client.ts'
import { History } from '../history/history.ts'
import { TieredStorage } from '../history/tiers/tiered-storage.ts'
import { TieredSummaries } from '../history/tiers/tiered-summaries.ts'
import { within } from '../lib/abort.ts'
import type { Log } from '../lib/log/log.ts'
import { RunQueue } from '../lib/run-queue.ts'
import type { MirrorManager } from '../mirror/mirror-manager.ts'
import type { Options } from '../options/options.ts'
import type { WriteAdmission } from '../registry/admission/write-admission.ts'
import { isCopiedLate, TopSources } from '../registry/top-sources.ts'
import { ConnectionHistory } from '../retention/connection-history.ts'
import { type Lifetime, RetentionPolicy } from '../retention/policy.ts'
import type { PolicySource } from '../retention/policy-file.ts'
import { Retention } from '../retention/retention.ts'
import type { CountedWrites } from '../storage/counted-writes.ts'
import { replicaName } from '../storage/etcd/control/control-values.ts'
import { Datastore } from '../storage/etcd/datastore.ts'
import { EtcdStorage } from '../storage/etcd/etcd-storage.ts'
import { EventKeys } from '../storage/etcd/keys.ts'
import { corruptValueHandler, PrefixCheck } from '../storage/etcd/prefix-check.ts'
import { type EventFields, fieldsIn, type RegardedKind } from '../storage/event-fields.ts'
import { OwnWrites } from '../storage/own-writes.ts'
import type { EventScope, ReadStorage } from '../storage/storage.ts'
import { damagedIn } from '../storage/stored-form.ts'
import type { StoredSizes } from '../storage/stored-sizes.ts'
import { historyStatus } from './history-status.ts'
import type { MemoryBudget } from './memory-budget.ts'
import {
  registerChangeMetrics,
  registerTopSourceMetrics,
  type Writer,
  writersTo,
} from './metrics/accounts.ts'
import { consistentReadObserver, loadObserver, registerCacheMetrics } from './metrics/cache.ts'
import type { CertificatesInUse } from './metrics/certificates.ts'
import type { FilePollStatus } from './metrics/files.ts'
import { historyQueryObserver, registerHistoryMetrics } from './metrics/history.ts'
import { registerRetentionMetrics } from './metrics/retention.ts'
import { StorageMetrics } from './metrics/storage.ts'
import { createMirrors } from './mirrors.ts'
import type { EventParts } from './services.ts'
import { windowStatuses } from './windows.ts'

/** Time limit for the last calls to an etcd that may be down: revoking the lease, last writes. */
const CLOSE_MS_MAX = 3000
const MIB = 1024 * 1024
/** The part of memory for events that they may take while expired ones wait for the archive. */
const ROOM_PART = 0.8
/** The next events to expire that retention without memory remembers: at most 24 MiB of keys. */
const UNCACHED_DUE_MAX = 20_000
/** Retention without memory reads each event before its delete: by default 2 MiB at most in total. */
const UNCACHED_DELETES_MAX = 16
/**
 * How long a probe waits until the follower has verified etcd's history. A watch that moves to
 * another member needs about 300 ms.
 */
const HISTORY_MS_MAX = 750

/** Files that are followed while the server runs, if there are any. */
export interface EngineFiles {
  readonly clusters?: ClustersSource | undefined
  readonly policy?: PolicySource | undefined
}

/** What is known only when the engine is opened. */
export interface OpenParts extends EngineFiles {
  /** Undefined: mirrors write as fast as they can. */
  readonly admission?: WriteAdmission | undefined
}

/** Caches have their largest size without a budget. */
type EngineParts = {
  readonly polls?: FilePollStatus
  readonly budget?: MemoryBudget
  readonly runQueue?: RunQueue
}

/** What requests of clients use. */
type ForClients = Pick<
  EventParts,
  | 'writes'
  | 'sources'
  | 'namespaces'
  | 'summaries'
  | 'windows'
  | 'oldestIn'
  | 'archivedSince'
  | 'marksOf'
> & { readonly storage: ReadStorage }

/** What retention reads and deletes. */
interface Storages {
  readonly client: EtcdClient
  readonly cached: CachedStorage
  readonly written: EtcdStorage
  readonly deletes: CountedWrites
  readonly replica: string
}

/** The parts that are created once the credentials have been read. */
interface Parts {
  readonly check: PrefixCheck
  readonly written: EtcdStorage
  readonly cached: CachedStorage
  readonly retention: Retention
  readonly writers: Readonly<Record<Writer, CountedWrites>>
  readonly mirrors: MirrorManager | undefined
  /** Undefined without `--history`. */
  readonly history: History | undefined
  /** Rejects on a bug only. */
  readonly running: Promise<unknown>
}

/**
 * Builds everything below HTTP: the etcd client, the storage that writes to etcd, the cache that
 * serves reads, and retention. Opening waits for files only, never for etcd.
 */
export class Engine {
  readonly #options: Options
  readonly #log: Log
  readonly #registry: Registry
  readonly #metrics: StorageMetrics
  readonly #datastore: Datastore
  readonly #budget: EngineParts['budget']
  readonly #runQueue: RunQueue
  readonly #end = new AbortController()
  /** Who writes most events now. */
  readonly sources: TopSources = new TopSources()
  #parts: Parts | undefined

  constructor(options: Options, log: Log, registry: Registry, parts: EngineParts = {}) {
    this.#budget = parts.budget
    this.#runQueue = parts.runQueue ?? new RunQueue()
    this.#options = options
    this.#log = log
    this.#registry = registry
    this.#metrics = new StorageMetrics(registry, options.eventsGroup)
    this.#datastore = new Datastore({
      servers: options.etcdServers,
      caFile: options.etcdCaFile,
      certFile: options.etcdCertFile,
      keyFile: options.etcdKeyFile,
      prefix: options.etcdPrefix,
      healthTimeoutMs: options.etcdHealthcheckTimeoutMs,
      quotaBytes: options.etcdQuotaBytes === 0 ? undefined : options.etcdQuotaBytes,
      log: log.child({ logger: 'storage' }),
      onCall: this.#metrics.onCall,
      polls: parts.polls,
    })
  }

  /** The client certificate for etcd, and the authorities that verify etcd's. */
  get certificates(): readonly CertificatesInUse[] {
    const inUse = (part: 'ca' | 'cert'): string | undefined =>
      this.#datastore.credentials?.[part]?.toString()
    return [
      { flag: '--etcd-cafile', pem: () => inUse('ca') },
      { flag: '--etcd-certfile', pem: () => inUse('cert') },
    ]
  }

  /**
   * Rejects when a credentials file cannot be read. `onFatal` is called with errors that only a
   * restart can fix.
   */
  async open(onFatal: (error: unknown) => void, parts: OpenParts = {}): Promise<void> {
    const { clusters, policy: policyFile, admission } = parts
    const client = await this.#datastore.open()
    const { etcdPrefix: prefix, groupCommit, eventTtlMs } = this.#options
    const log = this.#log.child({ logger: 'storage' })
    const check = new PrefixCheck({ client, prefix, log })
    const written = new EtcdStorage({
      client,
      prefix,
      groupCommit,
      availability: this.#datastore.availability,
      quotaAlarm: this.#datastore.quotaAlarm,
      ownWrites: new OwnWrites(),
      check,
      onCorrupt: corruptValueHandler(check, new EventKeys(prefix), log),
      onCommit: this.#metrics.onCommit,
    })
    const cached = new CachedStorage({
      inner: written,
      runQueue: this.#runQueue,
      log: this.#log.child({ logger: 'cache' }),
      historyBounds: this.#budget?.history,
      memoryBounds: this.#budget?.memory,
      loadBytesMax: this.#budget?.loadBytes,
      onLoaded: loadObserver(this.#registry, this.#options.eventsGroup),
      onReread: () => {
        history?.forget()
        retention.forget()
        mirrors?.forget()
      },
      onWritten: (stored, atMs) => {
        const isMirrored = clusters?.clusters.get(stored.key.cluster)?.mirror !== undefined
        if (!isMirrored || !isCopiedLate(stored)) this.sources.changed(stored, atMs)
      },
      onConsistentRead: consistentReadObserver(this.#registry, this.#options.eventsGroup),
    })
    const writers = writersTo(written, (key) => cached.known(key))
    const replica = replicaName(hostname(), process.pid)
    const storages = { client, cached, written, deletes: writers.retention, replica }
    const history = await this.#openHistory(storages, () => retention)
    const { retention, retentionWithoutMemory } = this.#retain(storages, { policyFile, history })
    const mirrors =
      clusters &&
      createMirrors({
        client,
        cached,
        writes: writers.mirror,
        prefix,
        replica,
        clusters,
        retention,
        eventBytesMax: this.#options.maxEventBytes,
        admission,
        memoryLimitBytes: this.#budget?.limit.bytes,
        lane: this.#runQueue.serverLane('mirrors'),
        log: this.#log.child({ logger: 'mirror' }),
      })
    if (eventTtlMs === 'never') log.warn('Events never expire: etcd will fill up')
    const running = this.#run(
      { check, cached, retention, mirrors, history },
      retentionWithoutMemory,
    )
    running.catch(onFatal)
    this.#parts = { check, written, cached, retention, writers, mirrors, history, running }
    this.#registerMetrics(this.#parts)
  }

  /** Undefined without `--history`. */
  async #openHistory(
    { client, cached, replica }: Storages,
    retention: () => Retention,
  ): Promise<History | undefined> {
    const options = this.#options
    const { history: url } = options
    if (url === undefined) return undefined
    return History.open({
      settings: {
        url,
        cacheDir: options.historyCacheDir,
        cacheBytes: options.historyCacheBytes,
        segmentMs: options.historySegmentIntervalMs,
        segmentBytes: options.historySegmentBytes,
        readerMemoryBytes: options.historyReaderMemoryBytes,
        readerThreads: options.historyReaderThreads,
        queryTimeoutMs: options.historyQueryTimeoutMs,
      },
      client,
      prefix: options.etcdPrefix,
      replica,
      storage: cached,
      etcdHistory: {
        verified: () => cached.verified,
        verify: () => cached.verify(client.newestConnection),
      },
      policy: () => retention().policy,
      totals: () => retention().totals,
      hasRoom: () => this.#hasRoom(cached),
      onQuery: historyQueryObserver(this.#registry),
      lane: this.#runQueue.serverLane('history'),
      log: this.#log.child({ logger: 'history' }),
    })
  }

  /** Whether expired events can stay until they are archived, without other writes being refused. */
  #hasRoom(cached: CachedStorage): boolean {
    const eventBytesMax = this.#budget?.eventBytes ?? Number.POSITIVE_INFINITY
    // The headroom of a full etcd is 1: nothing is written to it anyway, the archive's position included.
    if (this.#datastore.quotaAlarm.isFull) return false
    return this.headroom === 1 && cached.eventBytes < eventBytesMax * ROOM_PART
  }

  #retain(
    { client, cached, written, deletes, replica }: Storages,
    {
      policyFile,
      history,
    }: { readonly policyFile: PolicySource | undefined; readonly history: History | undefined },
  ): { readonly retention: Retention; readonly retentionWithoutMemory: Retention } {
    const { etcdPrefix, eventTtlMs, etcdCompactionIntervalMs } = this.#options
    const retaining = {
      client,
      deletes,
      archive: history?.state,
      prefix: etcdPrefix,
      replica,
      policy: policyFile?.policy ?? RetentionPolicy.uniform(eventTtlMs),
      compactionIntervalMs: etcdCompactionIntervalMs,
      lane: this.#runQueue.serverLane('retention'),
      log: this.#log.child({ logger: 'retention' }),
    }
    const retention = new Retention({
      ...retaining,
      storage: cached,
      recall: (key) => cached.recall(key),
      damaged: () => damagedIn(cached.unreadable),
      sizes: cached.sizes,
      history: {
        verified: () => cached.verified,
        isVerified: () => cached.isVerifiedFor(client.newestConnection),
        verify: () => cached.verify(client.newestConnection),
      },
    })
    // Makes space while the events exceed memory. It reads from etcd, and enforces no budgets: other
    // replicas, which can, lead first.
    const retentionWithoutMemory: Retention = new Retention({
      ...retaining,
      storage: written,
      deletesAtOnceMax: UNCACHED_DELETES_MAX,
      dueEntriesMax: UNCACHED_DUE_MAX,
      isStandby: true,
      history: new ConnectionHistory(
        () => client.newestConnection,
        () => retentionWithoutMemory.forget(),
      ),
    })
    policyFile?.onChange(() => {
      retention.replacePolicy(policyFile.policy)
      retentionWithoutMemory.replacePolicy(policyFile.policy)
    })
    return { retention, retentionWithoutMemory }
  }

  /** Rejects on a bug only. */
  #run(
    parts: Pick<Parts, 'check' | 'cached' | 'retention' | 'mirrors' | 'history'>,
    retentionWithoutMemory: Retention,
  ): Promise<unknown> {
    const { check, cached, retention, mirrors, history } = parts
    const { signal } = this.#end
    const checked = check.run(cached.listed, signal)
    const untilSynced = async (): Promise<void> => {
      if (cached.hasSynced) return
      const synced = new AbortController()
      void cached.synced.then(() => synced.abort())
      await retentionWithoutMemory.run(AbortSignal.any([signal, synced.signal]))
    }
    return Promise.all([
      cached.run(signal),
      // Retention reads the cache, so the cache is filled first; and nothing, not even an election
      // key, is written to an etcd that holds values of another program.
      checked
        .then(untilSynced)
        .then(() =>
          Promise.all([retention.run(signal), mirrors?.run(signal), history?.run(signal)]),
        ),
    ])
  }

  /** Throws before the engine is open. */
  get storage(): CachedStorage {
    if (this.#parts === undefined) throw new Error('the engine has not been opened')
    return this.#parts.cached
  }

  /** What requests of clients use. Throws before the engine is open. */
  get forClients(): ForClients {
    if (this.#parts === undefined) throw new Error('the engine has not been opened')
    const { cached: storage, writers, retention, history } = this.#parts
    const archive = history?.reader
    return {
      storage: archive === undefined ? storage : new TieredStorage(storage, archive),
      writes: writers.client,
      sources: this.sources,
      namespaces: storage.namespaces,
      summaries:
        archive === undefined ? storage.summaries : new TieredSummaries(storage.summaries, archive),
      windows: windowStatuses(storage, retention, history && (() => archiveWindow(history))),
      oldestIn: (scope, lane) => storage.oldest.in(scope, lane),
      archivedSince: history && (({ cluster }) => history.catalogue.oldestMsIn(cluster)),
      marksOf: storage.marksOf,
    }
  }

  /** Number of live events; 0 before the engine is open. */
  countIn(scope: EventScope): number {
    return this.#parts?.cached.countIn(scope) ?? 0
  }

  /** The size of the buffers of live events; 0 before the engine is open. */
  get eventBytes(): number {
    return this.#parts?.cached.eventBytes ?? 0
  }

  /** Undefined without a clusters file, and before the engine is open. */
  get mirrors(): MirrorManager | undefined {
    return this.#parts?.mirrors
  }

  /** Kinds that events of a cluster have been about since the start of this process. */
  regardedKinds(cluster: string): readonly RegardedKind[] {
    return this.#parts?.cached.regardedKinds(cluster) ?? []
  }

  /** Why events cannot be read or written yet; undefined when they can. */
  get unsynced(): string | undefined {
    const excess = this.#parts?.cached.excess
    if (excess !== undefined) {
      const [eventsMib, partMib] = [excess.bytes, excess.bytesMax].map((n) => Math.round(n / MIB))
      return `the events in etcd take ${eventsMib} MiB, more than the ${partMib} MiB that the memory limit leaves for them: delete events, shorten their lifetimes, or raise the memory limit`
    }
    if (this.#parts?.cached.hasSynced !== true) return '1 informers not started yet: [events]'
    return this.#parts.check.pending
  }

  /** Rejects when the cache is filled, but not verified to be of etcd's current history. */
  async followsHistory(): Promise<void> {
    const cached = this.#parts?.cached
    if (cached?.hasSynced === true) await this.#isOfHistory(cached, 1)
  }

  /** Rejects with the reason when etcd does not respond in time, or with an unverified history. */
  async ask(): Promise<void> {
    const connection = await this.#datastore.checkHealth()
    const cached = this.#parts?.cached
    if (cached?.hasSynced === true) await this.#isOfHistory(cached, connection)
  }

  /** The history is unverified for a moment whenever a connection breaks. */
  async #isOfHistory(cached: CachedStorage, connection: number): Promise<void> {
    const options = { signal: this.#end.signal, waitMsMax: HISTORY_MS_MAX }
    if (await cached.isOfHistory(connection, options)) return
    throw new Error('the connection to etcd broke; its history is not verified yet')
  }

  overdueMs(): number {
    return this.#datastore.overdueMs()
  }

  /** The share of their byte limits that writers may use: from 1 down to 0 as etcd fills up. */
  get headroom(): number {
    return this.#datastore.quotaAlarm.writeFraction
  }

  /** Space used in etcd, and the space at which it rejects writes; undefined while unknown. */
  get etcdSpace(): { readonly usedBytes: number; readonly budgetBytes: number } | undefined {
    return this.#datastore.quotaAlarm.space
  }

  /** What namespaces and clusters hold; undefined before the engine is open. */
  get sizes(): StoredSizes | undefined {
    return this.#parts?.cached.sizes
  }

  /** How long `eventBytes` and `sizes` have not followed etcd for certain. */
  get silentMs(): number {
    return this.#parts?.cached.lagMs ?? 0
  }

  /** How long an event is retained after a write, by the current policy. */
  lifetimeOf(cluster: string, event: Event): Lifetime {
    const { name = '', namespace = '' } = event.metadata
    let fields: EventFields | undefined
    return this.#parts === undefined
      ? 'never'
      : this.#parts.retention.policy.lifetimeOf({
          key: { cluster, namespace, name },
          get fields() {
            fields ??= fieldsIn(event)
            return fields
          },
        })
  }

  /** Gives up leadership, finishes the writes in flight, then disconnects from etcd. */
  async close(): Promise<void> {
    this.#end.abort()
    try {
      await within(CLOSE_MS_MAX, Promise.all([this.#parts?.running, this.#parts?.written.close()]))
    } finally {
      this.#datastore.close()
    }
    await this.#parts?.running
  }

  #registerMetrics({ written, cached, retention, writers, history }: Parts): void {
    const registry = this.#registry
    this.#metrics.registerGauges(
      {
        objects: () => cached.count,
        waitingWrites: () => written.waiting,
        availability: this.#datastore.availability,
        quotaAlarm: this.#datastore.quotaAlarm,
      },
      registry,
    )
    registerCacheMetrics(cached, registry, this.#options.eventsGroup)
    registerRetentionMetrics(retention, registry)
    if (history !== undefined) {
      const { historyCacheBytes } = this.#options
      registerHistoryMetrics(() => historyStatus(history, historyCacheBytes), registry)
    }
    registerChangeMetrics(writers, registry)
    registerTopSourceMetrics(this.sources, registry)
  }
}

/** What retention windows say of the archive; undefined until something is archived. */
function archiveWindow({ catalogue, reader }: History): ReturnType<WindowArchive> {
  const { pointer } = catalogue
  if (pointer === undefined) return undefined
  const { position, positionAtMs } = pointer
  return {
    position,
    positionAtMs,
    oldestMsOf: (cluster) => catalogue.oldestMsIn(cluster),
    windowStart: (scope) => reader.knownTiersOf(scope)?.memoryFromMs ?? Number.NEGATIVE_INFINITY,
  }
}

type WindowArchive = NonNullable<Parameters<typeof windowStatuses>[2]>
