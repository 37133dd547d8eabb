import type { Filters } from '../model/query.ts'

type Place = Pick<Filters, 'cluster' | 'namespace'>

/** Core events exist under this path whatever the group of the other API is named. */
export function eventsPath(place: Place): string {
  return inPlace(place, 'api/v1', 'events')
}

/** `eventsummaries`, `eventhistograms` and `retentionwindows`. */
export function computedPath(place: Place, resource: string): string {
  return inPlace(place, 'apis/tidings.dev/v1alpha1', resource)
}

function inPlace({ cluster, namespace }: Place, group: string, resource: string): string {
  const parts = namespace === '' ? [] : ['namespaces', encodeURIComponent(namespace)]
  return `${clusterPath(cluster)}${[group, ...parts, resource].join('/')}`
}

/** The prefix of a cluster; empty for the default one. */
export function clusterPath(cluster: string): string {
  return cluster === '' ? '' : `clusters/${encodeURIComponent(cluster)}/`
}

/** The cluster that knows the user of a request to a path; empty for the default one. */
export function clusterOf(path: string): string {
  return knownIn(decodeURIComponent(/^clusters\/([^/]+)\//.exec(path)?.[1] ?? ''))
}

/** Users of all clusters are known in the default one. */
export function knownIn(cluster: string): string {
  return cluster === '*' ? '' : cluster
}
