import { Counter, Gauge, type Registry } from '@prometheus-io/client'
import type { RequestObserver } from '../../endpoints/observe/request-tallies.ts'
import { ALL_CLUSTERS } from '../../gate/attributes.ts'
import { allEvents } from '../../storage/event-scope.ts'
import type { EventScope } from '../../storage/storage.ts'

/** Not a name that a cluster can have. */
const OTHER = '_other'

/** The clusters with series of their own: any client can name a cluster, and series are forever. */
export class ClusterLabels {
  readonly #clusterName: string
  readonly #known: () => Iterable<string>

  /** `known`: the clusters that the operator has named besides the default one. */
  constructor(clusterName: string, known: () => Iterable<string> = () => []) {
    this.#clusterName = clusterName
    this.#known = known
  }

  all(): ReadonlySet<string> {
    return new Set([this.#clusterName, ...this.#known()])
  }
}

/** Counts responses by cluster, and passes everything on to `observer`. */
export function countByCluster(
  observer: RequestObserver,
  labels: ClusterLabels,
  registry: Registry,
): RequestObserver {
  const series = new Map<string, Map<number, number>>()
  let known = labels.all()
  new Counter({
    name: 'tidings_cluster_requests_total',
    help: 'Requests with a response, by cluster and status code. Requests for all clusters at once are counted as "*", those for clusters that the server does not know as "_other".',
    labelNames: ['cluster', 'code'],
    registers: [registry],
    collect() {
      known = labels.all()
      this.reset()
      for (const [cluster, codes] of series) {
        const isKept = known.has(cluster) || cluster === ALL_CLUSTERS || cluster === OTHER
        if (!isKept) series.delete(cluster)
        else for (const [code, count] of codes) this.inc({ cluster, code: String(code) }, count)
      }
    },
  })
  const labelOf = (cluster: string): string => {
    if (known.has(cluster) || cluster === ALL_CLUSTERS) return cluster
    // The clusters may have changed since the last scrape.
    known = labels.all()
    return known.has(cluster) ? cluster : OTHER
  }
  return {
    begun: (attributes) => observer.begun(attributes),
    listed: (attributes, ms) => observer.listed?.(attributes, ms),
    labelsOf: (attributes) => observer.labelsOf?.(attributes),
    failed: (attributes, reason) => observer.failed?.(attributes, reason),
    ended: (attributes, sent, run) => {
      observer.ended(attributes, sent, run)
      if (sent.status === 0) return
      const label = labelOf(attributes.cluster)
      const codes = series.get(label) ?? new Map<number, number>()
      series.set(label, codes)
      codes.set(sent.status, (codes.get(sent.status) ?? 0) + 1)
    },
  }
}

/** `countIn` must be cheap: it is called for every cluster at each scrape. */
export function registerClusterEventMetrics(
  countIn: (scope: EventScope) => number,
  labels: ClusterLabels,
  registry: Registry,
): void {
  new Gauge({
    name: 'tidings_cluster_events',
    help: 'Live events by cluster. Those of clusters that the server does not know are counted as "_other".',
    labelNames: ['cluster'],
    registers: [registry],
    collect() {
      this.reset()
      let others = countIn(allEvents)
      for (const cluster of labels.all()) {
        const count = countIn({ cluster, namespace: undefined })
        this.set({ cluster }, count)
        others -= count
      }
      this.set({ cluster: OTHER }, others)
    },
  })
}
