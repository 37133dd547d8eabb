import { Counter, Gauge, Histogram, type Registry } from '@prometheus-io/client'
import type { CallObserver } from '../../etcd/protocol/protocol.ts'

/** Kubernetes' buckets for calls to etcd, so that its dashboards can be used. */
const CALL_SECONDS = [
  0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45,
  60,
]
const BATCH_OPERATIONS = [1, 2, 5, 10, 20, 50, 100]

/** Values of the engine that are read at each scrape. */
export interface StorageGauges {
  /** Live events in the cache of this replica. */
  objects(): number
  waitingWrites(): { readonly operations: number; readonly bytes: number }
  readonly availability: { readonly outageMs: number; readonly outages: number }
  readonly quotaAlarm: { readonly isFull: boolean; readonly usedFraction: number | undefined }
}

/** Metrics of etcd calls and writes, under Kubernetes' names where it has them. */
export class StorageMetrics {
  readonly #labels: { readonly group: string; readonly resource: 'events' }
  readonly #calls: Histogram<'operation' | 'group' | 'resource'>
  readonly #failures: Counter<'operation' | 'group' | 'resource'>
  readonly #batches: Histogram

  constructor(registry: Registry, group: string) {
    this.#labels = { group, resource: 'events' }
    const registers = [registry]
    this.#calls = new Histogram({
      name: 'etcd_request_duration_seconds',
      help: 'How long calls to etcd took, retries included.',
      labelNames: ['operation', 'group', 'resource'],
      buckets: CALL_SECONDS,
      registers,
    })
    this.#failures = new Counter({
      name: 'etcd_request_errors_total',
      help: 'Calls to etcd that failed.',
      labelNames: ['operation', 'group', 'resource'],
      registers,
    })
    this.#batches = new Histogram({
      name: 'tidings_commit_operations',
      help: 'Writes per etcd transaction.',
      buckets: BATCH_OPERATIONS,
      registers,
    })
  }

  /** Registers the metrics that are read at each scrape. */
  registerGauges(gauges: StorageGauges, registry: Registry): void {
    const registers = [registry]
    const { group, resource } = this.#labels
    new Gauge({
      name: 'apiserver_resource_objects',
      help: 'Live objects, by resource.',
      labelNames: ['group', 'resource'],
      registers,
      collect() {
        this.set({ group, resource }, gauges.objects())
      },
    })
    new Gauge({
      name: 'tidings_waiting_writes',
      help: 'Writes queued for a transaction. If this does not return to 0, etcd is the bottleneck.',
      registers,
      collect() {
        this.set(gauges.waitingWrites().operations)
      },
    })
    new Gauge({
      name: 'tidings_waiting_writes_bytes',
      help: 'Size of the writes queued for a transaction.',
      registers,
      collect() {
        this.set(gauges.waitingWrites().bytes)
      },
    })
    new Gauge({
      name: 'tidings_etcd_away_seconds',
      help: 'How long etcd has been unavailable; 0 while it responds.',
      registers,
      collect() {
        this.set(gauges.availability.outageMs / 1000)
      },
    })
    new Counter({
      name: 'tidings_etcd_outages_total',
      help: 'How often etcd became unavailable.',
      registers,
      collect() {
        this.reset()
        this.inc(gauges.availability.outages)
      },
    })
    new Gauge({
      name: 'tidings_etcd_no_space',
      help: '1 while etcd is full and accepts only reads and deletes, otherwise 0.',
      registers,
      collect() {
        this.set(gauges.quotaAlarm.isFull ? 1 : 0)
      },
    })
    new Gauge({
      name: 'tidings_etcd_quota_used_ratio',
      help: "The share of etcd's space quota that is in use; writes are limited from 0.5 on and refused at 0.8. Missing while it is unknown.",
      registers,
      collect() {
        this.reset()
        if (gauges.quotaAlarm.usedFraction === undefined) this.remove()
        else this.set(gauges.quotaAlarm.usedFraction)
      },
    })
  }

  readonly onCall: CallObserver = ({ path, ms, hasFailed }) => {
    // `/etcdserverpb.KV/Range` becomes `range`: few label values, whatever clients send.
    const operation = path.slice(path.lastIndexOf('/') + 1).toLowerCase()
    this.#calls.observe({ operation, ...this.#labels }, ms / 1000)
    if (hasFailed) this.#failures.inc({ operation, ...this.#labels })
  }

  readonly onCommit = (operations: number): void => this.#batches.observe(operations)
}
