/**
 * Every metric of a replica, with the name, type, labels and help that its definition in
 * src/server/metrics has: nothing of that is written twice. The metrics are registered as a replica
 * does, but never collected, so their sources need not exist. That no metric is missing is tested
 * with a real replica, by test/nightly/e2e/monitoring.test.ts.
 */
import { Registry } from '@prometheus-io/client'
import { REFUSALS } from '../../src/gate/refusal.ts'
import { METRICS_PATH, SLIS_PATH } from '../../src/gate/server-paths.ts'
import { PROXY_REFUSALS } from '../../src/http/connections/proxied-connections.ts'
import { HELD_KINDS } from '../../src/lib/client-memory/held-kinds.ts'
import { HELD_LIMITS } from '../../src/lib/client-memory/holding.ts'
import { SOURCE_DIMENSIONS } from '../../src/registry/top-sources.ts'
import {
  registerChangeMetrics,
  registerTopSourceMetrics,
} from '../../src/server/metrics/accounts.ts'
import { registerAuditMetrics } from '../../src/server/metrics/audit.ts'
import {
  consistentReadObserver,
  loadObserver,
  registerCacheMetrics,
  registerRunCacheMetrics,
} from '../../src/server/metrics/cache.ts'
import { registerCertificateMetrics } from '../../src/server/metrics/certificates.ts'
import {
  registerClientMemoryMetrics,
  registerClientNumberMetrics,
  registerMemoryLimitMetrics,
  registerWaitingConnectionMetrics,
  stalledCounter,
} from '../../src/server/metrics/client-memory.ts'
import {
  ClusterLabels,
  countByCluster,
  registerClusterEventMetrics,
} from '../../src/server/metrics/clusters.ts'
import { registerFileMetrics } from '../../src/server/metrics/files.ts'
import { healthRegistry } from '../../src/server/metrics/health.ts'
import {
  CACHE_RESULTS,
  historyQueryObserver,
  LOSSES,
  QUERY_RESULTS,
  registerHistoryMetrics,
  WRITE_STEPS,
} from '../../src/server/metrics/history.ts'
import { registerMirrorMetrics } from '../../src/server/metrics/mirrors.ts'
import { registerBuildMetrics, registerProcessMetrics } from '../../src/server/metrics/process.ts'
import {
  endedWatchCounter,
  handshakeErrorCounter,
  proxyRefusalCounter,
  refusalCounter,
} from '../../src/server/metrics/refusals.ts'
import {
  eventRateCounter,
  limitsObserver,
  registerLimitMetrics,
  registerRefusedCallerMetrics,
  registerRequestMetrics,
} from '../../src/server/metrics/requests.ts'
import { registerRetentionMetrics } from '../../src/server/metrics/retention.ts'
import { openRunQueue } from '../../src/server/metrics/run-queue.ts'
import { StorageMetrics } from '../../src/server/metrics/storage.ts'
import { registerTracingMetrics } from '../../src/server/records/tracing.ts'

/** A metric as its definition describes it. */
export interface DescribedMetric {
  readonly name: string
  readonly type: 'counter' | 'gauge' | 'histogram' | 'summary'
  readonly labels: readonly string[]
  readonly help: string
}

/** Metrics about one subject, as a section of docs/reference/metrics.md. */
export interface MetricTopic {
  readonly title: string
  /** The path that shows them. */
  readonly path: string
  /** What the help texts do not say, in Markdown. */
  readonly note: string
  readonly metrics: readonly DescribedMetric[]
}

interface TopicSource {
  readonly title: string
  readonly note?: string
  readonly path?: string
  register(): Registry
}

const GROUP = 'events.k8s.io'
const CLIENT_NUMBERS = { connections: 0, 'user-connections': 0, watches: 0, 'user-watches': 0 }
const MEMORY_PARTS = {
  all: 0,
  events: 0,
  history: 0,
  'history-processes': 0,
  states: 0,
  lists: 0,
  clients: 0,
}

