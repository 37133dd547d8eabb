/** The status of each cluster: its events, and its mirror. */
import type { Lane } from '../../lib/run-queue.ts'

export interface ClusterStatus {
  readonly name: string
  readonly events: number
  /** When the oldest and the newest event were last seen; undefined while events are loaded. */
  readonly oldestMs: number | undefined
  readonly newestMs: number | undefined
  /** Undefined when the cluster is not mirrored. */
  readonly mirror: ClusterMirrorStatus | undefined
}

export interface ClusterMirrorStatus {
  readonly state: 'Waiting' | 'Syncing' | 'Following' | 'Stalled'
  /** Undefined while it is unknown. */
  readonly lagMs: number | undefined
  readonly message: string
}

export interface ClusterStatuses {
  /** Sorted by name. */
  list(lane: Lane): Promise<readonly ClusterStatus[]>
  get(name: string, lane: Lane): Promise<ClusterStatus | undefined>
}

/** When an event of the cluster was last seen. */
type SeenIn = (cluster: string, lane: Lane) => number | undefined | Promise<number | undefined>

export interface ClusterSources {
  /** Clusters that exist even without events: the default one, and those of the clusters file. */
  readonly named: () => Iterable<string>
  /** Clusters that have events, and how many. */
  readonly events: () => Iterable<readonly [cluster: string, events: number]>
  readonly oldestIn: SeenIn
  readonly newestIn: SeenIn
  readonly mirrorStatus?: ((cluster: string) => ClusterMirrorStatus | undefined) | undefined
}

/** Joins the sources by the names of clusters. */
export function clusterStatuses(sources: ClusterSources): ClusterStatuses {
  const counts = (): ReadonlyMap<string, number> =>
    new Map([...[...sources.named()].map((name) => [name, 0] as const), ...sources.events()])
  const statusOf = async (name: string, events: number, lane: Lane): Promise<ClusterStatus> => ({
    name,
    events,
    oldestMs: events === 0 ? undefined : await sources.oldestIn(name, lane),
    newestMs: events === 0 ? undefined : await sources.newestIn(name, lane),
    mirror: sources.mirrorStatus?.(name),
  })
  return {
    list: async (lane) => {
      const statuses: ClusterStatus[] = []
      const sorted = [...counts()].sort(([one], [other]) => (one < other ? -1 : 1))
      for (const [name, events] of sorted) statuses.push(await statusOf(name, events, lane))
      return statuses
    },
    get: async (name, lane) => {
      const events = counts().get(name)
      return events === undefined ? undefined : statusOf(name, events, lane)
    },
  }
}
