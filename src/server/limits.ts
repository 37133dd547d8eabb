/** Builds the limits on requests, events and memory held for clients from the options. */

import type { Registry } from '@prometheus-io/client'
import { TIDINGS_API_VERSION } from '../api/tidings-group.ts'
import { type RequestObserver, RequestTallies } from '../endpoints/observe/request-tallies.ts'
import { RequestLimits } from '../gate/limits/limits.ts'
import { RefusalPace } from '../gate/limits/refusal-pace.ts'
import { RefusedCallers } from '../gate/limits/refused-callers.ts'
import { type LedgerLimits, MemoryLedger } from '../lib/client-memory/ledger.ts'
import { monotonicClock } from '../lib/clock.ts'
import type { Log } from '../lib/log/log.ts'
import { withFlagName } from '../options/flag-errors.ts'
import type { Options } from '../options/options.ts'
import { byteLimits, EventLimits, sourceOf } from '../registry/admission/event-limits.ts'
import { followEventLimits } from '../registry/admission/event-limits-file.ts'
import { StoredBytes } from '../registry/admission/stored-bytes.ts'
import { WriteAdmission } from '../registry/admission/write-admission.ts'
import type { Engine } from './engine.ts'
import type { MemoryBudget } from './memory-budget.ts'
import {
  registerClientMemoryMetrics,
  registerWaitingConnectionMetrics,
  stalledCounter,
} from './metrics/client-memory.ts'
import { ClusterLabels, countByCluster } from './metrics/clusters.ts'
import type { FilePollStatus } from './metrics/files.ts'
import {
  eventRateCounter,
  limitsObserver,
  registerLimitMetrics,
  registerRefusedCallerMetrics,
  registerRequestMetrics,
} from './metrics/requests.ts'

/** Resources served besides the events of `--events-group`, which have request metrics too. */
const OTHER_RESOURCES = [
  '/v1/events',
  'authentication.k8s.io/v1/selfsubjectreviews',
  'authorization.k8s.io/v1/selfsubjectaccessreviews',
  'authorization.k8s.io/v1/selfsubjectrulesreviews',
  `${TIDINGS_API_VERSION}/eventsummaries`,
  `${TIDINGS_API_VERSION}/eventhistograms`,
  `${TIDINGS_API_VERSION}/retentionwindows`,
]

export interface OpenedLimits {
  readonly limits: RequestLimits
  readonly observer: RequestObserver
  readonly admission: WriteAdmission
  /** How many writes of events of a cluster were refused. */
  refusedIn(cluster: string): number | undefined
  /** Stops polling files. */
  stop(): void
}

export interface LimitsParts {
  readonly polls?: FilePollStatus
  /** The first part of a served path; '' for any other path. Metrics label requests by it. */
  readonly rootOf?: (path: string) => string
  /** The space that events take; undefined: they may take any. */
  readonly space?: EventSpace
  readonly budget?: Pick<MemoryBudget, 'eventBytes'>
  /** Its refusals are counted with those of the other limits. */
  readonly ledger?: MemoryLedger
  /** The clusters by which requests are counted. */
  readonly clusters?: ClusterLabels
  /** Limits of watches, if they differ from the flags. */
  readonly watches?: { readonly total: number; readonly perUser: number }
}