const TOPICS: readonly TopicSource[] = [
  {
    title: 'Requests',
    note: 'A watch counts when it ends; until then it is in `apiserver_longrunning_requests`.',
    register: into((registry) => {
      registerRequestMetrics(unread(), registry)
      countByCluster(unread(), new ClusterLabels('local'), registry)
    }),
  },
  {
    title: 'Event changes',
    note: `Add up all replicas: [what the numbers must add up to](../how-to/monitor.md#account-for-every-event). Dimensions of \`tidings_top_source_rate\`: ${list(SOURCE_DIMENSIONS)}.`,
    register: into((registry) => {
      registerChangeMetrics(unread(), registry)
      registerTopSourceMetrics(unread(), registry)
      registerClusterEventMetrics(unread(), new ClusterLabels('local'), registry)
    }),
  },
  {
    title: 'Limits and refusals',
    note: `Reasons of \`tidings_authentication_failures_total\`: ${list(REFUSALS)}; the last two are a 503, since a webhook or the API server of the cluster could not decide. Requests that are not permitted are \`apiserver_request_total{code="403"}\`. Reasons of \`tidings_proxy_header_errors_total\`: ${list(PROXY_REFUSALS)}.`,
    register: into((registry) => {
      limitsObserver(registry, unread())
      registerRefusedCallerMetrics(unread(), registry)
      registerLimitMetrics(unread(), registry)
      eventRateCounter(registry)
      refusalCounter(registry)
      handshakeErrorCounter(registry)
      endedWatchCounter(registry)
      proxyRefusalCounter(registry, unread(), unread())
    }),
  },
  {
    title: 'Memory held for clients',
    note: `Kinds: ${list(HELD_KINDS)}. Limits: ${list(HELD_LIMITS)}.`,
    register: into((registry) => {
      registerClientMemoryMetrics(unread(), registry)
      registerMemoryLimitMetrics(MEMORY_PARTS, registry)
      registerClientNumberMetrics(CLIENT_NUMBERS, registry)
      registerWaitingConnectionMetrics(unread(), registry)
      stalledCounter(registry)
    }),
  },
  {
    title: 'Cache and watches',
    register: into((registry) => {
      registerCacheMetrics(unread(), registry, GROUP)
      registerRunCacheMetrics(unread(), registry)
      consistentReadObserver(registry, GROUP)
      loadObserver(registry, GROUP)
      openRunQueue(registry)
    }),
  },
  {
    title: 'etcd',
    register: into((registry) =>
      new StorageMetrics(registry, GROUP).registerGauges(unread(), registry),
    ),
  },
  {
    title: 'Retention',
    register: into((registry) => registerRetentionMetrics(unread(), registry)),
  },
  {
    title: 'History',
    note: `Only with \`--history\`. Reasons of lost events: ${list(LOSSES)}. Steps of writing: ${list(WRITE_STEPS)}. Results of queries: ${list(QUERY_RESULTS)}; of the cache: ${list(CACHE_RESULTS)}. (\`tidings_history_bytes\` and \`tidings_history_changes\` are about [recent changes for watchers](#cache-and-watches).)`,
    register: into((registry) => {
      registerHistoryMetrics(unread(), registry)
      historyQueryObserver(registry)
    }),
  },
  {
    title: 'Mirrors',
    note: 'Only with `--clusters-file`.',
    register: into((registry) => registerMirrorMetrics(unread(), registry)),
  },
  {
    title: 'Files and certificates',
    register: into((registry) => {
      registerFileMetrics(registry)
      registerCertificateMetrics(registry, unread())
    }),
  },
  {
    title: 'Audit log',
    note: 'Only with `--audit-policy-file`.',
    register: into((registry) => registerAuditMetrics(unread(), unread(), registry)),
  },
  {
    title: 'Traces',
    note: 'Only with `--tracing-config-file`.',
    register: into((registry) => registerTracingMetrics(unread(), unread(), registry)),
  },
  {
    title: 'Process',
    register: into((registry) => {
      registerBuildMetrics(registry)
      registerProcessMetrics(registry)
    }),
  },
  {
    title: 'Health checks',
    path: SLIS_PATH,
    register: () => healthRegistry(unread()),
  },
]

/** All metrics, by topic. */
export function metricTopics(): readonly MetricTopic[] {
  return TOPICS.map(({ title, path = METRICS_PATH, note = '', register }) => ({
    title,
    path,
    note,
    metrics: register().getMetricsAsArray().map(describe),
  }))
}

/** All metrics, by name. */
export function metricsByName(): ReadonlyMap<string, DescribedMetric> {
  const all = metricTopics().flatMap(({ metrics }) => metrics)
  return new Map(all.map((metric) => [metric.name, metric]))
}

function describe(metric: object): DescribedMetric {
  const { name, type, labelNames, help } = metric as DescribedMetric & {
    readonly labelNames?: readonly string[]
  }
  if (labelNames === undefined) throw new Error(`${name} does not say which labels it has`)
  return { name, type, labels: labelNames, help }
}

function into(register: (registry: Registry) => void): () => Registry {
  return () => {
    const registry = new Registry()
    register(registry)
    return registry
  }
}

/** A source of values that a scrape would read. */
function unread<T>(): T {
  const refuse = (): never => {
    throw new Error('metrics of the catalogue are described, not collected')
  }
  return new Proxy(() => {}, { get: refuse, apply: refuse }) as T
}

function list(values: readonly string[]): string {
  return values.map((value) => `\`${value}\``).join(', ')
}
