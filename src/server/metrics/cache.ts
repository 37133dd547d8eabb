import { Counter, Gauge, Histogram, type Registry } from '@prometheus-io/client'
import type { CacheStats } from '../../cache/cache-stats.ts'
import type { CachedStorage } from '../../cache/cached-storage.ts'
import type { EncodedRunCache } from '../../codec/encoders/encoded-run-cache.ts'
import type { KnownOwners } from '../../incidents/known-owners.ts'
import { revisionOf } from '../../storage/resource-version.ts'
import { type Figure, registerFigure } from './figure.ts'

const READ_WAIT_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 3]

/** Counts consistent reads by whether the cache served them, and how long they waited for it. */
export function consistentReadObserver(
  registry: Registry,
  group: string,
): (waitedMs: number, isServed: boolean) => void {
  const labels = { group, resource: 'events' }
  const waits = new Histogram({
    name: 'apiserver_watch_cache_read_wait_seconds',
    help: 'How long reads waited until the cache was fresh enough.',
    labelNames: ['group', 'resource'],
    buckets: READ_WAIT_SECONDS,
    registers: [registry],
  })
  const reads = new Counter({
    name: 'apiserver_watch_cache_consistent_read_total',
    help: 'Consistent reads, by whether the cache served them or etcd did.',
    labelNames: ['group', 'resource', 'success'],
    registers: [registry],
  })
  return (waitedMs, isServed) => {
    waits.observe(labels, waitedMs / 1000)
    reads.inc({ ...labels, success: String(isServed) })
  }
}

/** Seconds. The buckets of Kubernetes 1.37. */
const LOAD_SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 180, 600]

/** Observes how long it takes to load all events. */
export function loadObserver(registry: Registry, group: string): (tookMs: number) => void {
  const loads = new Histogram({
    name: 'apiserver_watch_cache_initialization_duration_seconds',
    help: 'How long it took to load all events into the cache.',
    labelNames: ['group', 'resource'],
    buckets: LOAD_SECONDS,
    registers: [registry],
  })
  return (tookMs) => loads.observe({ group, resource: 'events' }, tookMs / 1000)
}

const CACHE: readonly Figure<CacheStats>[] = [
  {
    name: 'apiserver_watch_cache_events_received_total',
    help: 'Changes applied to the cache.',
    isCounter: true,
    read: (stats) => stats.eventsReceived,
  },
  {
    name: 'apiserver_watch_cache_events_dispatched_total',
    help: 'Changes delivered to watchers, counted once per watcher.',
    isCounter: true,
    read: (stats) => stats.eventsDispatched,
  },
  {
    name: 'apiserver_watch_cache_initializations_total',
    help: 'How often all events were loaded into the cache.',
    isCounter: true,
    read: (stats) => stats.initializations,
  },
  {
    name: 'apiserver_watch_cache_resource_version',
    help: 'The etcd revision that the cache has reached.',
    read: (stats) => revisionOf(stats.version),
  },
  {
    name: 'apiserver_watch_cache_capacity',
    help: 'The most changes that the history ring holds for watchers.',
    read: (stats) => stats.historyChangesMax,
  },
  {
    name: 'tidings_history_changes',
    help: 'Changes that the history ring holds for watchers now.',
    read: (stats) => stats.historyChanges,
  },
  {
    name: 'tidings_history_bytes',
    help: 'Size of the changes in the history ring.',
    read: (stats) => stats.historyBytes,
  },
  {
    name: 'tidings_memory_event_bytes',
    help: 'Memory that the live events take: their buffers, and an estimate for rows, indexes and namespaces.',
    read: (stats) => stats.bodyBytes,
  },
  {
    name: 'tidings_watchers_waiting',
    help: 'Watchers that have received every change and wait for the next.',
    read: (stats) => stats.watchersWaiting,
  },
]

const KNOWN_OWNERS: readonly Figure<KnownOwners>[] = [
  {
    name: 'tidings_known_owners',
    help: 'Pods, ReplicaSets and Jobs whose owner is known from events or owner references; the workload of others is derived from their names.',
    read: (owners) => owners.size,
  },
  {
    name: 'tidings_known_owners_bytes',
    help: 'Estimated memory of the known owners, which is limited to 16 MiB.',
    read: (owners) => owners.bytes,
  },
  {
    name: 'tidings_known_owners_evicted_total',
    help: 'Known owners that were forgotten because of that limit, the oldest of the namespace with the most first.',
    isCounter: true,
    read: (owners) => owners.evicted,
  },
]

const RUN_CACHE: readonly Figure<EncodedRunCache>[] = [
  {
    name: 'tidings_list_kept_bytes',
    help: 'Size of the encoded parts of lists that are cached; tidings_memory_limit_bytes has the bound.',
    read: (runCache) => runCache.bytes,
  },
  {
    name: 'tidings_list_kept_finds_total',
    help: 'Cache hits of encoded runs of events.',
    isCounter: true,
    read: (runCache) => runCache.hits,
  },
]

export function registerCacheMetrics(
  cached: CachedStorage,
  registry: Registry,
  group: string,
): void {
  for (const figure of CACHE) {
    registerFigure(figure, () => figure.read(cached.stats()), registry, {
      group,
      resource: 'events',
    })
  }
  for (const figure of KNOWN_OWNERS) {
    registerFigure(figure, () => figure.read(cached.owners), registry, {})
  }
  const lag: Figure<CachedStorage> = {
    name: 'tidings_follower_lag_seconds',
    help: 'How long ago the follower last received anything from etcd; on a quiet etcd it requests progress every second.',
    read: ({ lagMs }) => lagMs / 1000,
  }
  registerFigure(lag, () => lag.read(cached), registry, {})
  new Gauge({
    name: 'tidings_unreadable_values',
    help: 'Values under keys of events in etcd that are not events, by fault: damaged or foreign.',
    labelNames: ['fault'],
    registers: [registry],
    collect() {
      const counts = { damaged: 0, foreign: 0 }
      for (const { fault } of cached.unreadable) counts[fault]++
      for (const [fault, count] of Object.entries(counts)) this.set({ fault }, count)
    },
  })
}

export function registerRunCacheMetrics(runCache: EncodedRunCache, registry: Registry): void {
  for (const figure of RUN_CACHE) registerFigure(figure, () => figure.read(runCache), registry, {})
}
