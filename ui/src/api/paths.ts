import type { Filters } from '../model/query.ts'

type Place = Pick<Filters, 'cluster' | 'namespace'>

/** Core events are served under this path whatever the other API group is called. */
export function eventsPath(place: Place): string {
  return inPlace(place, 'api/v1', 'events')
}

/** Paths of `eventsummaries`, `eventhistograms` and `retentionwindows`. */
export function computedPath(place: Place, resource: string): string {
  return inPlace(place, 'apis/tidings.dev/v1alpha1', resource)
}

function inPlace({ cluster, namespace }: Place, group: string, resource: string): string {
  const parts = namespace === '' ? [] : ['namespaces', encodeURIComponent(namespace)]
  return `${clusterPath(cluster)}${[group, ...parts, resource].join('/')}`
}

/** The cluster's path prefix; empty for the default cluster. */
export function clusterPath(cluster: string): string {
  return cluster === '' ? '' : `clusters/${encodeURIComponent(cluster)}/`
}

/** The cluster that authenticates requests to a path; empty for the default cluster. */
export function clusterOf(path: string): string {
  return knownIn(decodeURIComponent(/^clusters\/([^/]+)\//.exec(path)?.[1] ?? ''))
}

/** Users of the default cluster are authenticated there for all clusters. */
export function knownIn(cluster: string): string {
  return cluster === '*' ? '' : cluster
}
