import { Counter, Gauge, Histogram, type Metric, type Registry } from '@prometheus-io/client'
import type {
  Distribution,
  RequestLabels,
  RequestSeries,
  RequestTallies,
} from './endpoints/request-tallies.ts'
import type { LimitsObserver, RequestKind, RequestLimits } from './gate/limits/limits.ts'
import type { RefusedCallers } from './gate/limits/refused-callers.ts'

const LABELS = ['verb', 'group', 'version', 'resource', 'subresource', 'scope', 'component']
const COMPONENT = { component: 'apiserver' } as const
/** A budget for slowness has no use for anything faster. */
const SLI_SECONDS_MIN = 0.05
const WAIT_SECONDS = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5]
const KINDS: readonly RequestKind[] = ['readOnly', 'mutating']

/** What was asked and how it went, under the names that dashboards know. */
export function showRequests(tallies: RequestTallies, registry: Registry): void {
  const registers = [registry]
  const all = (): Iterable<RequestSeries> => tallies.series()
  new Counter({
    name: 'apiserver_request_total',
    help: 'Requests answered, by what they asked for and the code of the answer.',
    labelNames: [...LABELS, 'code'],
    registers,
    collect() {
      this.reset()
      for (const { labels, codes } of all()) {
        for (const [code, count] of codes) {
          this.inc({ ...labels, ...COMPONENT, code: String(code) }, count)
        }
      }
    },
  })
  new Counter({
    name: 'apiserver_request_aborts_total',
    help: 'Requests whose client left before it was answered.',
    labelNames: LABELS,
    registers,
    collect() {
      this.reset()
      for (const { labels, aborted } of all()) {
        if (aborted > 0) this.inc({ ...labels, ...COMPONENT }, aborted)
      }
    },
  })
  new Gauge({
    name: 'apiserver_longrunning_requests',
    help: 'Watches under way.',
    labelNames: LABELS,
    registers,
    collect() {
      for (const { labels, longRunning } of all()) {
        if (labels.verb === 'WATCH') this.set({ ...labels, ...COMPONENT }, longRunning)
      }
    },
  })
  register(registry, {
    name: 'apiserver_request_duration_seconds',
    help: 'From the arrival of a request to the end of its answer.',
    each: () => all(),
    of: ({ durations }) => durations,
  })
  register(registry, {
    name: 'apiserver_request_sli_duration_seconds',
    help: 'The same, in the steps of a service level indicator; waiting for a place is included.',
    each: () => all(),
    of: ({ durations }) => durations,
    boundMin: SLI_SECONDS_MIN,
  })
  register(registry, {
    name: 'apiserver_response_sizes',
    help: 'Bytes of the bodies sent.',
    each: () => all(),
    of: ({ sizes }) => sizes,
  })
}

/** Hears how the limits fare. */
export function limitsObserver(registry: Registry, callers: RefusedCallers): LimitsObserver {
  const waits = new Histogram({
    name: 'apiserver_flowcontrol_request_wait_duration_seconds',
    help: 'How long requests waited for a place, those that found one at once not counted.',
    labelNames: ['priority_level', 'execute'],
    buckets: WAIT_SECONDS,
    registers: [registry],
  })
  const refused = new Counter({
    name: 'apiserver_flowcontrol_rejected_requests_total',
    help: 'Requests that were turned away with 429.',
    labelNames: ['priority_level', 'reason'],
    registers: [registry],
  })
  return {
    waited: (kind, waitedMs, hasPlace) =>
      waits.observe({ priority_level: kind, execute: String(hasPlace) }, waitedMs / 1000),
    refused: (kind, reason, user) => {
      refused.inc({ priority_level: kind, reason })
      callers.refused(user, '', `${kind}: ${reason}`)
    },
  }
}

/** Who is refused with 429. */
export function showRefused(callers: RefusedCallers, registry: Registry): void {
  new Counter({
    name: 'tidings_refused_requests_total',
    help: 'Requests that were refused with 429, or cut for the memory that they held, by their user and, of events that were read, their controller. Of many users and controllers the rest is "other".',
    labelNames: ['user', 'controller'],
    registers: [registry],
    collect() {
      this.reset()
      for (const { user, controller, count } of callers.all()) {
        this.inc({ user, controller }, count)
      }
    },
  })
}

/** What is under way, and what waits. */
export function showLimits(limits: RequestLimits, registry: Registry): void {
  new Gauge({
    name: 'apiserver_current_inflight_requests',
    help: 'Requests under way, watches only while they begin.',
    labelNames: ['request_kind'],
    registers: [registry],
    collect() {
      for (const kind of KINDS) this.set({ request_kind: kind }, limits.inFlight(kind))
    },
  })
  new Gauge({
    name: 'apiserver_current_inqueue_requests',
    help: 'Requests that wait for a place.',
    labelNames: ['request_kind'],
    registers: [registry],
    collect() {
      for (const kind of KINDS) this.set({ request_kind: kind }, limits.inQueue(kind))
    },
  })
  new Gauge({
    name: 'tidings_refusals_waiting',
    help: 'Requests that are to be answered with 429 as soon as it is their turn.',
    registers: [registry],
    collect() {
      this.set(limits.turningAway)
    },
  })
}

interface TalliedHistogram {
  readonly name: string
  readonly help: string
  readonly each: () => Iterable<RequestSeries>
  readonly of: (series: RequestSeries) => Distribution
  /** Steps below this are left out. */
  readonly boundMin?: number
}

/**
 * The library's own histogram costs more than a microsecond for each value, so ours are counted
 * elsewhere. A registry asks of a metric no more than its name and `get`.
 */
function register(registry: Registry, histogram: TalliedHistogram): void {
  const { name, help } = histogram
  const get = async (): Promise<object> => ({
    name,
    help,
    type: 'histogram',
    aggregator: 'sum',
    values: [...histogram.each()].flatMap((series) => valuesOf(histogram, series)),
  })
  registry.registerMetric({ name, help, type: 'histogram', get } as unknown as Metric)
}

interface Value {
  readonly metricName: string
  readonly labels: RequestLabels & { readonly component: string; readonly le?: string }
  readonly value: number
}

function valuesOf({ name, of, boundMin = 0 }: TalliedHistogram, series: RequestSeries): Value[] {
  const labels = { ...series.labels, ...COMPONENT }
  const { bounds, counts, sum } = of(series)
  const values: Value[] = []
  let count = 0
  for (const [at, added] of counts.entries()) {
    count += added
    const bound = bounds[at] ?? Number.POSITIVE_INFINITY
    if (bound < boundMin) continue
    const le = bound === Number.POSITIVE_INFINITY ? '+Inf' : String(bound)
    values.push({ metricName: `${name}_bucket`, labels: { ...labels, le }, value: count })
  }
  values.push({ metricName: `${name}_sum`, labels, value: sum })
  values.push({ metricName: `${name}_count`, labels, value: count })
  return values
}
