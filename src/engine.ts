import { hostname } from 'node:os'
import type { Registry } from '@prometheus-io/client'
import { CachedStorage } from './cache/cached-storage.ts'
import type { CertificatesInUse } from './certificate-metrics.ts'
import { consistentReadObserver, watchCache, watchRetention } from './engine-metrics.ts'
import type { FileLooks } from './file-metrics.ts'
import { within } from './lib/abort.ts'
import type { Log } from './lib/log.ts'
import type { Options } from './options/options.ts'
import { RetentionPolicy } from './retention/policy.ts'
import { Retention } from './retention/retention.ts'
import { Datastore } from './storage/datastore.ts'
import { EtcdStorage } from './storage/etcd-storage.ts'
import { StorageMetrics } from './storage/metrics.ts'
import { PrefixCheck } from './storage/prefix-check.ts'
import type { RegardedKind, StoredEvent, Unreadable, WatchedStorage } from './storage/storage.ts'
import { type BadValue, standIn } from './storage/stored-form.ts'

/** Time for a goodbye to an etcd that may be gone: a lease handed back, the last writes. */
const GOODBYE_MS = 3000
/**
 * For so long a probe waits for the follower to be sure of etcd's history. A watch that moves to another
 * member needs some 300 ms.
 */
const HISTORY_MS = 750

/** The parts that exist once the credentials have been read. */
interface Parts {
  readonly check: PrefixCheck
  readonly written: EtcdStorage
  readonly cached: CachedStorage
  readonly retention: Retention
  /** Rejects on a bug only. */
  readonly running: Promise<unknown>
}

/**
 * Everything below HTTP, put together: the tie to etcd, the storage that writes to it, the memory
 * that is read from, and retention. Opening waits for files only, never for etcd.
 */
export class Engine {
  readonly #options: Options
  readonly #log: Log
  readonly #registry: Registry
  readonly #metrics: StorageMetrics
  readonly #datastore: Datastore
  readonly #end = new AbortController()
  #parts: Parts | undefined

