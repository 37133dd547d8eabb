/** What the server says about itself: its checks, its version, and how far back its events go. */

import type { Filters } from '../model/query.ts'
import { type Check, readChecks } from '../model/server/health.ts'
import { joinedWindows, type KeptWindow, type Lifetime } from '../model/server/retention.ts'
import { timeOf } from '../model/times.ts'
import { ApiError } from './api-error.ts'
import type { ApiClient } from './client.ts'
import { clusterPath, computedPath, knownIn } from './paths.ts'

type Place = Pick<Filters, 'cluster' | 'namespace'>

/** The checks of the replica that responds. Rejects when it does not tell. */
export async function readiness(
  client: ApiClient,
  { cluster }: Pick<Place, 'cluster'>,
  signal: AbortSignal,
): Promise<readonly Check[]> {
  // Who may read one cluster only is known under its path alone.
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

/** `0.1.0`; of another server the version as it is. */
export async function serverVersion(client: ApiClient, signal: AbortSignal): Promise<string> {
  const ask = { signal, isAside: true }
  const { gitVersion = '' } = await client.get<{ readonly gitVersion?: string }>('version', ask)
  return gitVersion.slice(gitVersion.indexOf('+tidings-') + 1).replace('tidings-', '')
}

interface RetentionWindow {
  readonly metadata?: { readonly namespace?: string }
  readonly cluster?: string
  readonly events?: number
  readonly oldestTime?: string
  readonly lifetimes?: readonly Partial<Lifetime>[]
  readonly hiddenRules?: number
  readonly budget?: { readonly events?: number; readonly bytes?: number }
  readonly evicted?: number
  readonly refused?: number
}

export interface FoundWindow {
  /** Undefined when nothing is stored there. */
  readonly window: KeptWindow | undefined
  /** The name of the cluster, if it is one and has events. */
  readonly clusterName: string | undefined
}

/**
 * What is kept of a namespace, of a cluster or of all clusters. `clusterName`, from a call before,
 * saves the server to list all namespaces of the cluster.
 */
export async function keptWindow(
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
  const list = await client.get<{ readonly items?: readonly RetentionWindow[] | null }>(path, {
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

function windowOf(window: RetentionWindow): KeptWindow {
  const { events = 0, oldestTime, lifetimes = [], hiddenRules = 0, budget, evicted } = window
  const isOfCluster = (window.metadata?.namespace ?? '') === ''
  return {
    events,
    oldestMs: timeOf(oldestTime),
    lifetimes: lifetimes.map(({ selects = '', lifetime = '' }) => ({ selects, lifetime })),
    hiddenRules,
    budget,
    evicted,
    // Refusals are counted by cluster; none at all are left out.
    refused: isOfCluster ? (window.refused ?? 0) : undefined,
  }
}
