import { Counter, Gauge, type Registry } from '@prometheus-io/client'
import type { MirrorCounters } from '../../mirror/mirror-counters.ts'
import type { MirrorStatus } from '../../mirror/mirror-statuses.ts'

/** What this replica knows of the mirrors. The clusters are those of the clusters file. */
export interface WatchedMirrors {
  /** States of all mirrored clusters, whichever replica mirrors them. */
  statuses(): Iterable<readonly [cluster: string, status: MirrorStatus]>
  /** What this replica itself has done. */
  counters(): Iterable<readonly [cluster: string, counters: MirrorCounters]>
  /** Whether this replica follows the owners of the objects in a cluster, by resource. */
  ownersFollowing(): Iterable<readonly [cluster: string, following: ReadonlyMap<string, boolean>]>
  /** The clusters that this replica mirrors now. */
  led(): ReadonlySet<string>
}

/** Counters of the mirrors of this replica that have no other labels. */
const COUNTERS: readonly {
  readonly name: string
  readonly help: string
  readonly read: (counters: MirrorCounters) => number
}[] = [
  {
    name: 'tidings_mirror_retries_total',
    help: 'Writes of mirrors that failed and were repeated.',
    read: ({ retries }) => retries,
  },
  {
    name: 'tidings_mirror_throttled_total',
    help: 'How often writes of mirrors had to wait because the cluster sends more bytes, or holds more of the space for events, than it may. A steady rise: the mirror falls behind.',
    read: ({ throttled }) => throttled,
  },
  {
    name: 'tidings_mirror_lists_total',
    help: 'How often mirrors have listed all events of their origin.',
    read: ({ lists }) => lists,
  },
  {
    name: 'tidings_mirror_watches_total',
    help: 'Watches that mirrors have started at their origin.',
    read: ({ watches }) => watches,
  },
  {
    name: 'tidings_mirror_fenced_writes_total',
    help: 'Writes of mirrors that were refused because another replica had been elected.',
    read: ({ fenced }) => fenced,
  },
]

export function registerMirrorMetrics(mirrors: WatchedMirrors, registry: Registry): void {
  registerStates(mirrors, registry)
  registerCounters(mirrors, registry)
}

function registerStates(mirrors: WatchedMirrors, registry: Registry): void {
  const registers = [registry]
  const labelNames = ['cluster'] as const
  new Gauge({
    name: 'tidings_mirror_lag_seconds',
    help: 'How long ago the mirror last had everything that the origin had; reported by every replica.',
    labelNames,
    registers,
    collect() {
      this.reset()
      for (const [cluster, { lagMs }] of mirrors.statuses()) {
        if (lagMs !== undefined) this.set({ cluster }, lagMs / 1000)
      }
    },
  })
  new Gauge({
    name: 'tidings_mirror_state',
    help: '1 for the state of the mirror of each cluster (Waiting, Syncing, Following or Stalled), on every replica.',
    labelNames: ['cluster', 'state'],
    registers,
    collect() {
      this.reset()
      for (const [cluster, { state }] of mirrors.statuses()) this.set({ cluster, state }, 1)
    },
  })
  new Gauge({
    name: 'tidings_mirror_role',
    help: '1 on the replica that mirrors the cluster, 0 on the others.',
    labelNames,
    registers,
    collect() {
      this.reset()
      const led = mirrors.led()
      for (const [cluster] of mirrors.statuses()) this.set({ cluster }, led.has(cluster) ? 1 : 0)
    },
  })
  new Gauge({
    name: 'tidings_mirror_owners_following',
    help: '1 while the mirror of a cluster with owners: true follows the owners of this resource (pods, replicasets or jobs), otherwise 0; only on the replica that mirrors the cluster.',
    labelNames: ['cluster', 'resource'],
    registers,
    collect() {
      this.reset()
      for (const [cluster, following] of mirrors.ownersFollowing()) {
        for (const [resource, isFollowing] of following) {
          this.set({ cluster, resource }, isFollowing ? 1 : 0)
        }
      }
    },
  })
}

function registerCounters(mirrors: WatchedMirrors, registry: Registry): void {
  const registers = [registry]
  new Counter({
    name: 'tidings_mirror_events_total',
    help: 'Events of the origin by what became of them: stored, removed, equal, older, expired, kept and absent are normal; truncated events were larger than --max-event-bytes and were stored without annotations and the end of the note; too-large, invalid and unreadable were dropped.',
    labelNames: ['cluster', 'result'],
    registers,
    collect() {
      this.reset()
      for (const [cluster, { results }] of mirrors.counters()) {
        for (const [result, count] of Object.entries(results)) this.inc({ cluster, result }, count)
      }
    },
  })
  new Counter({
    name: 'tidings_mirror_origin_failures_total',
    help: 'Requests to the origin that failed: expired (list again), unavailable (retried) or refused (an operator has to act).',
    labelNames: ['cluster', 'kind'],
    registers,
    collect() {
      this.reset()
      for (const [cluster, { failures }] of mirrors.counters()) {
        for (const [kind, count] of Object.entries(failures)) this.inc({ cluster, kind }, count)
      }
    },
  })
  for (const { name, help, read } of COUNTERS) {
    new Counter({
      name,
      help,
      labelNames: ['cluster'],
      registers,
      collect() {
        this.reset()
        for (const [cluster, counters] of mirrors.counters()) this.inc({ cluster }, read(counters))
      },
    })
  }
}
