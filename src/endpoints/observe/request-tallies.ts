/**
 * Counts requests by their labels and outcomes. Requests are far more frequent than scrapes, so a
 * request only increments counters, and metrics are rendered at a scrape.
 */
import type { StatusReason } from '../../api/status.ts'
import type { Attributes } from '../../gate/attributes.ts'
import type { Sent } from '../../http/exchange.ts'

/** Seconds. The buckets of a Kubernetes API server, so that its dashboards work. */
const DURATION_BUCKETS: readonly number[] = [
  0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45,
  60,
]
const WATCH_LIST_BUCKETS: readonly number[] = [
  ...DURATION_BUCKETS.filter((seconds) => seconds >= 0.05),
  ...[90, 120, 180, 300],
]
const SIZE_BUCKETS: readonly number[] = [1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9]

/** The labels of a request. They have only known values, so that clients cannot create series. */
export interface RequestLabels {
  readonly verb: string
  readonly group: string
  readonly version: string
  readonly resource: string
  /** The first part of a path that is not a resource, if it is served. */
  readonly subresource: string
  readonly scope: string
}

/** The counts of all requests with the same labels. */
export interface RequestSeries {
  readonly labels: RequestLabels
  /** Number of responses, keyed by status code. */
  readonly codes: ReadonlyMap<number, number>
  readonly durations: Distribution
  readonly sizes: Distribution
  /** How long the lists of watches that begin with one took. Undefined: there was none. */
  readonly watchLists: Distribution | undefined
  /** Number of requests whose client disconnected before the response. */
  readonly aborted: number
  /** Number of long-running requests in progress. */
  readonly longRunning: number
}

/** Is called for each request. */
export interface RequestObserver {
  /** Called when a long-running response starts. */
  begun(attributes: Attributes): void
  /** Called when a watch that begins with a list has sent it. */
  listed?(attributes: Attributes, ms: number): void
  /** Called when a request fails, or when its outcome is not known in time. */
  failed?(attributes: Attributes, reason: StatusReason): void
  /** `isLong` says whether `begun` was called for it. */
  ended(
    attributes: Attributes,
    sent: Sent,
    run: { readonly ms: number; readonly isLong: boolean },
  ): void
  /** Labels that contain no text of the client. */
  labelsOf?(attributes: Attributes): RequestLabels | undefined
}

export class Distribution {
  readonly bounds: readonly number[]
  /** Number of values per bucket. The last bucket has the values above all bounds. */
  readonly counts: number[]
  sum = 0

  constructor(bounds: readonly number[]) {
    this.bounds = bounds
    this.counts = new Array(bounds.length + 1).fill(0)
  }

  add(value: number): void {
    let at = 0
    while (at < this.bounds.length && value > (this.bounds[at] ?? 0)) at += 1
    this.counts[at] = (this.counts[at] ?? 0) + 1
    this.sum += value
  }
}

/** The names of verbs in metrics. */
const VERBS: ReadonlyMap<string, string> = new Map([
  ['get', 'GET'],
  ['head', 'HEAD'],
  ['list', 'LIST'],
  ['watch', 'WATCH'],
  ['create', 'POST'],
  ['post', 'POST'],
  ['update', 'PUT'],
  ['put', 'PUT'],
  ['patch', 'PATCH'],
  ['delete', 'DELETE'],
  ['deletecollection', 'DELETECOLLECTION'],
])

/** The reasons why requests with a writing verb failed. */
export interface RefusedWrites {
  readonly verb: string
  readonly reasons: ReadonlyMap<StatusReason, number>
}

/** Refusals of writes that may succeed later: limits, or a datastore that is full or down. */
const REFUSALS: readonly StatusReason[] = ['TooManyRequests', 'ServiceUnavailable']
/** A limit, since clients choose the names of clusters. Further ones are not counted. */
const CLUSTERS_MAX = 256

const WRITE_VERBS = ['create', 'update', 'patch', 'delete', 'deletecollection'] as const

