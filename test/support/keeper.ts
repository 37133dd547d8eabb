import { EtcdClient } from '../../src/etcd/client.ts'
import { silentLog } from '../../src/lib/log/log.ts'
import type { RetentionPolicy } from '../../src/retention/policy.ts'
import { Retention } from '../../src/retention/retention.ts'
import { EtcdStorage } from '../../src/storage/etcd/etcd-storage.ts'
import { CachedEventStorage } from './cached-event-storage.ts'

const prefix = '/registry'

/** Storage, cache and retention on a real etcd, in this process, wired as the engine does it. */
export class Keeper {
  readonly client: EtcdClient
  readonly cached: CachedEventStorage
  readonly retention: Retention
  readonly #written: EtcdStorage
  readonly #ending = new AbortController()
  readonly #running: Promise<unknown>

  static async start(
    endpoints: readonly string[],
    policy: RetentionPolicy,
    replica = 'keeper',
  ): Promise<Keeper> {
    const keeper = new Keeper(endpoints, policy, replica)
    await keeper.cached.synced
    return keeper
  }

  private constructor(endpoints: readonly string[], policy: RetentionPolicy, replica: string) {
    const client = new EtcdClient({ endpoints, defaultTimeoutMs: 5_000 })
    this.client = client
    this.#written = new EtcdStorage({
      client,
      prefix,
      onCorrupt: (key) => {
        throw new Error(`not an event: ${key}`)
      },
    })
    const cached = new CachedEventStorage({
      inner: this.#written,
      log: silentLog,
      onReread: () => this.retention.forget(),
    })
    this.cached = cached
    this.retention = new Retention({
      client,
      storage: cached,
      deletes: cached,
      recall: (key) => cached.recall(key),
      sizes: cached.sizes,
      history: {
        verified: () => cached.verified,
        isVerified: () => cached.isVerifiedFor(client.newestConnection),
        verify: () => cached.verify(client.newestConnection),
      },
      prefix,
      replica,
      policy,
      compactionIntervalMs: 0,
      log: silentLog,
    })
    const { signal } = this.#ending
    this.#running = Promise.all([
      cached.run(signal),
      cached.synced.then(() => this.retention.run(signal)),
    ])
  }

  async stop(): Promise<void> {
    this.#ending.abort()
    await this.#running
    await this.#written.close()
    this.client.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }
}
