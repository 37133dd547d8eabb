/** Tells requests and metrics how the mirrors of the clusters in the clusters file are. */
import type { CachedStorage } from '../cache/cached-storage.ts'
import type { ClustersFile } from '../clusters/clusters-file.ts'
import type { MirroredClusters } from '../endpoints/events/event-api.ts'
import type { ClusterSources } from '../endpoints/objects/cluster-statuses.ts'
import { ALL_CLUSTERS } from '../gate/attributes.ts'
import type { MirrorManager } from '../mirror/mirror-manager.ts'
import type { MirrorStatus } from '../mirror/mirror-statuses.ts'
import type { Options } from '../options/options.ts'
import type { WatchedMirrors } from './metrics/mirrors.ts'

/** Where `kubectl get clusters` finds clusters: the flags, the clusters file, and the events. */
export function clusterSources(
  { clusterName }: Pick<Options, 'clusterName'>,
  storage: Pick<CachedStorage, 'eventsByCluster' | 'oldest' | 'newest'>,
  file: {
    readonly clusters: Pick<ClustersFile, 'clusters'> | undefined
    readonly mirrors: Pick<MirrorsOfFile, 'statusOf'> | undefined
  },
): ClusterSources {
  return {
    named: () => [clusterName, ...(file.clusters?.clusters.keys() ?? [])],
    events: () => storage.eventsByCluster(),
    oldestIn: (cluster, lane) => storage.oldest.in({ cluster, namespace: undefined }, lane),
    newestIn: (cluster, lane) => storage.newest.in({ cluster, namespace: undefined }, lane),
    mirrorStatus: (cluster) => file.mirrors?.statusOf(cluster),
  }
}

/** Mirrors that a list of all clusters warns of at most. */
const WARNINGS_MAX = 5
/** A mirror that catches up is late after this. */
const LATE_MS = 30_000

export class MirrorsOfFile implements MirroredClusters, WatchedMirrors {
  readonly #clusters: Pick<ClustersFile, 'clusters'>
  readonly #manager: () => MirrorManager | undefined

  /** `manager` is undefined until the engine is open. */
  constructor(clusters: Pick<ClustersFile, 'clusters'>, manager: () => MirrorManager | undefined) {
    this.#clusters = clusters
    this.#manager = manager
  }

  isMirrored(cluster: string): boolean {
    return this.#clusters.clusters.get(cluster)?.mirror !== undefined
  }

  /** Undefined when the cluster is not mirrored. */
  statusOf(cluster: string): MirrorStatus | undefined {
    return this.isMirrored(cluster) ? this.#manager()?.statuses.get(cluster) : undefined
  }

  warnings(cluster: string): readonly string[] {
    const named = cluster === ALL_CLUSTERS ? this.#clusters.clusters.keys() : [cluster]
    const texts: string[] = []
    for (const name of named) {
      const text = warningOf(name, this.statusOf(name))
      if (text !== undefined) texts.push(text)
      if (texts.length === WARNINGS_MAX) break
    }
    return texts
  }

  *statuses(): Iterable<readonly [string, MirrorStatus]> {
    for (const cluster of this.#clusters.clusters.keys()) {
      const status = this.statusOf(cluster)
      if (status !== undefined) yield [cluster, status]
    }
  }

  *counters(): ReturnType<WatchedMirrors['counters']> {
    for (const [cluster, { counters }] of this.#manager()?.stats() ?? []) yield [cluster, counters]
  }

  *ownersFollowing(): ReturnType<WatchedMirrors['ownersFollowing']> {
    for (const [cluster, { ownersFollowing }] of this.#manager()?.stats() ?? []) {
      yield [cluster, ownersFollowing]
    }
  }

  led(): ReadonlySet<string> {
    const stats = [...(this.#manager()?.stats() ?? [])]
    return new Set(stats.filter(([, { isLeader }]) => isLeader).map(([cluster]) => cluster))
  }
}

/**
 * A mirror that follows needs no warning. The reason is not in it: it may name the address of the
 * origin, which not every reader may know.
 */
function warningOf(cluster: string, status: MirrorStatus | undefined): string | undefined {
  if (status === undefined || status.state === 'Following') return undefined
  const { state, hasSynced, lagMs } = status
  // A quiet cluster is listed again every few minutes, and a replica that has just started waits for
  // the next report: the events are here meanwhile.
  const isLate = state === 'Stalled' || (lagMs ?? 0) > LATE_MS
  if (hasSynced && !isLate) return undefined
  const lag = lagMs === undefined ? '' : `, ${Math.round(lagMs / 1000)} s behind`
  const what = {
    Waiting: 'has not started',
    Syncing: hasSynced ? 'is catching up' : 'is reading all events of the cluster',
    Stalled: 'is stalled',
  }[state]
  return `the mirror of cluster ${cluster} ${what}${lag}; recent events may be missing`
}