export class RequestTallies implements RequestObserver {
  readonly #resources: ReadonlySet<string>
  readonly #rootOf: (path: string) => string
  readonly #series = new Map<string, Series>()
  /** The last series of each verb, which is nearly always that of its next request. */
  readonly #last = new Map<string, Series>()
  readonly #refused = new Map<string, Map<StatusReason, number>>(
    WRITE_VERBS.map((verb) => [verb, new Map()]),
  )
  readonly #refusedIn = new Map<string, number>()

  /**
   * `resources` are the served ones, each as `group/version/resource`. `rootOf` returns the first
   * part of a path if it is served, otherwise ''.
   */
  constructor(resources: Iterable<string>, rootOf: (path: string) => string) {
    this.#resources = new Set(resources)
    this.#rootOf = rootOf
  }

  series(): Iterable<RequestSeries> {
    return this.#series.values()
  }

  *refusedWrites(): Iterable<RefusedWrites> {
    for (const [verb, reasons] of this.#refused) yield { verb: VERBS.get(verb) ?? verb, reasons }
  }

  failed(attributes: Attributes, reason: StatusReason): void {
    if (!attributes.isResource || attributes.resource !== 'events') return
    const reasons = this.#refused.get(attributes.verb)
    if (reasons === undefined) return
    reasons.set(reason, (reasons.get(reason) ?? 0) + 1)
    if (REFUSALS.includes(reason)) this.#countRefused(attributes.cluster)
  }

  /**
   * Returns how many writes of events of a cluster were refused by limits or by a full datastore,
   * or undefined when this is not counted.
   */
  refusedIn(cluster: string): number | undefined {
    const isFull = this.#refusedIn.size >= CLUSTERS_MAX
    return this.#refusedIn.get(cluster) ?? (isFull ? undefined : 0)
  }

  #countRefused(cluster: string): void {
    const known = this.#refusedIn.get(cluster)
    if (known === undefined && this.#refusedIn.size >= CLUSTERS_MAX) return
    this.#refusedIn.set(cluster, (known ?? 0) + 1)
  }

  begun(attributes: Attributes): void {
    this.#seriesOf(attributes).longRunning += 1
  }

  listed(attributes: Attributes, ms: number): void {
    const series = this.#seriesOf(attributes)
    series.watchLists ??= new Distribution(WATCH_LIST_BUCKETS)
    series.watchLists.add(ms / 1000)
  }

  ended(
    attributes: Attributes,
    { status, bytes }: Sent,
    { ms, isLong }: { readonly ms: number; readonly isLong: boolean },
  ): void {
    const series = this.#seriesOf(attributes)
    if (isLong) series.longRunning -= 1
    if (status === 0) {
      series.aborted += 1
      return
    }
    series.codes.set(status, (series.codes.get(status) ?? 0) + 1)
    series.durations.add(ms / 1000)
    series.sizes.add(bytes)
  }

  #seriesOf(attributes: Attributes): Series {
    const last = this.#last.get(attributes.verb)
    if (last !== undefined && isOf(last.labels, attributes)) return last
    const series = this.#findSeries(attributes)
    // Only known verbs, since clients send any method.
    if (series.labels.resource !== '') this.#last.set(attributes.verb, series)
    return series
  }

  #findSeries(attributes: Attributes): Series {
    const labels = this.labelsOf(attributes)
    const key = `${labels.verb} ${labels.scope} ${labels.subresource} ${labels.group} ${labels.version} ${labels.resource}`
    let series = this.#series.get(key)
    if (series === undefined) {
      series = {
        labels,
        codes: new Map(),
        durations: new Distribution(DURATION_BUCKETS),
        sizes: new Distribution(SIZE_BUCKETS),
        watchLists: undefined,
        aborted: 0,
        longRunning: 0,
      }
      this.#series.set(key, series)
    }
    return series
  }

  labelsOf(attributes: Attributes): RequestLabels {
    const verb = VERBS.get(attributes.verb) ?? 'other'
    if (!attributes.isResource) {
      return { ...NO_RESOURCE, verb, subresource: this.#rootOf(attributes.path) }
    }
    const { group, version, resource } = attributes
    if (attributes.subresource !== '' || !this.#resources.has(`${group}/${version}/${resource}`)) {
      return { ...NO_RESOURCE, verb }
    }
    return { verb, group, version, resource, subresource: '', scope: scopeOf(attributes) }
  }
}

/** Returns whether a request for a resource has these labels. */
function isOf(labels: RequestLabels, attributes: Attributes): boolean {
  return (
    attributes.isResource &&
    attributes.resource === labels.resource &&
    attributes.group === labels.group &&
    attributes.version === labels.version &&
    attributes.subresource === '' &&
    scopeOf(attributes) === labels.scope
  )
}

interface Series extends RequestSeries {
  readonly codes: Map<number, number>
  watchLists: Distribution | undefined
  aborted: number
  longRunning: number
}

const NO_RESOURCE = { group: '', version: '', resource: '', subresource: '', scope: '' }

function scopeOf(attributes: Attributes & { readonly isResource: true }): string {
  if (attributes.name !== '' || attributes.verb === 'create') return 'resource'
  return attributes.namespace === '' ? 'cluster' : 'namespace'
}
