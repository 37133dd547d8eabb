import { hash } from 'node:crypto'
import type { ClusterConfig } from '../clusters/clusters-file.ts'
import type { KnownHistory } from '../election/known-history.ts'
import { pause } from '../lib/abort.ts'
import { type Clock, monotonicClock } from '../lib/clock.ts'
import type { Log } from '../lib/log/log.ts'
import { MirrorWriter, type MirrorWriterOptions } from '../registry/mirrored-event.ts'
import type { EventStorage } from '../storage/storage.ts'
import {
  ClusterMirror,
  type ClusterMirrorOptions,
  type ClusterMirrorStats,
} from './cluster-mirror.ts'
import { streamsOf } from './mirror-record.ts'
import { MirrorStatuses } from './mirror-statuses.ts'
import type { ListedStorage } from './missing-events.ts'
import type { Origin } from './origin.ts'
import type { OriginIdentity } from './origin-identity.ts'
import type { OwnerWatchesOptions } from './owner-watches.ts'
import type { OwnersOrigin } from './owners-origin.ts'

const restartAfterMs = 10_000

export interface MirrorManagerOptions {
  readonly client: ClusterMirrorOptions['client']
  /** Preferably one that reads from memory. */
  readonly storage: ListedStorage & Pick<EventStorage, 'update'>
  /** Looks an event up in the cache; undefined when it is missing or may be of another history. */
  readonly recall: MirrorWriterOptions['recall']
  /** The etcd prefix that events are stored under. */
  readonly prefix: string
  /** A name for this replica, without spaces. */
  readonly replica: string
  readonly clusters: {
    readonly clusters: ReadonlyMap<string, ClusterConfig>
    onChange(listener: () => void): void
  }
  readonly lifetimeOf: MirrorWriterOptions['lifetimeOf']
  readonly marksOf?: MirrorWriterOptions['marksOf']
  readonly eventBytesMax?: MirrorWriterOptions['eventBytesMax']
  readonly admission?: MirrorWriterOptions['admission']
  /** Called for each mirrored cluster, and again when its configuration has changed. */
  readonly originFor: (config: ClusterConfig) => Origin
  /** The history that the cache follows. Without it, etcd is assumed never to be restored. */
  readonly history?: KnownHistory | undefined
  readonly log: Log
  readonly clock?: Clock | undefined
  readonly leaseTtlSeconds?: number | undefined
  readonly windowBytesMax?: ClusterMirrorOptions['windowBytesMax']
  /** Without it, the owners of no cluster are read. */
  readonly owners?: OwnerReading | undefined
}

export interface OwnerReading {
  readonly known: OwnerWatchesOptions['known']
  readonly originFor: (config: ClusterConfig) => OwnersOrigin
}

interface Running {
  readonly config: ClusterConfig
  readonly mirror: ClusterMirror
  readonly end: AbortController
  readonly ended: Promise<void>
}

/** Runs a mirror for each cluster that the clusters file configures one for. */
export class MirrorManager {
  readonly statuses: MirrorStatuses
  readonly #options: MirrorManagerOptions
  readonly #clock: Clock
  readonly #writer: MirrorWriter
  readonly #mirrors = new Map<string, Running>()
  /** Mirrors that are stopping: a new one for the same cluster waits for the old one. */
  readonly #ending = new Map<string, Promise<void>>()

