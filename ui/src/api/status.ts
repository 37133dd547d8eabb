/** Reads the server's health checks, its version, and how far back its events go. */

import type { Filters } from '../model/query.ts'
import { type Check, readChecks } from '../model/server/health.ts'
import { joinedWindows, type Lifetime, type RetentionWindow } from '../model/server/retention.ts'
import { secondMs, timeOf } from '../model/times.ts'
import { ApiError } from './api-error.ts'
import type { ApiClient } from './client.ts'
import { clusterPath, computedPath, knownIn } from './paths.ts'

type Place = Pick<Filters, 'cluster' | 'namespace'>

/** Returns the health checks of the responding replica. Rejects if they are not disclosed. */
export async function readiness(
  client: ApiClient,
  { cluster }: Pick<Place, 'cluster'>,
  signal: AbortSignal,
): Promise<readonly Check[]> {
  // A user of a single cluster is known only under that cluster's path.
  const path = `${clusterPath(knownIn(cluster))}readyz`
  try {
    const ask = { parameters: { verbose: 'true' }, signal, isAside: true }
    return readChecks(await client.getText(path, ask))
  } catch (error) {
    const checks = error instanceof ApiError && error.code === 500 ? readChecks(error.message) : []
    if (checks.length === 0) throw error
    return checks
  }
}

/** Returns a version such as `0.1.0`; for other servers, the version string unchanged. */
export async function serverVersion(client: ApiClient, signal: AbortSignal): Promise<string> {
  const ask = { signal, isAside: true }
  const { gitVersion = '' } = await client.get<{ readonly gitVersion?: string }>('version', ask)
  return gitVersion.slice(gitVersion.indexOf('+tidings-') + 1).replace('tidings-', '')
}

/** A `RetentionWindow` as the API returns it. */
interface WindowResource {
  readonly metadata?: { readonly namespace?: string }
  readonly cluster?: string
  readonly events?: number
  readonly oldestTime?: string
  readonly lifetimes?: readonly Partial<Lifetime>[]
  readonly hiddenRules?: number
  readonly budget?: { readonly events?: number; readonly bytes?: number }
  readonly evicted?: number
  readonly refused?: number
  readonly history?: {
    readonly oldestTime?: string
    readonly untilTime?: string
    readonly lagSeconds?: number
  }
}

export interface FoundWindow {
  /** Undefined if nothing is stored there. */
  readonly window: RetentionWindow | undefined
  /** The cluster's name, if this is a single cluster with events. */
  readonly clusterName: string | undefined
}

/**
 * Returns the retention window of a namespace, of a cluster or of all clusters. Passing the
 * `clusterName` of an earlier call spares the server from listing all namespaces of the cluster.
 */
export async function retentionWindow(
  client: ApiClient,
  { place, clusterName }: { readonly place: Place; readonly clusterName?: string | undefined },
  signal: AbortSignal,
): Promise<FoundWindow> {
  const isOfCluster = place.namespace === '' && place.cluster !== '*'
  const parameters: Record<string, string> =
    isOfCluster && clusterName !== undefined
      ? { fieldSelector: `metadata.name=${clusterName}` }
      : {}
  const path = computedPath(place, 'retentionwindows')
  const list = await client.get<{ readonly items?: readonly WindowResource[] | null }>(path, {
    parameters,
    signal,
  })
  const wanted = (list.items ?? []).filter(
    ({ metadata }) => place.namespace !== '' || (metadata?.namespace ?? '') === '',
  )
  return {
    window: joinedWindows(wanted.map(windowOf)),
    clusterName: isOfCluster ? wanted[0]?.cluster : undefined,
  }
}

function windowOf(window: WindowResource): RetentionWindow {
  const {
    events = 0,
    oldestTime,
    lifetimes = [],
    hiddenRules = 0,
    budget,
    evicted,
    history,
  } = window
  const isOfCluster = (window.metadata?.namespace ?? '') === ''
  return {
    events,
    oldestMs: timeOf(oldestTime),
    lifetimes: lifetimes.map(({ selects = '', lifetime = '' }) => ({ selects, lifetime })),
    hiddenRules,
    budget,
    evicted,
    // Rejections are counted per cluster; zero is omitted.
    refused: isOfCluster ? (window.refused ?? 0) : undefined,
    history: history && {
      oldestMs: timeOf(history.oldestTime),
      untilMs: timeOf(history.untilTime),
      lagMs: (history.lagSeconds ?? 0) * secondMs,
    },
  }
}
