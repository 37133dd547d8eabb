/** The status of each cluster: its events, and its mirror. */

export interface ClusterStatus {
  readonly name: string
  readonly events: number
  /** The write time of the oldest event. */
  readonly oldestMs: number | undefined
  readonly lastEventMs: number | undefined
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
  list(): Promise<readonly ClusterStatus[]>
  get(name: string): Promise<ClusterStatus | undefined>
}

export interface ClusterSources {
  /** Clusters that exist even without events: the default one, and those of the clusters file. */
  readonly named: () => Iterable<string>
  /** Clusters that have events. */
  readonly activities: () => Promise<
    readonly {
      readonly cluster: string
      readonly events: number
      readonly oldestMs: number | undefined
      readonly newestMs: number | undefined
    }[]
  >
  readonly mirrorStatus?: ((cluster: string) => ClusterMirrorStatus | undefined) | undefined
}

/** Joins the sources by the names of clusters. */
export function clusterStatuses(sources: ClusterSources): ClusterStatuses {
  const list = async (): Promise<readonly ClusterStatus[]> => {
    const active = new Map((await sources.activities()).map((one) => [one.cluster, one]))
    const names = new Set([...sources.named(), ...active.keys()])
    return [...names].sort().map((name) => {
      const { events = 0, oldestMs, newestMs } = active.get(name) ?? {}
      const mirror = sources.mirrorStatus?.(name)
      return { name, events, oldestMs, lastEventMs: newestMs, mirror }
    })
  }
  return { list, get: async (name) => (await list()).find((one) => one.name === name) }
}
