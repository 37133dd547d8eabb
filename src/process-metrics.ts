/** What the process and Node tell of themselves. */
import { performance } from 'node:perf_hooks'
import { Counter, collectDefaultMetrics, type Registry } from '@prometheus-io/client'

/** The library's metrics whose names `promtool check metrics` rejects; the rest tells the same. */
const REJECTED = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
  'nodejs_eventloop_utilization_histogram',
  'nodejs_eventloop_utilization_summary',
]
/** The longest interval that a timer of Node takes: those two are not sampled ten times a second. */
const NEVER_MS = 2 ** 31 - 1

export function showProcess(registry: Registry): void {
  collectDefaultMetrics({ register: registry, eventLoopUtilizationTimeout: NEVER_MS })
  for (const name of REJECTED) registry.removeSingleMetric(name)
  new Counter({
    name: 'nodejs_eventloop_active_seconds_total',
    help: 'How long the event loop was busy; its rate is the utilization.',
    registers: [registry],
    collect() {
      this.reset()
      this.inc(performance.eventLoopUtilization().active / 1000)
    },
  })
}