  constructor(options: Options, log: Log, registry: Registry, looks?: FileLooks) {
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
      looks,
    })
  }

  /** Shown to etcd, and of those who may vouch for it. */
  get certificates(): readonly CertificatesInUse[] {
    const inUse = (part: 'ca' | 'cert'): string | undefined =>
      this.#datastore.credentials?.[part]?.toString()
    return [
      { flag: '--etcd-cafile', pem: () => inUse('ca') },
      { flag: '--etcd-certfile', pem: () => inUse('cert') },
    ]
  }

  /**
   * Rejects when a credentials file cannot be read. `onFatal` hears of what can only be mended by
   * starting again.
   */
  async open(onFatal: (error: unknown) => void): Promise<void> {
    const client = await this.#datastore.open()
    const { etcdPrefix: prefix, groupCommit, eventTtlMs, etcdCompactionIntervalMs } = this.#options
    const log = this.#log.child({ logger: 'storage' })
    const check = new PrefixCheck({ client, prefix })
    const tellOfCorrupt = corruptValueLog(log)
    const written = new EtcdStorage({
      client,
      prefix,
      groupCommit,
      presence: this.#datastore.presence,
      space: this.#datastore.space,
      recall: (key) => cached.recall(key),
      recalledFor: () => cached.verified,
      check,
      onCorrupt: (etcdKey, value) => {
        if (value.fault === 'foreign') check.onForeign(etcdKey)
        tellOfCorrupt(etcdKey, value)
      },
      onCommit: this.#metrics.onCommit,
    })
    const cached = new CachedStorage({
      inner: written,
      log: this.#log.child({ logger: 'cache' }),
      onReread: () => retention.forget(),
      onConsistentRead: consistentReadObserver(this.#registry, this.#options.eventsGroup),
    })
    const retention = new Retention({
      client,
      storage: cached,
      recall: (key) => cached.recall(key),
      damaged: () => damagedIn(cached.unreadable),
      history: {
        verified: () => cached.verified,
        isVerified: () => cached.isVerifiedFor(client.newestConnection),
        verify: () => cached.verify(client.newestConnection),
      },
      prefix,
      replica: `${hostname()}/${process.pid}`,
      policy: RetentionPolicy.uniform(eventTtlMs),
      compactionIntervalMs: etcdCompactionIntervalMs,
      log: this.#log.child({ logger: 'retention' }),
    })
    if (eventTtlMs === 'never') log.warn('Events are never removed: etcd will fill up')
    const { signal } = this.#end
    const checked = check.run(cached.synced, signal)
    const running = Promise.all([
      cached.run(signal),
      // What is due is learned from memory, so memory comes first; and nothing is written, not even
      // a vote, into an etcd that holds what is not ours.
      checked.then(() => retention.run(signal)),
      cached.synced.then(() => this.#datastore.inspect()),
    ])
    running.catch(onFatal)
    this.#parts = { check, written, cached, retention, running }
    this.#watch(this.#parts)
  }

  /** Where events are kept; not before it has been opened. */
  get storage(): WatchedStorage {
    if (this.#parts === undefined) throw new Error('the engine has not been opened')
    return this.#parts.cached
  }

  /** Kinds that events have been about since the start. */
  regardedKinds(): readonly RegardedKind[] {
    return this.#parts?.cached.regardedKinds() ?? []
  }

  /** Why events cannot be read or written yet; undefined when they can. */
  get unsynced(): string | undefined {
    if (this.#parts?.cached.hasSynced !== true) return '1 informers not started yet: [events]'
    return this.#parts.check.pending
  }

  /** Rejects when memory is complete, but not known to be of the history that etcd now has. */
  async followsHistory(): Promise<void> {
    const cached = this.#parts?.cached
    if (cached?.hasSynced === true) await this.#isOfHistory(cached, 1)
  }

  /** Rejects with the reason when etcd does not answer in time, or not as the one that is followed. */
  async ask(): Promise<void> {
    const connection = await this.#datastore.ask()
    const cached = this.#parts?.cached
    if (cached?.hasSynced === true) await this.#isOfHistory(cached, connection)
  }

  /** For a moment that is not known whenever a connection breaks. */
  async #isOfHistory(cached: CachedStorage, connection: number): Promise<void> {
    const options = { signal: this.#end.signal, waitMsMax: HISTORY_MS }
    if (await cached.isOfHistory(connection, options)) return
    throw new Error('the connection to etcd broke; whether it is the same history is not known yet')
  }

  overdueMs(): number {
    return this.#datastore.overdueMs()
  }

  /** How much of their allowance writers may use: from 1 down to 0 as etcd fills up. */
  get room(): number {
    return this.#datastore.space.room
  }

  /** Lets another replica sweep, finishes writes under way, then leaves etcd. */
  async close(): Promise<void> {
    this.#end.abort()
    try {
      await within(GOODBYE_MS, Promise.all([this.#parts?.running, this.#parts?.written.close()]))
    } finally {
      this.#datastore.close()
    }
    await this.#parts?.running
  }

  #watch({ written, cached, retention }: Parts): void {
    const registry = this.#registry
    this.#metrics.watch(
      {
        objects: () => cached.count,
        waitingWrites: () => written.waiting,
        presence: this.#datastore.presence,
        space: this.#datastore.space,
      },
      registry,
    )
    watchCache(cached, registry, this.#options.eventsGroup)
    watchRetention(retention, registry)
  }
}

function* damagedIn(unreadable: Iterable<Unreadable>): Iterable<StoredEvent> {
  for (const value of unreadable) if (value.fault === 'damaged') yield standIn(value)
}

/**
 * Tells of the first values that are not events, then of each tenfold: a whole foreign store under
 * our prefix is one mistake, not a line for each of its keys.
 */
function corruptValueLog(log: Log): (etcdKey: Buffer, value: BadValue) => void {
  let count = 0
  return (etcdKey, { fault, what }) => {
    count += 1
    const isNews = count <= 5 || /^10*$/.test(String(count))
    if (!isNews) return
    log.error('A stored value is not an event', { etcdKey: etcdKey.toString(), fault, what, count })
  }
}