  constructor(options: MirrorManagerOptions) {
    const { client, prefix, log, storage, recall, lifetimeOf, eventBytesMax } = options
    const { marksOf, admission } = options
    this.#options = options
    this.#clock = options.clock ?? monotonicClock
    this.#writer = new MirrorWriter({
      storage,
      recall,
      lifetimeOf,
      eventBytesMax,
      marksOf,
      admission,
    })
    const { clusters } = options
    const streams = (cluster: string): readonly string[] | undefined => {
      const mirror = clusters.clusters.get(cluster)?.mirror
      return mirror && streamsOf(mirror)
    }
    this.statuses = new MirrorStatuses({
      client,
      prefix,
      streamsOf: streams,
      clock: this.#clock,
      log,
    })
  }

  /**
   * Runs until aborted; then ends all mirrors and lets other replicas take over. Storage and client
   * must stay open until this resolves.
   */
  async run(signal: AbortSignal): Promise<void> {
    this.#options.clusters.onChange(() => {
      if (!signal.aborted) this.#reconcile()
    })
    if (!signal.aborted) this.#reconcile()
    try {
      await this.statuses.run(signal)
    } finally {
      for (const cluster of [...this.#mirrors.keys()]) this.#stop(cluster)
    }
    await Promise.all(this.#ending.values())
  }

  /** Keyed by cluster. */
  stats(): ReadonlyMap<string, ClusterMirrorStats> {
    return new Map([...this.#mirrors].map(([cluster, { mirror }]) => [cluster, mirror.stats()]))
  }

  /** Must be called when the cache was reloaded; see `ClusterMirror.forget`. */
  forget(): void {
    for (const { mirror } of this.#mirrors.values()) mirror.forget()
  }

  #reconcile(): void {
    const { clusters } = this.#options.clusters
    for (const [cluster, { config }] of this.#mirrors) {
      if (clusters.get(cluster) !== config) this.#stop(cluster)
    }
    for (const [cluster, config] of clusters) {
      if (config.mirror !== undefined && !this.#mirrors.has(cluster)) this.#start(cluster, config)
    }
  }

  #start(cluster: string, config: ClusterConfig): void {
    const { mirror: wanted } = config
    if (wanted === undefined) return
    const { client, storage, prefix, replica, history, log, leaseTtlSeconds, windowBytesMax } =
      this.#options
    const origin = this.#options.originFor(config)
    const reading = wanted.owners === true ? this.#options.owners : undefined
    const owners = reading && { known: reading.known, origin: reading.originFor(config) }
    const mirror = new ClusterMirror({
      client,
      storage,
      prefix,
      cluster,
      replica,
      history,
      writer: this.#writer,
      mirror: wanted,
      origin,
      identity: () => identityOf(config),
      log: log.child({ cluster }),
      clock: this.#clock,
      leaseTtlSeconds,
      windowBytesMax,
      owners,
    })
    const end = new AbortController()
    const before = this.#ending.get(cluster) ?? Promise.resolve()
    const ended = before
      .then(() => this.#runAgain(mirror, end.signal, cluster))
      .finally(() => {
        origin.close?.()
        owners?.origin.close?.()
      })
    this.#mirrors.set(cluster, { config, mirror, end, ended })
  }

  /** A bug in the handling of one cluster must not end the server, nor the mirrors of others. */
  async #runAgain(mirror: ClusterMirror, signal: AbortSignal, cluster: string): Promise<void> {
    while (!signal.aborted) {
      try {
        await mirror.run(signal)
      } catch (err) {
        const stack = err instanceof Error ? err.stack : undefined
        this.#options.log.error('A mirror failed and will be restarted', {
          cluster,
          err,
          stack,
        })
        await pause(restartAfterMs, signal)
      }
    }
  }

  #stop(cluster: string): void {
    const running = this.#mirrors.get(cluster)
    if (running === undefined) return
    this.#mirrors.delete(cluster)
    running.end.abort()
    const ended = running.ended.finally(() => {
      if (this.#ending.get(cluster) === ended) this.#ending.delete(cluster)
    })
    this.#ending.set(cluster, ended)
  }
}

function identityOf({ kubeconfig, mirror }: ClusterConfig): OriginIdentity {
  const server = kubeconfig?.()
  const named = mirror?.identity === undefined ? {} : { originName: mirror.identity }
  if (server === undefined) return { origin: '', ...named }
  const { ca, url } = server
  const origin = ca === undefined ? url.href : hash('sha256', ca)
  return { origin, originServer: url.href, ...named }
}
