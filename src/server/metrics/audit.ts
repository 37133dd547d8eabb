import { Counter, Gauge, type Registry } from '@prometheus-io/client'
import type { Auditor } from '../../gate/audit/auditor.ts'
import type { LineQueue } from '../../lib/log/line-queue.ts'

/** Kubernetes labels its audit metrics by the kind of backend. */
const PLUGIN = 'log'

/** Metrics of the audit log, read from it at each scrape. */
export function registerAuditMetrics(auditor: Auditor, queue: LineQueue, registry: Registry): void {
  const registers = [registry]
  new Counter({
    name: 'apiserver_audit_event_total',
    help: 'Audit events generated.',
    registers,
    collect() {
      this.reset()
      this.inc(auditor.eventCount)
    },
  })
  new Counter({
    name: 'apiserver_audit_error_total',
    help: 'Audit events that were lost, and writes of audit events that failed.',
    labelNames: ['plugin'],
    registers,
    collect() {
      const { lost, failedWrites } = queue.counts
      this.reset()
      this.inc({ plugin: PLUGIN }, lost + failedWrites)
    },
  })
  new Counter({
    name: 'apiserver_audit_level_total',
    help: 'Requests, by the level that the audit policy gives them.',
    labelNames: ['level'],
    registers,
    collect() {
      this.reset()
      for (const [level, count] of Object.entries(auditor.levels)) this.inc({ level }, count)
    },
  })
  new Counter({
    name: 'tidings_audit_lost_total',
    help: 'Audit events lost because they could not be written in time.',
    registers,
    collect() {
      this.reset()
      this.inc(queue.counts.lost)
    },
  })
  new Counter({
    name: 'tidings_audit_omitted_total',
    help: 'Requests without valid credentials that the audit log only counted.',
    registers,
    collect() {
      this.reset()
      this.inc(auditor.omittedCount)
    },
  })
  new Gauge({
    name: 'tidings_audit_waiting_bytes',
    help: 'Size of the audit events that are buffered and not written yet.',
    registers,
    collect() {
      this.set(queue.counts.bytes)
    },
  })
}
