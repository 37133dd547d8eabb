/**
 * Counts what was asked and how it went. Every request comes by here, and far fewer look at the
 * figures: so requests only count, and series are made on a look.
 */
import type { Attributes } from '../gate/attributes.ts'
import type { Sent } from '../http/exchange.ts'

/** Seconds; those of a Kubernetes API server, so that its dashboards fit. */
const DURATION_BUCKETS: readonly number[] = [
  0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45,
  60,
]
const SIZE_BUCKETS: readonly number[] = [1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9]

/** What requests are told apart by. Only values from lists of ours, whatever strangers send. */
export interface RequestLabels {
  readonly verb: string
  readonly group: string
  readonly version: string
  readonly resource: string
  /** Of a path that stands for no object: its first part, if that is one of ours. */
  readonly subresource: string
  readonly scope: string
}

/** What is known of the requests that share their labels. */
export interface RequestSeries {
  readonly labels: RequestLabels
  /** How many were answered with which code. */
  readonly codes: ReadonlyMap<number, number>
  readonly durations: Distribution
  readonly sizes: Distribution
  /** Clients that left before they were answered. */
  readonly aborted: number
  /** Long ones under way. */
  readonly longRunning: number
}

/** Hears of each request. */
export interface RequestObserver {
  /** A long answer begins. */
  begun(asked: Attributes): void
  /** `isLong`: it was among those that `begun` heard of. */
  ended(asked: Attributes, sent: Sent, run: { readonly ms: number; readonly isLong: boolean }): void
}

/** How often a value fell into which bucket. */
export class Distribution {
  readonly bounds: readonly number[]
  /** For each bound, the values up to it and above the one before; last, those above all. */
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

/** The verbs as they are told in metrics. */
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
const PATHS: ReadonlySet<string> = new Set([
  '/healthz',
  '/livez',
  '/readyz',
  '/version',
  '/metrics',
  '/api',
  '/apis',
  '/openapi',
])

/** The counts of one replica. */
export class RequestTallies implements RequestObserver {
  readonly #resources: ReadonlySet<string>
  readonly #series = new Map<string, Series>()

  /** `resources`: those that are served, each as `group/version/resource`. */
  constructor(resources: Iterable<string>) {
    this.#resources = new Set(resources)
  }

  series(): Iterable<RequestSeries> {
    return this.#series.values()
  }

  begun(asked: Attributes): void {
    this.#seriesOf(asked).longRunning += 1
  }

  ended(
    asked: Attributes,
    { status, bytes }: Sent,
    { ms, isLong }: { readonly ms: number; readonly isLong: boolean },
  ): void {
    const series = this.#seriesOf(asked)
    if (isLong) series.longRunning -= 1
    if (status === 0) {
      series.aborted += 1
      return
    }
    series.codes.set(status, (series.codes.get(status) ?? 0) + 1)
    series.durations.add(ms / 1000)
    series.sizes.add(bytes)
  }

  #seriesOf(asked: Attributes): Series {
    const labels = this.#labelsOf(asked)
    const key = `${labels.verb} ${labels.scope} ${labels.subresource} ${labels.group} ${labels.version} ${labels.resource}`
    let series = this.#series.get(key)
    if (series === undefined) {
      series = {
        labels,
        codes: new Map(),
        durations: new Distribution(DURATION_BUCKETS),
        sizes: new Distribution(SIZE_BUCKETS),
        aborted: 0,
        longRunning: 0,
      }
      this.#series.set(key, series)
    }
    return series
  }

  #labelsOf(asked: Attributes): RequestLabels {
    const verb = VERBS.get(asked.verb) ?? 'other'
    if (!asked.isResource) {
      const subresource = firstPart(asked.path)
      return { ...NO_RESOURCE, verb, subresource: PATHS.has(subresource) ? subresource : '' }
    }
    const { group, version, resource } = asked
    if (asked.subresource !== '' || !this.#resources.has(`${group}/${version}/${resource}`)) {
      return { ...NO_RESOURCE, verb }
    }
    return { verb, group, version, resource, subresource: '', scope: scopeOf(asked) }
  }
}

interface Series extends RequestSeries {
  readonly codes: Map<number, number>
  aborted: number
  longRunning: number
}

const NO_RESOURCE = { group: '', version: '', resource: '', subresource: '', scope: '' }

function scopeOf(asked: Attributes & { readonly isResource: true }): string {
  if (asked.name !== '' || asked.verb === 'create') return 'resource'
  return asked.namespace === '' ? 'cluster' : 'namespace'
}

/** `/livez/ping` begins with `/livez`. */
function firstPart(path: string): string {
  const end = path.indexOf('/', 1)
  return end === -1 ? path : path.slice(0, end)
}
