import { Counter, Gauge, Histogram, type Metric, type Registry } from '@prometheus-io/client'
import type {
  Distribution,
  RequestSeries,
  RequestTallies,
} from '../../endpoints/observe/request-tallies.ts'
import type { LimitsObserver, RequestKind, RequestLimits } from '../../gate/limits/limits.ts'
import type { RefusedCallers } from '../../gate/limits/refused-callers.ts'

const LABELS = ['verb', 'group', 'version', 'resource', 'subresource', 'scope', 'component']
const COMPONENT = { component: 'apiserver' } as const
/** Buckets below this are of no use to a latency objective. */
const SLI_SECONDS_MIN = 0.05
const WAIT_SECONDS = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5]
const KINDS: readonly RequestKind[] = ['readOnly', 'mutating']

/** Metrics of requests and responses, under the names that Kubernetes dashboards use. */
export function registerRequestMetrics(tallies: RequestTallies, registry: Registry): void {
  const registers = [registry]
  const all = (): Iterable<RequestSeries> => tallies.series()
  new Counter({
    name: 'apiserver_request_total',
    help: 'Requests with a response, by verb, resource and status code.',
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
    help: 'Requests whose client disconnected before the response.',
    labelNames: LABELS,
    registers,
    collect() {
      this.reset()
      for (const { labels, aborted } of all()) {
        if (aborted > 0) this.inc({ ...labels, ...COMPONENT }, aborted)
      }
    },
  })
  new Counter({
    name: 'tidings_event_writes_refused_total',
    help: 'Requests to write events that failed, by verb and the reason in the response. Timeout: it is not known whether the write was applied.',
    labelNames: ['verb', 'reason'],
    registers,
    collect() {
      this.reset()
      for (const { verb, reasons } of tallies.refusedWrites()) {
        for (const [reason, count] of reasons) this.inc({ verb, reason }, count)
      }
    },
  })
  new Gauge({
    name: 'apiserver_longrunning_requests',
    help: 'Running watches.',
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
    help: 'Time from the arrival of a request to the end of its response.',
    each: () => all(),
    of: ({ durations }) => durations,
  })
  register(registry, {
    name: 'apiserver_request_sli_duration_seconds',
    help: 'Response latency in the buckets of a service level indicator; waiting for a slot is included.',
    each: () => all(),
    of: ({ durations }) => durations,
    boundMin: SLI_SECONDS_MIN,
  })
  register(registry, {
    name: 'apiserver_response_sizes',
    help: 'Size of the response bodies sent.',
    each: () => all(),
    of: ({ sizes }) => sizes,
  })
  register(registry, {
    name: 'apiserver_watch_list_duration_seconds',
    help: 'Time from the arrival of a watch that begins with a list to the bookmark after that list.',
    labelNames: ['group', 'version', 'resource', 'scope'],
    each: () => all(),
    of: ({ watchLists }) => watchLists,
  })
}

/** Observes how long requests wait for a slot, and which are refused. */
export function limitsObserver(registry: Registry, callers: RefusedCallers): LimitsObserver {
  const waits = new Histogram({
    name: 'apiserver_flowcontrol_request_wait_duration_seconds',
    help: 'How long requests waited for a slot; requests that got one at once are not counted.',
    labelNames: ['priority_level', 'execute'],
    buckets: WAIT_SECONDS,
    registers: [registry],
  })
  const refused = new Counter({
    name: 'apiserver_flowcontrol_rejected_requests_total',
    help: 'Requests refused with 429.',
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

/** Requests refused with 429, by caller. */
export function registerRefusedCallerMetrics(callers: RefusedCallers, registry: Registry): void {
  new Counter({
    name: 'tidings_refused_requests_total',
    help: 'Requests refused with 429, or cancelled for the memory that they held, by user and, if the event had been parsed, by its controller. Users and controllers above a limit are counted as "other".',
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

/** Requests in flight, requests waiting for a slot, and 429 responses that are held back. */
export function registerLimitMetrics(limits: RequestLimits, registry: Registry): void {
  new Gauge({
    name: 'apiserver_current_inflight_requests',
    help: 'Requests in flight; a watch counts only until its initial events are sent.',
    labelNames: ['request_kind'],
    registers: [registry],
    collect() {
      for (const kind of KINDS) this.set({ request_kind: kind }, limits.inFlight(kind))
    },
  })
  new Gauge({
    name: 'apiserver_current_inqueue_requests',
    help: 'Requests waiting for a slot.',
    labelNames: ['request_kind'],
    registers: [registry],
    collect() {
      for (const kind of KINDS) this.set({ request_kind: kind }, limits.inQueue(kind))
    },
  })
  new Gauge({
    name: 'tidings_refusals_waiting',
    help: 'Requests whose 429 response is held back by the pacing of refusals.',
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
  /** Undefined: the series has none. */
  readonly of: (series: RequestSeries) => Distribution | undefined
  readonly labelNames?: readonly string[]
  /** Buckets below this are left out. */
  readonly boundMin?: number
}

/**
 * The histogram of the library takes more than a microsecond per value, so request-tallies.ts does
 * the counting. A registry needs only the name and `get` of a metric, and the page of metrics the rest.
 */
function register(registry: Registry, histogram: TalliedHistogram): void {
  const { name, help, labelNames = LABELS } = histogram
  const get = async (): Promise<object> => ({
    name,
    help,
    type: 'histogram',
    aggregator: 'sum',
    values: [...histogram.each()].flatMap((series) => valuesOf(histogram, series)),
  })
  const described = { name, help, type: 'histogram', labelNames }
  registry.registerMetric({ ...described, get } as unknown as Metric)
}

interface Value {
  readonly metricName: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

function valuesOf(
  { name, of, labelNames = LABELS, boundMin = 0 }: TalliedHistogram,
  series: RequestSeries,
): Value[] {
  const distribution = of(series)
  if (distribution === undefined) return []
  const all: Readonly<Record<string, string>> = { ...series.labels, ...COMPONENT }
  const labels = Object.fromEntries(labelNames.map((label) => [label, all[label] ?? '']))
  const { bounds, counts, sum } = distribution
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

/** Counts writes that exceeded a limit in events or bytes per second. */
export function eventRateCounter(registry: Registry): (type: string, unit: string) => void {
  const refused = new Counter({
    name: 'tidings_event_rate_limited_total',
    help: 'Writes refused with 429 because of a limit in events or bytes per second, or, with the unit memory or etcd, because the writer holds its share of the space for events there.',
    labelNames: ['type', 'unit'],
    registers: [registry],
  })
  return (type, unit) => refused.inc({ type, unit })
}
