import type { ClusterConfig } from '../../src/clusters/clusters-file.ts'
import { EtcdClient } from '../../src/etcd/client.ts'
import { silentLog } from '../../src/lib/log/log.ts'
import { MirrorManager, type MirrorManagerOptions } from '../../src/mirror/mirror-manager.ts'
import type { Origin } from '../../src/mirror/origin.ts'
import { EtcdStorage } from '../../src/storage/etcd/etcd-storage.ts'
import { CachedEventStorage } from './cached-event-storage.ts'

export const mirrorPrefix = '/tidings'

export interface MirrorReplicaOptions {
  readonly clusters: ReadonlyMap<string, ClusterConfig>
  readonly originFor: (cluster: string) => Origin
  readonly leaseTtlSeconds?: number
  /** Replaces the storage that the mirror writes to, to plant a fault. */
  readonly spoil?: (storage: MirrorManagerOptions['storage']) => MirrorManagerOptions['storage']
  readonly lifetimeOf?: MirrorManagerOptions['lifetimeOf']
  readonly owners?: MirrorManagerOptions['owners']
}

export function mirroredCluster(
  name: string,
  mirror: Partial<ClusterConfig['mirror'] & object> = {},
): ClusterConfig {
  return {
    name,
    kubeconfig: undefined,
    mirror: { namespaces: undefined, deletes: 'never', originTtlMs: 3_600_000, ...mirror },
    authorization: 'rbac',
  }
}

/**
 * The storage stack of a replica with its mirrors. It can be paused as a virtual machine is: its
 * requests are not sent, its clock stands still, and on `resume` everything goes on as if no time
 * had passed.
 */
export class MirrorReplica implements AsyncDisposable {
  readonly client: EtcdClient
  readonly cached: CachedEventStorage
  readonly mirrors: MirrorManager
  readonly #inner: EtcdStorage
  readonly #end = new AbortController()
  readonly #running: Promise<unknown>
  #listener: () => void = () => {}
  #resumed: PromiseWithResolvers<void> | undefined
  #pausedAt = 0
  #lostMs = 0

  constructor(endpoints: readonly string[], replica: string, options: MirrorReplicaOptions) {
    this.client = new EtcdClient({ endpoints, defaultTimeoutMs: 5_000 })
    const gated = this.#gated(this.client)
    const inner = new EtcdStorage({
      client: gated,
      prefix: mirrorPrefix,
      onCorrupt: () => {},
    })
    this.#inner = inner
    this.cached = new CachedEventStorage({
      inner,
      log: silentLog,
      onReread: () => this.mirrors.forget(),
    })
    const { cached, client } = this
    this.mirrors = new MirrorManager({
      client: gated,
      storage: options.spoil?.(cached) ?? cached,
      recall: (key) => (options.spoil === undefined ? cached.recall(key) : undefined),
      prefix: mirrorPrefix,
      replica,
      clusters: {
        clusters: options.clusters,
        onChange: (listener) => {
          this.#listener = listener
        },
      },
      lifetimeOf: options.lifetimeOf ?? (() => 'never'),
      originFor: ({ name }) => options.originFor(name),
      history: {
        verified: () => cached.verified,
        verify: () => cached.verify(client.newestConnection),
      },
      log: silentLog,
      clock: { now: () => this.#now() },
      leaseTtlSeconds: options.leaseTtlSeconds,
      owners: options.owners,
    })
    const { signal } = this.#end
    this.#running = Promise.all([
      cached.run(signal),
      cached.synced.then(() => this.mirrors.run(signal)),
    ])
  }

  /** Tells the mirrors that the map of clusters has changed. */
  reload(): void {
    this.#listener()
  }

  pause(): void {
    this.#resumed = Promise.withResolvers()
    this.#pausedAt = performance.now()
  }

  resume(): void {
    this.#lostMs += performance.now() - this.#pausedAt
    this.#resumed?.resolve()
    this.#resumed = undefined
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#resumed !== undefined) this.resume()
    this.#end.abort()
    await this.#running
    await this.#inner.close()
    this.client.close()
  }

  #now(): number {
    return (this.#resumed === undefined ? performance.now() : this.#pausedAt) - this.#lostMs
  }

  /** The same client, whose calls wait while the replica is paused. */
  #gated(client: EtcdClient): EtcdClient {
    const resumed = () => this.#resumed?.promise
    return new Proxy(client, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name, target)
        if (typeof member !== 'function') return member
        const call = (...args: unknown[]): unknown => Reflect.apply(member, target, args)
        const isGated = ['range', 'txn', 'grantLease', 'keepLeaseAlive', 'revokeLease']
        if (!isGated.includes(String(name))) return call
        return async (...args: unknown[]) => {
          await resumed()
          const result = await call(...args)
          await resumed()
          return result
        }
      },
    })
  }
}
