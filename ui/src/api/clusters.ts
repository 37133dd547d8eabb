import { timeOf } from '../model/times.ts'
import type { ApiClient } from './client.ts'

export interface ClusterRow {
  readonly name: string
  readonly events: number
  /** When the oldest and the newest event were last seen. */
  readonly oldestMs: number | undefined
  readonly newestMs: number | undefined
  /** Undefined for a cluster that is not mirrored. */
  readonly mirror: ClusterMirror | undefined
}

export interface ClusterMirror {
  /** `Waiting`, `Syncing`, `Following` or `Stalled`. */
  readonly state: string
  readonly lagMs: number | undefined
  readonly message: string
}

interface Cluster {
  readonly metadata?: { readonly name?: string }
  readonly status?: {
    readonly events?: number
    readonly oldestEventTime?: string
    readonly lastEventTime?: string
    readonly mirror?: {
      readonly state?: string
      readonly lagSeconds?: number
      readonly message?: string
    }
  }
}

/** Returns the clusters in which the user may list the events of all namespaces. */
export async function listClusters(
  client: ApiClient,
  signal: AbortSignal,
): Promise<readonly ClusterRow[]> {
  const path = 'apis/tidings.dev/v1alpha1/clusters'
  const list = await client.get<{ readonly items?: readonly Cluster[] | null }>(path, { signal })
  return (list.items ?? []).map(clusterRow)
}

function clusterRow({ metadata, status = {} }: Cluster): ClusterRow {
  const { mirror } = status
  return {
    name: metadata?.name ?? '',
    events: status.events ?? 0,
    oldestMs: timeOf(status.oldestEventTime),
    newestMs: timeOf(status.lastEventTime),
    mirror: mirror && {
      state: mirror.state ?? '',
      lagMs: mirror.lagSeconds === undefined ? undefined : mirror.lagSeconds * 1_000,
      message: mirror.message ?? '',
    },
  }
}
