import { Counter, Gauge, Histogram, type Registry } from '@prometheus-io/client'
import type { CachedStorage, CacheStats } from './cache/cached-storage.ts'
import type { KeptEntries } from './codec/kept-entries.ts'
import type { Retention, RetentionStatus } from './retention/retention.ts'
import { revisionOf } from './storage/resource-version.ts'

const READ_WAIT_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 3]

/** How consistent reads fare: whether memory could serve them, and how long they waited for it. */
export function consistentReadObserver(
  registry: Registry,
  group: string,
): (waitedMs: number, isServed: boolean) => void {
  const labels = { group, resource: 'events' }
  const waits = new Histogram({
    name: 'apiserver_watch_cache_read_wait_seconds',
    help: 'How long reads waited until memory was fresh enough.',
    labelNames: ['group', 'resource'],
    buckets: READ_WAIT_SECONDS,
    registers: [registry],
  })
  const reads = new Counter({
    name: 'apiserver_watch_cache_consistent_read_total',
    help: 'Consistent reads, by whether memory served them or etcd had to.',
    labelNames: ['group', 'resource', 'success'],
    registers: [registry],
  })
  return (waitedMs, isServed) => {
    waits.observe(labels, waitedMs / 1000)
    reads.inc({ ...labels, success: String(isServed) })
  }
}

/** One figure: its name, what it means, and where it is read when somebody looks. */
interface Figure<Source> {
  readonly name: string
  readonly help: string
  readonly isCounter?: true
  /** Undefined: a gauge has no such series now. */
  readonly read: (source: Source) => number | undefined
}

const CACHE: readonly Figure<CacheStats>[] = [
  {
    name: 'apiserver_watch_cache_events_received_total',
    help: 'Changes that memory has taken in.',
    isCounter: true,
    read: (stats) => stats.eventsReceived,
  },
  {
    name: 'apiserver_watch_cache_events_dispatched_total',
    help: 'Changes handed to watchers.',
    isCounter: true,
    read: (stats) => stats.eventsDispatched,
  },
  {
    name: 'apiserver_watch_cache_initializations_total',
    help: 'How often memory was filled from nothing.',
    isCounter: true,
    read: (stats) => stats.initializations,
  },
  {
    name: 'apiserver_watch_cache_resource_version',
    help: 'The revision of etcd that memory has reached.',
    read: (stats) => revisionOf(stats.version),
  },
  {
    name: 'apiserver_watch_cache_capacity',
    help: 'Changes that are kept for watchers, at most.',
    read: (stats) => stats.historyChangesMax,
  },
  {
    name: 'tidings_history_changes',
    help: 'Changes that are kept for watchers now.',
    read: (stats) => stats.historyChanges,
  },
  {
    name: 'tidings_history_bytes',
    help: 'Size of the changes that are kept for watchers.',
    read: (stats) => stats.historyBytes,
  },
  {
    name: 'tidings_memory_event_bytes',
    help: 'Size of the buffers that hold the live events, free room included.',
    read: (stats) => stats.bodyBytes,
  },
  {
    name: 'tidings_watchers_waiting',
    help: 'Watchers that have seen everything and wait for more.',
    read: (stats) => stats.watchersWaiting,
  },
]

const RETENTION: readonly Figure<RetentionStatus>[] = [
  {
    name: 'tidings_sweeper_role',
    help: '1 on the replica that sweeps and compacts, 0 on the others. While etcd is full several may.',
    read: (status) => (status.isLeader || status.isStandingIn ? 1 : 0),
  },
  {
    name: 'tidings_swept_events_total',
    help: 'Events this replica has removed because their time was up.',
    isCounter: true,
    read: (status) => status.sweptCount,
  },
  {
    name: 'tidings_sweep_lag_seconds',
    help: 'How long the event most overdue should have been gone; only where somebody sweeps.',
    read: ({ sweepLagMs }) => (sweepLagMs === undefined ? undefined : sweepLagMs / 1000),
  },
  {
    name: 'tidings_compactions_total',
    help: "How often this replica has trimmed etcd's history.",
    isCounter: true,
    read: (status) => status.compactionCount,
  },
  {
    name: 'tidings_clock_skew_seconds',
    help: "How far this replica's wall clock is ahead of that of the replica that sweeps.",
    read: ({ clockSkewMs }) => (clockSkewMs === undefined ? undefined : clockSkewMs / 1000),
  },
  {
    name: 'tidings_sweep_unproved_seconds',
    help: 'By how much longer than due events may stay now, since only a wall clock says that they are due.',
    read: (status) => status.unprovedMs / 1000,
  },
]

const KEPT: readonly Figure<KeptEntries>[] = [
  {
    name: 'tidings_list_kept_bytes',
    help: 'Size of what was printed of lists and is kept to be sent again.',
    read: (kept) => kept.bytes,
  },
  {
    name: 'tidings_list_kept_finds_total',
    help: 'How often a run of events was found printed.',
    isCounter: true,
    read: (kept) => kept.finds,
  },
]

export function watchCache(cached: CachedStorage, registry: Registry, group: string): void {
  for (const figure of CACHE) {
    register(figure, () => figure.read(cached.stats()), registry, { group, resource: 'events' })
  }
  const lag: Figure<CachedStorage> = {
    name: 'tidings_follower_lag_seconds',
    help: 'How long ago the follower last heard of etcd; on a quiet one it asks every second.',
    read: ({ lagMs }) => lagMs / 1000,
  }
  register(lag, () => lag.read(cached), registry, {})
  new Gauge({
    name: 'tidings_unreadable_values',
    help: 'Values in etcd under keys of events that are not events, by fault: damaged or foreign.',
    labelNames: ['fault'],
    registers: [registry],
    collect() {
      const counts = { damaged: 0, foreign: 0 }
      for (const { fault } of cached.unreadable) counts[fault]++
      for (const [fault, count] of Object.entries(counts)) this.set({ fault }, count)
    },
  })
}

export function watchRetention(retention: Retention, registry: Registry): void {
  for (const figure of RETENTION) {
    register(figure, () => figure.read(retention.status), registry, {})
  }
}

export function watchKept(kept: KeptEntries, registry: Registry): void {
  for (const figure of KEPT) register(figure, () => figure.read(kept), registry, {})
}

function register(
  figure: Pick<Figure<never>, 'name' | 'help' | 'isCounter'>,
  read: () => number | undefined,
  registry: Registry,
  labels: Readonly<Record<string, string>>,
): void {
  const { name, help } = figure
  const common = { name, help, labelNames: Object.keys(labels), registers: [registry] }
  if (figure.isCounter !== true) {
    new Gauge({
      ...common,
      collect() {
        const value = read()
        if (value === undefined) this.remove(labels)
        else this.set(labels, value)
      },
    })
    return
  }
  new Counter({
    ...common,
    collect() {
      this.reset()
      this.inc(labels, read() ?? 0)
    },
  })
}