/** Rejects when a file cannot be used; the error names the flag. */
export async function openLimits(
  options: Options,
  registry: Registry,
  log: Log,
  parts: LimitsParts = {},
): Promise<OpenedLimits> {
  const { polls, ledger, rootOf = () => '' } = parts
  const { clusters = new ClusterLabels(options.clusterName) } = parts
  const { watches = { total: options.maxWatches, perUser: options.maxWatchesPerUser } } = parts
  const callers = new RefusedCallers({ log, clock: monotonicClock })
  if (ledger !== undefined) {
    ledger.onRefused = (user, limit) => callers.refused(user, '', `memory: ${limit}`)
  }
  registerRefusedCallerMetrics(callers, registry)
  const limits = new RequestLimits({
    requestsInFlight: options.maxRequestsInflight,
    mutatingRequestsInFlight: options.maxMutatingRequestsInflight,
    watches: watches.total,
    watchesPerUser: watches.perUser,
    observer: limitsObserver(registry, callers),
    sizes: { of: (cluster, namespace) => parts.space?.sizes?.of(cluster, namespace) },
    // A quarter of the request timeout, since a request waits for a slot too.
    pace: new RefusalPace({ overdueMs: options.requestTimeoutMs / 4 }),
  })
  registerLimitMetrics(limits, registry)
  const tallies = new RequestTallies(
    [`${options.eventsGroup}/v1/events`, ...OTHER_RESOURCES],
    rootOf,
  )
  registerRequestMetrics(tallies, registry)
  const { admission, eventLimits } = openAdmission(options, registry, { ...parts, callers })
  const follower = await followLimits(eventLimits, options, log, polls)
  const observer = countByCluster(tallies, clusters, registry)
  const refusedIn = (cluster: string) => tallies.refusedIn(cluster)
  return { limits, observer, admission, refusedIn, stop: () => follower?.stop() }
}

/** The space that events take in etcd and in memory. */
export type EventSpace = Pick<
  Engine,
  'headroom' | 'eventBytes' | 'etcdSpace' | 'lifetimeOf' | 'silentMs' | 'sizes' | 'sources'
>

/** Limits in bytes always apply; limits in events only while a file configures them. */
function openAdmission(
  { maxWriteBytesPerSecond: rate }: Options,
  registry: Registry,
  { callers, space, budget }: LimitsParts & { readonly callers: RefusedCallers },
): { readonly admission: WriteAdmission; readonly eventLimits: EventLimits } {
  const headroom = (): number => space?.headroom ?? 1
  const stored = new StoredBytes({
    resources: [
      {
        name: 'memory',
        budgetBytes: () => budget?.eventBytes,
        usedBytes: () => space?.eventBytes ?? 0,
      },
      {
        name: 'etcd',
        // Without a limit on rates, etcd may be filled.
        budgetBytes: () => (rate === 0 ? undefined : space?.etcdSpace?.budgetBytes),
        usedBytes: () => space?.etcdSpace?.usedBytes ?? 0,
        countsWrites: true,
      },
    ],
    silentMs: () => space?.silentMs ?? 0,
    sizes: { of: (cluster, namespace) => space?.sizes?.of(cluster, namespace) },
    now: () => monotonicClock.now(),
  })
  // What one user can store into an empty budget.
  const burst = budget && budget.eventBytes / 2
  const eventLimits = new EventLimits({
    limits: byteLimits(['User', 'Namespace'], rate, burst),
    headroom,
  })
  const countRefused = eventRateCounter(registry)
  const admission = new WriteAdmission({
    limits: eventLimits,
    mirrorLimits: new EventLimits({ limits: byteLimits(['Cluster'], rate, burst), headroom }),
    stored,
    lifetimeOf: (cluster, event) => space?.lifetimeOf(cluster, event) ?? 'never',
    sources: space?.sources,
    onRefused: (type, unit, payer, event) => {
      countRefused(type, unit)
      callers.refused(payer, sourceOf(event), `${type}: ${unit}`)
    },
  })
  return { admission, eventLimits }
}

async function followLimits(
  eventLimits: EventLimits,
  { eventRateLimitConfigFile: path }: Options,
  log: Log,
  polls?: FilePollStatus,
): Promise<{ stop(): void } | undefined> {
  if (path === undefined) return undefined
  const flag = '--event-rate-limit-config-file'
  return withFlagName(flag, followEventLimits(eventLimits, path, log, polls?.(flag)))
}

/** Shared by all listeners of a server. */
export interface ClientMemory {
  readonly ledger: MemoryLedger
  /** Called when a response was cancelled because its client did not read it. */
  readonly onStalled: () => void
}

/** `waiting` returns how many connections wait unread. */
export function openClientMemory(
  limits: LedgerLimits,
  registry: Registry,
  waiting: () => number,
): ClientMemory {
  const ledger = new MemoryLedger(limits)
  registerClientMemoryMetrics(ledger, registry)
  registerWaitingConnectionMetrics(waiting, registry)
  return { ledger, onStalled: stalledCounter(registry) }
}
